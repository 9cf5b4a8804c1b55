//! Many hostile requests at once, on a thread of their own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use gristmill_thread::Share;
use tokio::task::JoinSet;

use crate::attack::{Addresses, Attack, Turn};

/// After an attack that cannot even connect.
const RETRY_AFTER: Duration = Duration::from_millis(50);

/// How an attack is made.
pub(crate) struct Plan {
    pub(crate) attack: Arc<Attack>,
    pub(crate) to: Addresses,
    pub(crate) attackers: usize,
    /// No new request begins after so long.
    pub(crate) time: Duration,
    /// Nothing is waited for longer than that.
    pub(crate) patience: Duration,
    /// Each attacker acts once.
    pub(crate) once: bool,
    /// Set if the server was killed: there is nothing left to attack.
    pub(crate) over: Arc<AtomicBool>,
    /// A number that makes the uploads of this attack different from earlier ones.
    pub(crate) first_round: u64,
}

/// The outcome.
#[derive(Default)]
pub(crate) struct Outcomes {
    /// The number of requests for each outcome.
    pub(crate) counts: BTreeMap<String, usize>,
    pub(crate) longest: Duration,
    /// Requests that were not waited for any longer.
    pub(crate) unanswered: usize,
}

impl Plan {
    /// Attack, and wait for what is under way. The attackers stand for machines of their own, so
    /// they take the processor only from one another.
    pub(crate) fn run(self) -> Result<Outcomes> {
        thread::scope(|scope| {
            let attackers = scope.spawn(|| {
                Share::Long.apply()?;
                self.run_here()
            });
            attackers.join().map_err(|_| anyhow!("the attackers' thread panicked"))?
        })
    }

    fn run_here(self) -> Result<Outcomes> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let began = Instant::now();
        let give_up = began + self.time + self.patience;
        let plan = Arc::new(self);
        let mut outcomes = runtime.block_on(async {
            let mut tasks = JoinSet::new();
            for attacker in 0..plan.attackers {
                tasks.spawn(attack(plan.clone(), attacker, began));
            }
            let mut outcomes = Outcomes::default();
            while let Ok(Some(ended)) =
                tokio::time::timeout_at(give_up.into(), tasks.join_next()).await
            {
                outcomes.add(ended?);
            }
            outcomes.unanswered = tasks.len();
            anyhow::Ok(outcomes)
        })?;
        if outcomes.unanswered > 0 {
            outcomes.longest = outcomes.longest.max(began.elapsed() - plan.time);
        }
        Ok(outcomes)
    }
}

/// One attacker: one request after the other, each on a connection of its own.
async fn attack(plan: Arc<Plan>, attacker: usize, began: Instant) -> Outcomes {
    let (mut outcomes, until) = (Outcomes::default(), began + plan.time);
    for round in plan.first_round.. {
        let sent = Instant::now();
        let result = plan.attack.run(&plan.to, Turn { attacker, round, until }).await;
        outcomes.longest = outcomes.longest.max(sent.elapsed());
        let failed = result.is_err();
        // An error names addresses and numbers that differ each time.
        let ended = result.unwrap_or_else(|error| format!("connection: {}", error.root_cause()));
        *outcomes.counts.entry(ended).or_default() += 1;
        if plan.once || Instant::now() >= until || plan.over.load(Ordering::Relaxed) {
            break;
        }
        if failed {
            tokio::time::sleep(RETRY_AFTER).await;
        }
    }
    outcomes
}

impl Outcomes {
    fn add(&mut self, other: Self) {
        for (ended, count) in other.counts {
            *self.counts.entry(ended).or_default() += count;
        }
        self.longest = self.longest.max(other.longest);
    }
}
