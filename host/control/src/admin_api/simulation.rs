//! Two servers that make random changes over one store, whose calls take their time and fail: many
//! short histories by tokio's paused clock. All choices of a history come from one seed.
//!
//! `dice` makes the choices, `network` delays calls and lets them fail, and `servers` starts and
//! kills servers and asks them for changes. `history` notes what is seen from outside, and checks
//! it at the end:
//! - the log has no gap, and each release follows the one before it;
//! - each change that was acknowledged is in the log, once, in the release that its answer names;
//!   one that was refused is not in it, and one whose outcome is open is in it at most once;
//! - each state that a server has ever served is that of a release in the log, and no server went
//!   back;
//! - in the end all servers serve the state of the last release, also those that start again with
//!   their disk, and one that starts without.
//!
//! `SIMULATION_SEEDS` is the number of histories, and `SIMULATION_FIRST` the first seed. A failure
//! prints its seed.

mod dice;
mod history;
mod network;
mod servers;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Builder;
use tokio::time::timeout;

use self::history::Outcome;
use self::servers::World;
use crate::testing::Machine;

/// The histories of an ordinary run.
const SEEDS: u64 = 1000;

/// The time, by the paused clock, after which a history does not end any more.
const LONGEST: Duration = Duration::from_secs(3600);

/// The stack of a thread. Futures are large without optimisation.
const STACK_BYTES: usize = 16 << 20;

/// The number in a variable of the environment.
fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a variable is no number"))
}

/// What is known of a history after its end.
struct Ended {
    outcomes: BTreeMap<u64, Outcome>,
    documents: BTreeMap<u64, Bytes>,
}

/// Run the history of a seed, and check it.
fn run(machine: &Arc<Machine>, seed: u64) -> Ended {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let world = World::new(machine.clone(), seed);
        let servers = timeout(LONGEST, Box::pin(world.run())).await.expect("it does not end");
        let (documents, history) = (world.shared.documents(), world.history.lock());
        history.check(&documents, &servers);
        Ended { outcomes: history.outcomes().clone(), documents }
    })
}

/// Run histories on all cores.
fn run_all(machine: &Arc<Machine>, seeds: &[u64]) {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(seeds.len());
    thread::scope(|scope| {
        for first in 0..threads {
            let seeds = seeds.iter().copied().skip(first).step_by(threads);
            let work = move || {
                for seed in seeds {
                    let ran = catch_unwind(AssertUnwindSafe(|| run(machine, seed)));
                    if let Err(panic) = ran {
                        println!("the seed is {seed}: SIMULATION_SEEDS=1 SIMULATION_FIRST={seed}");
                        resume_unwind(panic);
                    }
                }
            };
            thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work).unwrap();
        }
    });
}

#[test]
fn two_servers_of_one_store_agree_whatever_fails() {
    let directory = tempfile::tempdir().unwrap();
    let machine = Arc::new(Machine::of(directory.path()));
    let first = variable("SIMULATION_FIRST", 0);
    let seeds: Vec<_> = (first..first + variable("SIMULATION_SEEDS", SEEDS)).collect();
    run_all(&machine, &seeds);
}

#[test]
fn a_seed_has_one_history() {
    let directory = tempfile::tempdir().unwrap();
    let machine = Arc::new(Machine::of(directory.path()));
    for seed in 0..5 {
        let (one, other) = (run(&machine, seed), run(&machine, seed));
        assert_eq!(one.outcomes, other.outcomes, "{seed}");
        let numbers = |ended: &Ended| ended.documents.keys().copied().collect::<Vec<_>>();
        assert_eq!(numbers(&one), numbers(&other), "{seed}");
    }
}
