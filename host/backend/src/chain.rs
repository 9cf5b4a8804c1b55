//! Providers in order of preference: the best one that works runs the batch.
//!
//! A run that fails on one provider is repeated on the next. If that succeeds, the first was at fault, and
//! after some such faults in a row its circuit breaker opens: it is left alone for a while, then one batch
//! probes it. If every provider fails, the input was at fault, and no breaker hears of it: a tenant's bad
//! input cannot take a provider out of service.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use gristmill_core::{Interrupt, Model, ModelError, Tensor, run_guarded};

use crate::onnxruntime::is_over_limit;

/// Faults in a row that open the breaker.
const FAULTS_MAX: u32 = 3;

/// How long a breaker stays open at first; doubled each time the probe fails, up to the maximum.
const OPEN_MIN: Duration = Duration::from_secs(1);
const OPEN_MAX: Duration = Duration::from_secs(60);

/// What became of a provider's runs, over all of a model's instances.
#[derive(Debug)]
pub struct ProviderHealth {
    /// `cuda`, `cpu` or `tract`.
    pub name: &'static str,
    runs: AtomicU64,
    faults: AtomicU64,
    open: AtomicBool,
}

impl ProviderHealth {
    pub(crate) fn new(name: &'static str) -> Self {
        let (runs, faults) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { name, runs, faults, open: AtomicBool::new(false) }
    }

    /// Batches it ran.
    pub fn runs(&self) -> u64 {
        self.runs.load(Ordering::Relaxed)
    }

    /// Batches that failed on it and were run by another.
    pub fn faults(&self) -> u64 {
        self.faults.load(Ordering::Relaxed)
    }

    /// Whether it is left alone for now because of its faults.
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }
}

/// Whether a provider may be tried. Pure.
#[derive(Debug, Default)]
struct Breaker {
    faults: u32,
    open: Option<Open>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    until: Instant,
    time: Duration,
}

impl Breaker {
    fn admits(&self, now: Instant) -> bool {
        self.open.is_none_or(|open| open.until <= now)
    }

    fn succeeded(&mut self) {
        *self = Self::default();
    }

    fn failed(&mut self, now: Instant) {
        self.faults += 1;
        let time = match self.open {
            Some(open) => (open.time * 2).min(OPEN_MAX),
            None if self.faults >= FAULTS_MAX => OPEN_MIN,
            None => return,
        };
        self.open = Some(Open { until: now + time, time });
    }
}

struct Link {
    model: Box<dyn Model>,
    breaker: Breaker,
}

/// Ends the run of a whole chain: what one provider was told to end is not repeated on the next.
struct ChainStop {
    ordered: AtomicBool,
    links: Vec<Arc<dyn Interrupt>>,
}

impl Interrupt for ChainStop {
    fn interrupt(&self) {
        self.ordered.store(true, Ordering::Release);
        self.links.iter().for_each(|link| link.interrupt());
    }

    fn rearm(&self) {
        self.ordered.store(false, Ordering::Release);
        self.links.iter().for_each(|link| link.rearm());
    }
}

/// One instance of a model on several providers, the best first.
pub(crate) struct Chain {
    links: Vec<Link>,
    stop: Arc<ChainStop>,
    health: Arc<[ProviderHealth]>,
    served_by: Option<&'static str>,
    now: fn() -> Instant,
}

impl Chain {
    /// `models` are on the providers of `health`, in that order.
    pub(crate) fn new(models: Vec<Box<dyn Model>>, health: Arc<[ProviderHealth]>) -> Self {
        let interrupts = models.iter().filter_map(|model| model.interrupt()).collect();
        let stop = ChainStop { ordered: AtomicBool::new(false), links: interrupts };
        let links = models.into_iter().map(|model| Link { model, breaker: Breaker::default() });
        let (links, stop) = (links.collect(), Arc::new(stop));
        Self { links, stop, health, served_by: None, now: Instant::now }
    }
}

impl Model for Chain {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        let now = (self.now)();
        let mut failed: Vec<usize> = Vec::new();
        let mut first_error = None;
        let last = self.links.len().saturating_sub(1);
        for index in 0..self.links.len() {
            let link = &mut self.links[index];
            // The last one is all there is when the others are open.
            if index < last && !link.breaker.admits(now) {
                continue;
            }
            match run_guarded(link.model.as_mut(), inputs) {
                Ok(outputs) => {
                    link.breaker.succeeded();
                    let health = &self.health[index];
                    health.runs.fetch_add(1, Ordering::Relaxed);
                    self.served_by = Some(health.name);
                    if health.open.swap(false, Ordering::Relaxed) {
                        tracing::info!(provider = health.name, "provider works again");
                    }
                    for faulty in failed {
                        self.fault(faulty, now, first_error.as_ref());
                    }
                    return Ok(outputs);
                }
                Err(error) if self.stop.ordered.load(Ordering::Acquire) => return Err(error),
                // The input asked for it, and the next provider need not have a limit.
                Err(error) if is_over_limit(&error) => return Err(error),
                Err(error) => {
                    failed.push(index);
                    first_error.get_or_insert(error);
                }
            }
        }
        Err(first_error.unwrap_or_else(|| ModelError("no provider".into())))
    }

    fn provider(&self) -> Option<&'static str> {
        self.served_by
    }

    fn interrupt(&self) -> Option<Arc<dyn Interrupt>> {
        Some(self.stop.clone())
    }
}

impl Chain {
    /// The provider failed where another did not.
    fn fault(&mut self, index: usize, now: Instant, error: Option<&ModelError>) {
        let (health, breaker) = (&self.health[index], &mut self.links[index].breaker);
        breaker.failed(now);
        health.faults.fetch_add(1, Ordering::Relaxed);
        let open = breaker.open.is_some();
        health.open.store(open, Ordering::Relaxed);
        let error = error.map(ToString::to_string);
        tracing::warn!(
            provider = health.name,
            error,
            open,
            "provider failed, another ran the batch"
        );
    }
}

#[cfg(test)]
mod tests;
