//! Failures that are injected in place of a session's.

use std::cell::Cell;

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use gristmill_core::TensorInfo;

use super::*;
use crate::breaker::{FAULTS_MAX, OPEN_MAX, OPEN_MIN};
use crate::options::ProviderKind;

/// Fails while it is told to, and counts its runs.
#[derive(Clone, Default)]
struct Scripted {
    fails: Arc<AtomicBool>,
    asked: Arc<AtomicU64>,
}

impl Model for Scripted {
    fn run(&mut self, _: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if self.fails.load(Ordering::Relaxed) {
            return Err(ModelError::new("device lost"));
        }
        Ok(Vec::new())
    }
}

impl Scripted {
    fn failing(self, fails: bool) -> Self {
        self.fails.store(fails, Ordering::Relaxed);
        self
    }

    fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }
}

thread_local! {
    static START: Instant = Instant::now();
    static PASSED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

fn simulated_now() -> Instant {
    START.with(|start| *start) + PASSED.get()
}

fn chain(models: [&Scripted; 2]) -> (Fallback, Arc<[ProviderHealth]>) {
    let health: Arc<[_]> = [ProviderKind::Cuda, ProviderKind::Cpu].map(ProviderHealth::new).into();
    let models = models.map(|model| Box::new(model.clone()) as Box<dyn Model>).into();
    (
        Fallback { now: simulated_now, ..Fallback::new(models, health.clone(), &info(Some(1))) },
        health,
    )
}

#[test]
fn the_next_provider_runs_what_the_best_one_fails_and_the_breaker_opens_and_probes() {
    let (best, next) = (Scripted::default().failing(true), Scripted::default());
    let (mut chain, health) = chain([&best, &next]);
    for _ in 0..10 {
        chain.run(&[]).unwrap();
    }
    assert_eq!((best.asked(), next.asked()), (3, 10), "left alone after three faults");
    assert!(health[0].is_open() && !health[1].is_open());
    assert_eq!(chain.provider(), Some("cpu"));
    assert_eq!((health[0].faults(), health[1].runs()), (3, 10));

    PASSED.set(OPEN_MIN);
    chain.run(&[]).unwrap();
    chain.run(&[]).unwrap();
    assert_eq!(best.asked(), 4, "one probe, which failed");

    best.fails.store(false, Ordering::Relaxed);
    PASSED.set(OPEN_MIN * 2);
    chain.run(&[]).unwrap();
    assert_eq!(best.asked(), 4, "the second wait is twice as long");
    PASSED.set(OPEN_MIN * 3);
    chain.run(&[]).unwrap();
    chain.run(&[]).unwrap();
    assert_eq!((best.asked(), health[0].runs()), (6, 2), "the probe succeeded");
    assert!(!health[0].is_open());
    assert_eq!(chain.provider(), Some("cuda"));
}

/// Panics in each run.
struct Panicking;

impl Model for Panicking {
    fn run(&mut self, _: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        panic!("as told")
    }
}

#[test]
fn a_provider_that_panics_is_one_that_fails() {
    let health: Arc<[_]> = [ProviderKind::Cuda, ProviderKind::Cpu].map(ProviderHealth::new).into();
    let next = Scripted::default();
    let models: Vec<Box<dyn Model>> = vec![Box::new(Panicking), Box::new(next.clone())];
    let mut chain = Fallback::new(models, health.clone(), &info(Some(1)));
    chain.run(&[]).unwrap();
    assert_eq!((health[0].faults(), health[1].runs()), (1, 1));
    next.fails.store(true, Ordering::Relaxed);
    assert_eq!(chain.run(&[]).unwrap_err().text, "panicked");
    next.fails.store(false, Ordering::Relaxed);
    chain.run(&[]).unwrap();
    assert_eq!((health[0].faults(), health[1].runs()), (2, 2));
}

#[test]
fn an_input_that_fails_everywhere_opens_no_breaker() {
    let (best, next) = (Scripted::default().failing(true), Scripted::default().failing(true));
    let (mut chain, health) = chain([&best, &next]);
    for _ in 0..10 {
        assert_eq!(chain.run(&[]).unwrap_err().text, "device lost");
    }
    assert_eq!((best.asked(), health[0].faults()), (10, 0));
    best.fails.store(false, Ordering::Relaxed);
    chain.run(&[]).unwrap();
    assert_eq!(health[0].runs(), 1);
}

#[test]
fn waits_are_doubled_up_to_a_maximum_and_a_success_forgets_them() {
    let mut breaker = Breaker::default();
    let mut now = Instant::now();
    for _ in 0..FAULTS_MAX {
        assert!(breaker.may_try(now));
        breaker.failed(now);
    }
    let mut wait = OPEN_MIN;
    for _ in 0..10 {
        assert!(!breaker.may_try(now + wait - Duration::from_millis(1)));
        now += wait;
        assert!(breaker.may_try(now));
        breaker.failed(now);
        wait = (wait * 2).min(OPEN_MAX);
    }
    assert_eq!(wait, OPEN_MAX);
    breaker.succeeded();
    breaker.failed(now);
    assert!(breaker.may_try(now));
}

/// Is told to end while it runs.
struct InterruptedModel {
    stop: Arc<std::sync::OnceLock<Arc<dyn Interrupt>>>,
}

impl Model for InterruptedModel {
    fn run(&mut self, _: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        self.stop.get().unwrap().interrupt();
        Err(ModelError::new("ended"))
    }
}

#[test]
fn what_was_told_to_end_is_not_repeated_on_the_next_provider() {
    let health: Arc<[_]> = [ProviderKind::Cuda, ProviderKind::Cpu].map(ProviderHealth::new).into();
    let (stop, next) = (Arc::default(), Scripted::default());
    let first = InterruptedModel { stop: Arc::clone(&stop) };
    let mut chain = Fallback::new(
        vec![Box::new(first), Box::new(next.clone())],
        health.clone(),
        &info(Some(1)),
    );
    let interrupt = chain.interrupt().unwrap();
    assert!(stop.set(interrupt.clone()).is_ok());
    assert_eq!(chain.run(&[]).unwrap_err().text, "ended");
    assert_eq!((next.asked(), health[0].faults()), (0, 0));
    interrupt.rearm();
    assert!(!chain.stop.ordered.load(Ordering::Acquire));
}

/// A model with rows of so many columns; none for any number.
fn info(columns: Option<usize>) -> ModelInfo {
    let tensor = TensorInfo {
        name: "x".into(),
        dtype: gristmill_core::Dtype::Uint8,
        dims: vec![None, columns],
    };
    ModelInfo {
        backend: "test",
        inputs: vec![tensor],
        outputs: Vec::new(),
        forms_batches: true,
        optional: Vec::new(),
        equal_dims: Vec::new(),
    }
}

/// Has memory for so many rows.
struct Small(usize);

impl Model for Small {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        match inputs[0].rows() <= self.0 {
            true => Ok(inputs.to_vec()),
            false => Err(ModelError { kind: ModelErrorKind::OutOfMemory, text: "too much".into() }),
        }
    }
}

#[test]
fn rows_that_need_too_much_memory_are_not_the_providers_fault() {
    let rows = |rows: usize| {
        let buffer = gristmill_core::BufferPool::new(0).copy_from(&vec![0; rows]);
        Tensor::new(gristmill_core::Dtype::Uint8, [rows, 1].as_slice().into(), buffer).unwrap()
    };
    let times = u64::from(FAULTS_MAX) - 1;
    for (fits, columns, expected) in
        [(1, Some(1), [0, 0]), (0, None, [0, times]), (0, Some(1), [times, times])]
    {
        let health: Arc<[_]> =
            [ProviderKind::Cuda, ProviderKind::Cpu].map(ProviderHealth::new).into();
        let next = Scripted::default();
        let models: Vec<Box<dyn Model>> = vec![Box::new(Small(fits)), Box::new(next.clone())];
        let mut chain = Fallback::new(models, health.clone(), &info(columns));
        for _ in 0..times {
            assert_eq!(chain.run(&[rows(2)]).unwrap_err().kind, ModelErrorKind::OutOfMemory);
            chain.run(&[rows(1)]).unwrap();
        }
        assert_eq!([health[0].faults(), next.asked()], expected, "{fits} {columns:?}");
    }
}
