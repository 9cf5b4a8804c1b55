//! Runs that do not end by themselves.

use std::sync::Condvar;
use std::sync::atomic::{AtomicUsize, Ordering};

use gristmill_core::{Interrupt, ModelUse};

use super::*;
use crate::{LOST_RUNS_MAX, Refusal, Replace, Upkeep};

/// Answers at once. On a negative input it runs until the gate is open.
#[derive(Clone, Default)]
struct Endless {
    gate: Arc<Gate>,
    /// Whether it obeys the order to end.
    heeds: bool,
}

#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
    runs: AtomicUsize,
}

impl Gate {
    fn set(&self, open: bool) {
        *self.open.lock().unwrap() = open;
        self.opened.notify_all();
    }
}

impl Interrupt for Gate {
    fn interrupt(&self) {
        self.set(true);
    }

    fn rearm(&self) {
        self.set(false);
    }
}

impl Model for Endless {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        self.gate.runs.fetch_add(1, Ordering::Relaxed);
        if inputs[0].as_f32().unwrap().iter().all(|value| *value >= 0.0) {
            return Ok(inputs.to_vec());
        }
        let mut open = self.gate.open.lock().unwrap();
        while !*open {
            open = self.gate.opened.wait(open).unwrap();
        }
        Err(ModelError::new("ended"))
    }

    fn interrupt(&self) -> Option<Arc<dyn Interrupt>> {
        self.heeds.then(|| self.gate.clone() as Arc<dyn Interrupt>)
    }
}

const SOON: Duration = Duration::from_millis(10);
const LONG: Duration = Duration::from_secs(60);

/// A lane over one instance of `model`, which is replaced by another of the same kind.
fn lane(model: &Endless) -> (Arc<Lane>, Arc<AtomicUsize>) {
    let again = model.clone();
    lane_with(model, Box::new(move || Ok(Box::new(again.clone()))))
}

fn lane_with(model: &Endless, replace: Replace) -> (Arc<Lane>, Arc<AtomicUsize>) {
    let lost_runs = Arc::new(AtomicUsize::new(0));
    let upkeep = Upkeep { replace: Some(replace), lost_runs: lost_runs.clone() };
    let config = LaneConfig { run_grace: SOON, lost_after: SOON, ..LaneConfig::new(8, 64) };
    let instances: Vec<Box<dyn Model>> = vec![Box::new(model.clone())];
    let (info, pool) = (info(), BufferPool::new(1 << 20));
    let parts = LaneParts { name: "endless", info, instances, config, pool };
    (Arc::new(Lane::with_upkeep(parts, upkeep).unwrap()), lost_runs)
}

async fn run(lane: &Lane, values: &[f32], patience: Duration) -> Result<Vec<f32>, SubmitError> {
    let submission = submission(&BufferPool::new(0), "a", values, patience);
    let outputs = lane.submit(submission, None).await?.outputs;
    Ok(outputs[0].as_f32().unwrap().to_vec())
}

/// Send requests that do not end until a run is lost. On a busy machine a request may expire before
/// it runs, so one may not be enough.
async fn lose_run(lane: &Arc<Lane>) -> tokio::task::JoinHandle<Result<Vec<f32>, SubmitError>> {
    let before = lane.statistics().lost;
    let send = || {
        let lane = lane.clone();
        tokio::spawn(async move { run(&lane, &[-1.0], SOON).await })
    };
    let mut task = send();
    let lost = || {
        if task.is_finished() {
            task = send();
        }
        lane.statistics().lost > before
    };
    until("a run is lost", lost).await;
    task
}

/// The outcome of a request of two rows that does not end. On a busy machine a request may expire
/// before it runs, so others follow until one runs.
async fn run_endless(lane: &Lane) -> Result<Vec<f32>, SubmitError> {
    loop {
        let outcome = run(lane, &[-1.0, -2.0], SOON).await;
        if !matches!(outcome, Err(SubmitError::Expired | SubmitError::TooBusy { .. })) {
            return outcome;
        }
        tokio::task::yield_now().await;
    }
}

/// Two tenants send requests that form one batch, and its run is told to end. Returns what each is
/// charged. The instance is busy until both requests are queued. On a busy machine they may expire
/// before the run, so others follow.
async fn use_of_a_shared_run(lane: &Arc<Lane>, model: &Endless) -> [ModelUse; 2] {
    let shared_runs = || lane.statistics().mixed_batches;
    loop {
        let submit = |tenant: &str, patience: Duration| {
            let submission = submission(&BufferPool::new(0), tenant, &[-1.0], patience);
            let lane = lane.clone();
            tokio::spawn(async move { lane.submit(submission, None).await })
        };
        let (runs, shared) = (model.gate.runs.load(Ordering::Relaxed), shared_runs());
        let first = submit("a", SOON);
        let begun = || model.gate.runs.load(Ordering::Relaxed) > runs || first.is_finished();
        until("the instance is busy", begun).await;
        let both = ["a", "b"].map(|tenant| submit(tenant, SOON * 50));
        let mut used = Vec::new();
        for task in both {
            if let Err(SubmitError::GivenUp { used: model_use }) = task.await.unwrap() {
                used.push(model_use);
            }
        }
        if let Ok(used) = used.try_into()
            && shared_runs() > shared
        {
            return used;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_of_several_tenants_that_is_told_to_end_is_charged_to_nobody() {
    let model = Endless { heeds: true, ..Endless::default() };
    let (lane, _) = lane(&model);
    let used = within("both run", use_of_a_shared_run(&lane, &model)).await;
    assert_eq!(used, [ModelUse::default(); 2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_past_its_deadline_is_ended_and_the_instance_serves_on() {
    let model = Endless { heeds: true, ..Endless::default() };
    let (lane, lost_runs) = lane(&model);
    for times in 1..=4 {
        let outcome = within("a request runs", run_endless(&lane)).await;
        let Err(SubmitError::GivenUp { used }) = outcome else { panic!("{outcome:?}") };
        assert_eq!(used.rows, 2);
        assert!(used.time > Duration::ZERO);
        assert_eq!(run(&lane, &[3.0], LONG).await.unwrap(), [3.0]);
        let statistics = lane.statistics();
        assert_eq!((statistics.given_up, statistics.lost), (times, 0));
        assert_eq!(statistics.bisections, 0, "what was ended is not tried again");
    }
    assert_eq!(model.gate.runs.load(Ordering::Relaxed), 8);
    assert_eq!(lost_runs.load(Ordering::Relaxed), 0);
}

// The runs are led, so a lost run holds a thread of the runtime.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_run_that_cannot_be_ended_costs_its_instance_and_too_many_the_model() {
    let model = Endless::default();
    let (lane, lost_runs) = lane(&model);
    let mut stuck = Vec::new();
    for _ in 0..LOST_RUNS_MAX {
        stuck.push(lose_run(&lane).await);
        // The instance in place of the lost one serves this request.
        assert_eq!(run(&lane, &[1.0], LONG).await.unwrap(), [1.0]);
    }
    assert!(lane.refusal().is_none());
    stuck.push(lose_run(&lane).await);
    until("the model is refused", || lane.refusal().is_some()).await;
    let refused = run(&lane, &[1.0], LONG).await;
    assert!(
        matches!(&refused, Err(SubmitError::OutOfService(why)) if matches!(why, Refusal::LostRuns(_)))
    );
    assert_eq!(lost_runs.load(Ordering::Relaxed), LOST_RUNS_MAX + 1);

    model.gate.set(true);
    until("the lost runs end", || lost_runs.load(Ordering::Relaxed) == 0).await;
    for task in stuck {
        assert!(within("a stuck request ends", task).await.unwrap().is_err());
    }
    // The instance that came back does not keep the order to end.
    assert_eq!(run(&lane, &[1.0], LONG).await.unwrap(), [1.0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_that_cannot_be_replaced_serves_again_when_its_run_ends() {
    let model = Endless::default();
    let (lane, _) = lane_with(&model, Box::new(|| Err("no memory".into())));
    for _ in 0..2 {
        let stuck = lose_run(&lane).await;
        until("the model is refused", || lane.refusal().is_some()).await;
        assert!(matches!(lane.refusal(), Some(Refusal::NotReplaced(_))));
        model.gate.set(true);
        assert!(within("the stuck request ends", stuck).await.unwrap().is_err());
        until("the model is not refused", || lane.refusal().is_none()).await;
        assert_eq!(run(&lane, &[1.0], LONG).await.unwrap(), [1.0]);
        model.gate.set(false);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_whose_run_ends_before_its_replacement_fails_serves_on() {
    let model = Endless::default();
    let (fail, failing) = channel::<()>();
    let failing = Mutex::new(failing);
    let replace = move || {
        let _ = failing.lock().unwrap().recv();
        Err("no memory".into())
    };
    let (lane, lost_runs) = lane_with(&model, Box::new(replace));
    let stuck = lose_run(&lane).await;
    model.gate.set(true);
    assert!(within("the stuck request ends", stuck).await.unwrap().is_err());
    until("the lost run ends", || lost_runs.load(Ordering::Relaxed) == 0).await;
    assert_eq!(run(&lane, &[1.0], LONG).await.unwrap(), [1.0]);
    drop(fail);
    for _ in 0..100 {
        assert_eq!(run(&lane, &[1.0], LONG).await.unwrap(), [1.0]);
    }
    assert!(lane.refusal().is_none());
}

/// Runs of another lane over the same file count, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_model_serves_again_only_when_few_enough_runs_are_lost() {
    let model = Endless::default();
    let (lane, lost_runs) = lane(&model);
    lost_runs.store(LOST_RUNS_MAX + 1, Ordering::Relaxed);
    let stuck = lose_run(&lane).await;
    until("the model is refused", || lane.refusal().is_some()).await;
    model.gate.set(true);
    assert!(within("the stuck request ends", stuck).await.unwrap().is_err());
    until("the lost run ends", || lost_runs.load(Ordering::Relaxed) == LOST_RUNS_MAX + 1).await;
    assert!(matches!(run(&lane, &[1.0], LONG).await, Err(SubmitError::OutOfService(_))));
    lost_runs.fetch_sub(1, Ordering::Relaxed);
    assert_eq!(run(&lane, &[1.0], LONG).await.unwrap(), [1.0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_queued_behind_a_lost_run_is_told_when_the_model_is_refused() {
    let model = Endless::default();
    let (lane, lost_runs) = lane(&model);
    lost_runs.store(LOST_RUNS_MAX, Ordering::Relaxed);
    let stuck_lane = lane.clone();
    let stuck =
        tokio::spawn(async move { run(&stuck_lane, &[-1.0], Duration::from_secs(1)).await });
    let runs = || {
        assert!(!stuck.is_finished());
        model.gate.runs.load(Ordering::Relaxed) > 0
    };
    until("the first request runs", runs).await;
    let refused = run(&lane, &[1.0], LONG).await;
    assert!(matches!(refused, Err(SubmitError::OutOfService(_))), "{refused:?}");
    model.gate.set(true);
    assert!(within("the stuck request ends", stuck).await.unwrap().is_err());
}
