//! Recording for a time.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::time::{Duration, Instant, SystemTime};

use crate::names::{Code, Named, names_of};
use crate::objects;
use crate::signal::Sampling;
use crate::stacks::{Addresses, Stacks};

/// Samples in each second of processor time. Not 100, so that work that is done at round times is
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

/// What was recorded.
#[derive(Clone, Debug)]
pub struct Profile {
    /// When it began.
    pub began: SystemTime,
    /// How long it took.
    pub took: Duration,
    /// The processor time for which a sample stands.
    pub period: Duration,
    /// The stacks that were seen.
    pub stacks: Vec<Stack>,
    /// Samples that are not among them, because they came too fast or were too different.
    pub lost: u64,
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

impl Stack {
    /// The names of the functions, the outermost first.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.functions.iter().map(|own| &*own.function)
    }
}

/// Record where the process spends its processor time, for `time` or until `stops` says so. `code`
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
    let mut objects = objects::loaded();
    let mut stacks = Stacks::new(&mut objects);
    let mut known = code();
    let sampling = Sampling::start(PER_SECOND).map_err(ProfileError::System)?;
    let mut sampling = sampling.ok_or(ProfileError::Busy)?;
    let (began, from) = (SystemTime::now(), Instant::now());
    while from.elapsed() < time && !stops() {
        std::thread::sleep(LOOK.min(time.saturating_sub(from.elapsed())));
        sampling.read(|sample| stacks.add(sample));
    }
    let took = from.elapsed();
    let lost = sampling.take_lost() + stacks.lost;
    drop(sampling);
    known.extend(code());
    let all = stacks.counts.keys().flat_map(|own| own.addresses.iter().copied());
    let names = names_of(&all.collect::<BTreeSet<_>>(), &objects, &known);
    Ok(Profile {
        began,
        took,
        period: Duration::from_secs(1) / PER_SECOND,
        stacks: named(&names, &stacks.counts),
        lost,
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

    #[test]
    fn a_busy_thread_is_seen_with_its_functions_and_in_both_formats() {
        let stops = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let busy = std::thread::Builder::new().name("sums".into());
            busy.spawn_scoped(scope, || busy_with_sums(&stops)).unwrap();
            let deadline = Instant::now() + Duration::from_secs(60);
            // Until it is seen, however busy the machine is.
            let seen = loop {
                let none = Vec::new;
                let profile = record(Duration::from_millis(300), || false, none).unwrap();
                let is_seen = |stack: &&Stack| {
                    stack.thread == "sums"
                        && stack.functions().any(|name| name.contains("busy_with_sums"))
                };
                if profile.stacks.iter().any(|stack| is_seen(&stack)) {
                    break profile;
                }
                assert!(Instant::now() < deadline, "{:?}", profile.stacks);
            };
            stops.store(true, Ordering::Relaxed);
            let picture = seen.flame_graph();
            assert!(picture.contains("<svg") && picture.contains("busy_with_sums"));
            let packed = seen.pprof();
            let mut bytes = Vec::new();
            let mut reader = flate2::read::GzDecoder::new(&*packed);
            io::Read::read_to_end(&mut reader, &mut bytes).unwrap();
            let names = String::from_utf8_lossy(&bytes);
            assert!(names.contains("busy_with_sums") && names.contains("nanoseconds"));
        });
    }

    #[test]
    fn one_profile_at_a_time_and_it_ends_when_it_is_told_to() {
        let mut asked = false;
        let mut stops = || std::mem::replace(&mut asked, true);
        let none = Vec::new;
        let deadline = Instant::now() + Duration::from_secs(60);
        // Another test may record.
        let profile = loop {
            let inner = || match stops() {
                false => false,
                true => {
                    let second = record(Duration::from_secs(1), || true, none);
                    assert!(matches!(second, Err(ProfileError::Busy)), "{second:?}");
                    true
                }
            };
            match record(Duration::from_secs(3600), inner, none) {
                Ok(profile) => break profile,
                Err(ProfileError::Busy) => assert!(Instant::now() < deadline),
                Err(error) => panic!("{error}"),
            }
        };
        assert!(profile.took < Duration::from_secs(3600));
    }
}
