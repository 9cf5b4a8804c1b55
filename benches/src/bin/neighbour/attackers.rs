//! Many hostile requests at once, on one separate thread.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use gristmill_platform::Share;
use tokio::task::JoinSet;

use crate::attack::{Addresses, Attack, Turn};

/// The pause after a request that failed without an answer.
const RETRY_AFTER: Duration = Duration::from_millis(50);

/// How an attack is made.
pub(crate) struct Plan {
    pub(crate) attack: Arc<Attack>,
    pub(crate) to: Addresses,
    pub(crate) attackers: usize,
    /// No new request begins after this time.
    pub(crate) time: Duration,
    /// Requests under way are waited for this much longer.
    pub(crate) patience: Duration,
    /// Whether each attacker sends only one request.
    pub(crate) once: bool,
    /// Set when the server was killed. The attackers stop then.
    pub(crate) over: Arc<AtomicBool>,
    /// A number that makes the uploads of this attack different from earlier ones.
    pub(crate) first_round: u64,
}

/// The outcomes of the hostile requests.
#[derive(Default)]
pub(crate) struct Outcomes {
    /// The number of requests for each outcome.
    pub(crate) counts: BTreeMap<String, usize>,
    /// The time of the longest request.
    pub(crate) longest: Duration,
    /// Requests that were still under way when the wait ended.
    pub(crate) unanswered: usize,
}

impl Plan {
    /// Attack, and wait for the requests under way. The attackers stand for other machines, so
    /// their thread has a small share of the processor: it should take little from server and
    /// neighbour.
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

/// One attacker. It sends one request after the other, each on a new connection.
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
