//! Recording for a time.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::time::{Duration, Instant, SystemTime};

use gristmill_core::Code;

use crate::names::{Named, names_of};
use crate::objects;
use crate::ring::Turn;
use crate::signal::{Sampling, cpu_time};
use crate::stacks::{Addresses, Stacks};

/// Samples in each second of CPU time. Not 100, so that work that is done at round times is
/// not seen too often.
const PER_SECOND: u32 = 199;

/// How often samples are read.
const LOOK: Duration = Duration::from_millis(10);

/// Why nothing was recorded.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// One profile at a time.
    #[error("a profile is being recorded already")]
    Busy,
    /// The system refuses a timer or a signal.
    #[error("cannot take samples")]
    System(#[source] io::Error),
}

/// What was recorded. No other profile is recorded until it is dropped, so that memory is needed
/// for one at a time.
#[derive(Debug)]
pub struct Profile {
    /// When it began.
    pub began: SystemTime,
    /// How long it took.
    pub took: Duration,
    /// The CPU time for which a sample stands: what the process used, over all samples. The
    /// system may take fewer than were asked for.
    pub period: Duration,
    /// The stacks that were seen.
    pub stacks: Vec<Stack>,
    /// Samples that are not among them, because they came too fast or were too different.
    pub lost: u64,
    /// Held until the profile is dropped.
    pub(crate) _turn: Option<Turn>,
}

/// A stack, and how often it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// The name of the thread.
    pub thread: String,
    /// The functions, the outermost first.
    pub(crate) functions: Vec<Named>,
    /// The samples.
    pub count: u64,
}

/// Record where the process spends its CPU time, for `time` or until `stops` says so. `code`
/// is asked for the code that is in no file, at the begin and at the end. This takes the calling
/// thread.
///
/// # Errors
/// Somebody records already, or the system refuses it.
pub fn record(
    time: Duration,
    mut stops: impl FnMut() -> bool,
    code: impl Fn() -> Vec<Code>,
) -> Result<Profile, ProfileError> {
    let mut turn = Turn::take().ok_or(ProfileError::Busy)?;
    let mut objects = objects::loaded();
    let mut stacks = Stacks::new(&mut objects);
    let mut functions = code();
    let sampling = Sampling::start(&mut turn, PER_SECOND);
    let mut sampling = sampling.map_err(ProfileError::System)?;
    let (began, from, cpu) = (SystemTime::now(), Instant::now(), cpu_time());
    while from.elapsed() < time && !stops() {
        std::thread::sleep(LOOK.min(time.saturating_sub(from.elapsed())));
        sampling.read(|sample| stacks.add(sample));
    }
    let (took, cpu) = (from.elapsed(), cpu_time().saturating_sub(cpu));
    let lost = sampling.take_lost() + stacks.lost;
    drop(sampling);
    // What was loaded meanwhile. The code of the begin is still there, because `known` holds it.
    let old: HashSet<_> = functions.iter().map(|function| function.addresses.clone()).collect();
    functions.extend(code().into_iter().filter(|function| !old.contains(&function.addresses)));
    let samples = stacks.counts.values().sum::<u64>() + lost;
    let period = match u32::try_from(samples) {
        Ok(samples) if samples > 0 => cpu / samples,
        _ => Duration::from_secs(1) / PER_SECOND,
    };
    let all = stacks.counts.keys().flat_map(|stack| stack.addresses.iter().copied());
    let names = names_of(&all.collect::<BTreeSet<_>>(), &objects, &functions);
    Ok(Profile {
        began,
        took,
        period,
        stacks: named(&names, &stacks.counts),
        lost,
        _turn: Some(turn),
    })
}

/// The stacks by the names of their functions, sorted.
fn named(names: &HashMap<u64, Named>, counts: &HashMap<Addresses, u64>) -> Vec<Stack> {
    let mut threads = HashMap::new();
    let mut stacks: BTreeMap<(String, Vec<Named>), u64> = BTreeMap::new();
    for (Addresses { thread, addresses }, count) in counts {
        let thread: &String = threads.entry(*thread).or_insert_with(|| thread_name(*thread));
        let functions = addresses.iter().rev().filter_map(|address| names.get(address).cloned());
        *stacks.entry((thread.clone(), functions.collect())).or_default() += count;
    }
    let stack = |((thread, functions), count)| Stack { thread, functions, count };
    stacks.into_iter().map(stack).collect()
}

/// The name of a thread of this process; those that have ended have none any more.
fn thread_name(thread: i32) -> String {
    let name = std::fs::read_to_string(format!("/proc/self/task/{thread}/comm"));
    name.map_or_else(|_| "ended thread".into(), |name| name.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[inline(never)]
    fn busy_with_sums(stops: &AtomicBool) -> u64 {
        let mut sum = 0_u64;
        while !stops.load(Ordering::Relaxed) {
            for number in 0..1000_u64 {
                sum = black_box(sum.wrapping_add(number));
            }
        }
        sum
    }

    /// Ends the busy thread, also if the test fails.
    struct Ends<'a>(&'a AtomicBool);

    impl Drop for Ends<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_busy_thread_is_seen_and_one_profile_is_recorded_at_a_time() {
        let stops = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _ends = Ends(&stops);
            let busy = std::thread::Builder::new().name("sums".into());
            busy.spawn_scoped(scope, || busy_with_sums(&stops)).unwrap();
            // However busy the machine is: until the thread is seen by its name and its function.
            let seen = (0..20).find_map(|_| {
                let profile = record(Duration::from_millis(300), || false, Vec::new).unwrap();
                let is_seen = |stack: &Stack| {
                    let mut functions = stack.functions.iter();
                    stack.thread == "sums"
                        && functions.any(|frame| frame.function.contains("busy_with_sums"))
                };
                profile.stacks.iter().any(is_seen).then_some(profile)
            });
            let seen = seen.unwrap_or_else(|| {
                let profile = record(Duration::from_secs(1), || false, Vec::new).unwrap();
                panic!("{:?}", profile.stacks)
            });
            let second = record(Duration::from_secs(1), || true, Vec::new);
            assert!(matches!(second, Err(ProfileError::Busy)), "{second:?}");

            assert!(seen.flame_graph().contains("busy_with_sums"));
            let packed = seen.pprof();
            let mut bytes = Vec::new();
            let mut reader = flate2::read::GzDecoder::new(&*packed);
            io::Read::read_to_end(&mut reader, &mut bytes).unwrap();
            let names = String::from_utf8_lossy(&bytes);
            assert!(names.contains("busy_with_sums") && names.contains("nanoseconds"));

            drop(seen);
            let hour = Duration::from_secs(3600);
            let ended = record(hour, || true, Vec::new).unwrap();
            assert!(ended.took < hour);
        });
    }
}
