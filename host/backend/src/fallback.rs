//! Providers in order of preference: the best one that works runs the batch.
//!
//! A run that fails on one provider is repeated on the next. If that succeeds, the first provider
//! was at fault. After some such faults in a row its circuit breaker opens: the provider is not
//! tried for a while, then one batch probes it. If every provider fails, the input was at fault,
//! and no breaker counts the failure. So a tenant's bad input cannot take a provider out of
//! service. For the same reason a batch of several rows that needs too much memory is not repeated
//! on the next provider: parts of it may fit, and the batcher tries them. For a single row that is
//! done, and counted as a fault if all rows of the model are as large as each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use gristmill_core::{
    Interrupt, Model, ModelError, ModelErrorKind, ModelInfo, NamedTensor, Tensor, run_guarded_with,
};

use crate::breaker::Breaker;
use crate::health::ProviderHealth;

struct Link {
    model: Box<dyn Model>,
    breaker: Breaker,
}

/// Ends a run on all providers: a run that was told to end is not repeated on the next one.
struct FallbackStop {
    ordered: AtomicBool,
    links: Vec<Arc<dyn Interrupt>>,
}

impl Interrupt for FallbackStop {
    fn interrupt(&self) {
        self.ordered.store(true, Ordering::Release);
        self.links.interrupt();
    }

    fn rearm(&self) {
        self.ordered.store(false, Ordering::Release);
        self.links.rearm();
    }
}

/// One instance of a model on several providers, the best first.
pub(crate) struct Fallback {
    links: Vec<Link>,
    stop: Arc<FallbackStop>,
    health: Arc<[ProviderHealth]>,
    /// As in [`ModelInfo::rows_are_alike`].
    rows_are_alike: bool,
    served_by: Option<&'static str>,
    /// Whether all providers that were tried last run on the calling thread.
    on_caller: bool,
    now: fn() -> Instant,
}

impl Fallback {
    /// An instance of the model `info` from `models`, which are on the providers of `health`, in
    /// that order.
    pub(crate) fn new(
        models: Vec<Box<dyn Model>>,
        health: Arc<[ProviderHealth]>,
        info: &ModelInfo,
    ) -> Self {
        let interrupts = models.iter().filter_map(|model| model.interrupt()).collect();
        let stop = FallbackStop { ordered: AtomicBool::new(false), links: interrupts };
        let links = models.into_iter().map(|model| Link { model, breaker: Breaker::default() });
        let (links, stop) = (links.collect(), Arc::new(stop));
        Self {
            links,
            stop,
            health,
            rows_are_alike: info.rows_are_alike(),
            served_by: None,
            on_caller: false,
            now: Instant::now,
        }
    }
}

impl Model for Fallback {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        self.run_with(inputs, &[])
    }

    fn run_with(
        &mut self,
        inputs: &[Tensor],
        optional: &[NamedTensor],
    ) -> Result<Vec<Tensor>, ModelError> {
        let now = (self.now)();
        let mut failed: Vec<usize> = Vec::new();
        let mut first_error = None;
        let last = self.links.len().saturating_sub(1);
        self.on_caller = true;
        let rows = inputs.first().map_or(0, Tensor::rows);
        for index in 0..self.links.len() {
            let link = &mut self.links[index];
            // The last provider is tried even if its breaker is open.
            if index < last && !link.breaker.may_try(now) {
                continue;
            }
            self.on_caller &= link.model.ran_on_caller();
            match run_guarded_with(link.model.as_mut(), inputs, optional) {
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
                // The input caused it, and the next provider may have no limit.
                Err(error) if error.kind == ModelErrorKind::OverLimit => return Err(error),
                Err(error) if error.kind == ModelErrorKind::OutOfMemory && rows > 1 => {
                    return Err(error);
                }
                Err(error) => {
                    if error.kind == ModelErrorKind::OutOfMemory && !self.rows_are_alike {
                        let provider = self.health[index].name;
                        tracing::warn!(provider, %error, "too little memory for one row");
                    } else {
                        failed.push(index);
                    }
                    first_error.get_or_insert(error);
                }
            }
        }
        Err(first_error.unwrap_or_else(|| ModelError::new("no provider")))
    }

    fn provider(&self) -> Option<&'static str> {
        self.served_by
    }

    fn ran_on_caller(&self) -> bool {
        self.on_caller
    }

    fn interrupt(&self) -> Option<Arc<dyn Interrupt>> {
        Some(self.stop.clone())
    }
}

impl Fallback {
    /// The provider failed on a batch that another provider ran.
    fn fault(&mut self, index: usize, now: Instant, error: Option<&ModelError>) {
        let (health, breaker) = (&self.health[index], &mut self.links[index].breaker);
        breaker.failed(now);
        health.faults.fetch_add(1, Ordering::Relaxed);
        let open = breaker.is_open();
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
