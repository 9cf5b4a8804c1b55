//! Tests of the lane with models whose pace the test controls.

mod endless;
mod late;
mod limits;
mod orders;
mod padding;
mod properties;
mod running;
mod sharing;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gristmill_core::{
    BufferPool, Deadline, Dtype, Model, ModelError, ModelInfo, Name, NamedTensor, Tensor,
    TensorInfo,
};

use super::{Lane, LaneParts};
use crate::{Answered, Full, LaneConfig, QueuePolicy, Submission, SubmitError};

/// Computes its output from its input, but fails on -1 and panics on -2. Reports the rows of each
/// run, and waits for permission to finish it.
struct Gated {
    pool: BufferPool,
    started: Sender<usize>,
    leave: Arc<Mutex<Receiver<()>>>,
    compute: fn(&[f32]) -> Vec<f32>,
}

fn doubled(values: &[f32]) -> Vec<f32> {
    values.iter().map(|value| value * 2.0).collect()
}

impl Model for Gated {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        self.started.send(inputs[0].rows()).unwrap();
        self.leave.lock().unwrap().recv().unwrap();
        let values = inputs[0].as_f32().unwrap();
        if values.contains(&-1.0) {
            return Err(ModelError::new("poison"));
        }
        assert!(!values.contains(&-2.0), "as told");
        let computed = (self.compute)(values);
        let buffer = self.pool.copy_from(bytemuck::cast_slice(&computed));
        let shape = [computed.len(), 1];
        Ok(vec![Tensor::new(Dtype::Float32, shape.as_slice().into(), buffer).unwrap()])
    }

    /// Also adds the bias.
    fn run_with(
        &mut self,
        inputs: &[Tensor],
        optional: &[NamedTensor],
    ) -> Result<Vec<Tensor>, ModelError> {
        let bias = optional[0].tensor.as_f32().unwrap()[0];
        let doubled = self.run(inputs)?;
        let sums: Vec<f32> =
            doubled[0].as_f32().unwrap().iter().map(|element| element + bias).collect();
        let buffer = self.pool.copy_from(bytemuck::cast_slice(&sums));
        Ok(vec![Tensor::new(Dtype::Float32, inputs[0].shape().into(), buffer).unwrap()])
    }
}

/// A lane over one such model. Each run ends when the test permits it.
struct Bench {
    lane: Arc<Lane>,
    started: Receiver<usize>,
    leave: Sender<()>,
    pool: BufferPool,
}

fn bench(max_batch_size: usize, queue_rows: usize) -> Bench {
    bench_with(LaneConfig::new(max_batch_size, queue_rows))
}

/// A model with one input and one output, each of any size.
fn info() -> ModelInfo {
    let info = |name: &str| TensorInfo {
        name: name.into(),
        dtype: Dtype::Float32,
        dims: vec![None, None],
    };
    ModelInfo {
        backend: "test",
        inputs: vec![info("x")],
        outputs: vec![info("y")],
        forms_batches: true,
        optional: vec![info("bias")],
        equal_dims: Vec::new(),
    }
}

fn bench_with(config: LaneConfig) -> Bench {
    bench_of(config, doubled)
}

fn bench_of(config: LaneConfig, compute: fn(&[f32]) -> Vec<f32>) -> Bench {
    let pool = BufferPool::new(1 << 20);
    let (started_sender, started) = channel();
    let (leave, leave_receiver) = channel();
    let model = Gated {
        pool: pool.clone(),
        started: started_sender,
        leave: Arc::new(Mutex::new(leave_receiver)),
        compute,
    };
    let lane = Lane::new(LaneParts {
        name: "test",
        info: info(),
        instances: vec![Box::new(model)],
        config,
        pool: pool.clone(),
    })
    .unwrap();
    Bench { lane: Arc::new(lane), started, leave, pool }
}

fn submission(pool: &BufferPool, tenant: &str, values: &[f32], patience: Duration) -> Submission {
    let buffer = pool.copy_from(bytemuck::cast_slice(values));
    let tensor = Tensor::new(Dtype::Float32, [values.len(), 1].as_slice().into(), buffer).unwrap();
    Submission {
        tenant: tenant.parse().unwrap(),
        weight: 1,
        priority: None,
        timeout: None,
        inputs: vec![NamedTensor { name: "x".into(), tensor }],
        arrived: Instant::now(),
        deadline: Deadline::at(Instant::now() + patience),
        keeps_apart: false,
        more_follow: false,
    }
}

type Outcome = Result<Vec<f32>, SubmitError>;

/// The longest wait.
const BOUND: Duration = Duration::from_secs(10);

/// The output of `future`. Fails with the text `what` after [`BOUND`].
async fn within<F: IntoFuture>(what: &str, future: F) -> F::Output {
    let bounded = tokio::time::timeout(BOUND, future).await;
    bounded.unwrap_or_else(|_| panic!("{what}: not within {BOUND:?}"))
}

/// Wait until `met`, while other tasks run. Fails after [`BOUND`].
async fn until(what: &str, mut met: impl FnMut() -> bool) {
    let began = Instant::now();
    while !met() {
        assert!(began.elapsed() < BOUND, "{what}: not within {BOUND:?}");
        tokio::task::yield_now().await;
    }
}

impl Bench {
    fn submission(&self, tenant: &str, values: &[f32], patience: Duration) -> Submission {
        submission(&self.pool, tenant, values, patience)
    }

    /// Submit on a task and wait until it is queued.
    async fn queue(&self, tenant: &str, values: &[f32]) -> tokio::task::JoinHandle<Outcome> {
        self.queue_for(tenant, values, Duration::from_secs(60)).await
    }

    async fn queue_for(
        &self,
        tenant: &str,
        values: &[f32],
        patience: Duration,
    ) -> tokio::task::JoinHandle<Outcome> {
        let (lane, submission) = (self.lane.clone(), self.submission(tenant, values, patience));
        let before = self.lane.statistics().queued_rows;
        let task = tokio::spawn(async move {
            let outputs = lane.submit(submission, None).await?.outputs;
            Ok(outputs[0].as_f32().unwrap().to_vec())
        });
        let queued = || self.lane.statistics().queued_rows;
        until("the request is queued", || queued() >= before + values.len()).await;
        task
    }

    /// The same for any submission. Returns the whole answer.
    async fn enqueue(
        &self,
        submission: Submission,
    ) -> tokio::task::JoinHandle<Result<Answered, SubmitError>> {
        let rows = submission.inputs[0].tensor.rows();
        self.enqueue_rows(submission, rows).await
    }

    async fn enqueue_rows(
        &self,
        submission: Submission,
        rows: usize,
    ) -> tokio::task::JoinHandle<Result<Answered, SubmitError>> {
        let (lane, before) = (self.lane.clone(), self.lane.statistics().queued_rows);
        let task = tokio::spawn(async move { lane.submit(submission, None).await });
        let queued = || self.lane.statistics().queued_rows;
        until("the request is queued", || queued() >= before + rows).await;
        task
    }

    /// Submit a first request and wait until the instance is busy with it.
    async fn occupy(&self) -> tokio::task::JoinHandle<Outcome> {
        let (lane, submission) =
            (self.lane.clone(), self.submission("first", &[0.0], Duration::from_secs(60)));
        let task = tokio::spawn(async move {
            let outputs = lane.submit(submission, None).await?.outputs;
            Ok(outputs[0].as_f32().unwrap().to_vec())
        });
        until("the instance is busy", || self.started.try_recv().is_ok()).await;
        task
    }

    fn finish(&self, runs: usize) {
        for _ in 0..runs {
            self.leave.send(()).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tenants_share_the_batch_that_forms_while_the_instance_is_busy() {
    let bench = bench(8, 64);
    let first = bench.occupy().await;
    let a = bench.queue("a", &[1.0, 2.0]).await;
    let b = bench.queue("b", &[3.0]).await;
    bench.finish(2);
    assert_eq!(first.await.unwrap().unwrap(), [0.0]);
    assert_eq!(a.await.unwrap().unwrap(), [2.0, 4.0]);
    assert_eq!(b.await.unwrap().unwrap(), [6.0]);
    assert_eq!(bench.started.recv().unwrap(), 3);
    let statistics = bench.lane.statistics();
    assert_eq!(
        (statistics.total.batch_count(), statistics.total.rows, statistics.mixed_batches),
        (2, 4, 1)
    );
    let a: Name = "a".parse().unwrap();
    assert_eq!(statistics.recent_mixed[0].rows[&a], 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_gives_an_input_with_a_default_runs_alone() {
    let bench =
        bench_with(LaneConfig { allowed_batch_sizes: vec![1, 2, 8], ..LaneConfig::new(8, 64) });
    let first = bench.occupy().await;
    let biased = |values: &[f32], bias: f32| {
        let mut submission = bench.submission("a", values, Duration::from_secs(60));
        let mut input = bench.submission("a", &[bias], Duration::from_secs(60)).inputs;
        input[0].name = "bias".into();
        submission.inputs.splice(0..0, input);
        submission
    };
    let plain = bench.queue("a", &[1.0]).await;
    let with = [
        bench.enqueue_rows(biased(&[1.0, 2.0, 3.0], 10.0), 3).await,
        bench.enqueue_rows(biased(&[1.0], 20.0), 1).await,
    ];
    let plain = [plain, bench.queue("b", &[2.0]).await];
    bench.finish(4);
    first.await.unwrap().unwrap();
    for (request, expected) in plain.into_iter().zip([2.0, 4.0]) {
        assert_eq!(request.await.unwrap().unwrap(), [expected]);
    }
    for (request, expected) in with.into_iter().zip([&[12.0, 14.0, 16.0][..], &[22.0]]) {
        let answered = request.await.unwrap().unwrap();
        assert_eq!(answered.outputs[0].as_f32().unwrap(), expected);
        assert_eq!(answered.batch_rows, expected.len());
    }
    let mut runs: Vec<_> = (0..3).map(|_| bench.started.recv().unwrap()).collect();
    runs.sort_unstable();
    assert_eq!(runs, [1, 2, 3], "the two others shared a batch, and nothing was padded");
    // No other request can join it, so it runs at once.
    let delayed = LaneConfig { max_queue_delay: BOUND * 2, ..LaneConfig::new(8, 64) };
    let waiting = bench_with(delayed);
    waiting.finish(1);
    let answer = waiting.lane.submit(biased(&[1.0], 30.0), None);
    let answered = within("a request that nobody can join is answered", answer).await.unwrap();
    assert_eq!(answered.outputs[0].as_f32().unwrap(), [32.0]);
    // Its rows cannot be split.
    let wide = bench.lane.submit(biased(&[1.0; 9], 1.0), None).await;
    assert!(matches!(wide, Err(SubmitError::TooManyRows { rows: 9, max: 8 })));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_queue_refuses_and_so_it_does_what_it_never_holds() {
    let bench = bench(2, 2);
    let first = bench.occupy().await;
    let second = bench.queue("a", &[1.0, 1.0]).await;
    let refused =
        bench.lane.submit(bench.submission("b", &[1.0], Duration::from_secs(60)), None).await;
    assert!(matches!(refused, Err(SubmitError::QueueFull(Full::Lane { queued: 2, max: 2, .. }))));
    let wide =
        bench.lane.submit(bench.submission("b", &[1.0; 3], Duration::from_secs(60)), None).await;
    assert!(matches!(wide, Err(SubmitError::TooManyRows { rows: 3, max: 2 })));
    bench.finish(2);
    first.await.unwrap().unwrap();
    second.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_and_expired_requests_cost_no_compute() {
    let bench = bench(8, 64);
    let first = bench.occupy().await;
    let cancelled = bench.queue("a", &[1.0]).await;
    cancelled.abort();
    assert!(cancelled.await.unwrap_err().is_cancelled());
    let expired = bench.queue_for("a", &[2.0], Duration::ZERO).await;
    let alive = bench.queue("a", &[3.0]).await;
    bench.finish(2);
    first.await.unwrap().unwrap();
    assert!(matches!(expired.await.unwrap(), Err(SubmitError::Expired)));
    assert_eq!(alive.await.unwrap().unwrap(), [6.0]);
    assert_eq!(bench.started.recv().unwrap(), 1, "only the one alive was run");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_fails_is_cut_in_half_until_only_the_guilty_fail() {
    let bench = bench(8, 64);
    let first = bench.occupy().await;
    let mut good = Vec::new();
    for value in [1.0, 2.0, 3.0] {
        good.push(bench.queue("a", &[value]).await);
    }
    let bad = bench.queue("b", &[-1.0]).await;
    // The runs: the first one; then all four, each half, and the failing two one by one.
    bench.finish(6);
    first.await.unwrap().unwrap();
    for (task, value) in good.into_iter().zip([2.0, 4.0, 6.0]) {
        assert_eq!(task.await.unwrap().unwrap(), [value]);
    }
    assert!(matches!(bad.await.unwrap(), Err(SubmitError::Failed { .. })));
    let statistics = bench.lane.statistics();
    assert_eq!((statistics.total.success, statistics.total.fail, statistics.bisections), (4, 1, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_larger_than_a_batch_runs_in_several_and_comes_back_whole() {
    let bench = bench(2, 64);
    bench.finish(3);
    let values = [1.0, 2.0, 3.0, 4.0, 5.0];
    let submission = bench.submission("a", &values, Duration::from_secs(60));
    let outputs = bench.lane.submit(submission, None).await.unwrap().outputs;
    assert_eq!(outputs[0].shape(), [5, 1]);
    assert_eq!(outputs[0].as_f32().unwrap(), [2.0, 4.0, 6.0, 8.0, 10.0]);
    let rows: Vec<_> = bench.started.try_iter().collect();
    assert_eq!(rows, [2, 2, 1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_counted_once_however_it_ends() {
    let bench = bench(2, 64);
    let first = bench.occupy().await;
    let split = bench.queue("a", &[1.0, 2.0, 3.0, 4.0, 5.0]).await;
    let left = bench.queue("b", &[1.0]).await;
    left.abort();
    assert!(left.await.unwrap_err().is_cancelled());
    let wide =
        bench.lane.submit(bench.submission("b", &[1.0; 65], Duration::from_secs(60)), None).await;
    assert!(matches!(wide, Err(SubmitError::TooManyRows { .. })));
    bench.finish(4);
    first.await.unwrap().unwrap();
    split.await.unwrap().unwrap();
    let statistics = bench.lane.statistics();
    let of = |tenant: &str| {
        let counters = &statistics.tenants[&tenant.parse::<Name>().unwrap()];
        (counters.success, counters.fail)
    };
    assert_eq!((of("first"), of("a"), of("b")), ((1, 0), (1, 0), (0, 2)));
    assert_eq!((statistics.total.success, statistics.total.fail), (2, 2));
    assert!(statistics.total.compute.run > Duration::ZERO);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deleted_tenants_are_forgotten_but_what_they_queued_is_answered() {
    let bench = bench(8, 64);
    let first = bench.occupy().await;
    let queued = bench.queue("deleted", &[1.0]).await;
    bench.lane.retain_tenants(|tenant| tenant.as_str() == "first");
    bench.finish(2);
    first.await.unwrap().unwrap();
    assert_eq!(queued.await.unwrap().unwrap(), [2.0]);
    let tenants = || bench.lane.statistics().tenants.into_keys().map(|name| name.to_string());
    assert_eq!(tenants().collect::<Vec<_>>(), ["deleted", "first"]);
    bench.lane.retain_tenants(|tenant| tenant.as_str() == "first");
    assert_eq!(tenants().collect::<Vec<_>>(), ["first"]);
    let total = bench.lane.statistics().total;
    assert_eq!((total.success, total.rows), (2, 2));
    // A new tenant of the same name starts afresh.
    bench.finish(1);
    let again = bench.submission("deleted", &[3.0], Duration::from_secs(60));
    bench.lane.submit(again, None).await.unwrap();
    let deleted: Name = "deleted".parse().unwrap();
    assert_eq!(bench.lane.statistics().tenants[&deleted].success, 1);
}

#[tokio::test]
async fn a_request_that_cannot_be_answered_in_time_is_refused_at_the_door() {
    let bench = bench(8, 64);
    bench.lane.shared.lock().observe(1, Duration::from_secs(1));
    let first = bench.occupy().await;
    let hurried = || bench.submission("a", &[1.0], Duration::from_millis(900));
    let refused = bench.lane.submit(hurried(), None).await;
    assert!(
        matches!(refused, Err(SubmitError::TooBusy { expected, .. }) if expected.as_secs() >= 1)
    );
    let patient = bench.queue("a", &[1.0]).await;
    bench.finish(2);
    first.await.unwrap().unwrap();
    patient.await.unwrap().unwrap();
    assert_eq!(bench.lane.statistics().refused_early, 1);
    // The instance is idle now, so the request is tried in spite of the estimate.
    bench.lane.shared.lock().forget_service_time();
    bench.lane.shared.lock().observe(1, Duration::from_secs(1));
    until("the instance is idle", || bench.lane.shared.lock().idle_instances() > 0).await;
    bench.finish(1);
    bench.lane.submit(hurried(), None).await.unwrap();
}

/// The instance is busy all the time, so only the timeout can answer.
#[tokio::test(start_paused = true)]
async fn what_is_queued_for_longer_than_its_timeout_is_told_at_once() {
    let level = QueuePolicy {
        timeout: Some(Duration::from_secs(5)),
        allow_timeout_override: true,
        ..QueuePolicy::default()
    };
    let bench = bench_with(LaneConfig { levels: vec![level], ..LaneConfig::new(8, 64) });
    let first = bench.occupy().await;
    for (timeout, expected) in [(None, 5), (Some(Duration::from_secs(2)), 2)] {
        let submission = bench.submission("a", &[1.0], Duration::from_secs(60));
        let began = tokio::time::Instant::now();
        let outcome = bench.lane.submit(Submission { timeout, ..submission }, None).await;
        assert!(matches!(outcome, Err(SubmitError::Expired)));
        assert_eq!(began.elapsed().as_secs(), expected);
    }
    bench.finish(1);
    first.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn higher_levels_go_first_and_unknown_ones_are_the_default() {
    let levels = vec![QueuePolicy::default(); 2];
    let bench = bench_with(LaneConfig { levels, default_level: 1, ..LaneConfig::new(1, 64) });
    let first = bench.occupy().await;
    let submit = |priority, values: &[f32]| {
        let submission = bench.submission("a", values, Duration::from_secs(60));
        let lane = bench.lane.clone();
        tokio::spawn(async move { lane.submit(Submission { priority, ..submission }, None).await })
    };
    let low = [submit(None, &[1.0]), submit(Some(3), &[1.0])];
    let urgent = submit(Some(1), &[2.0, 3.0]);
    until("four rows are queued", || bench.lane.statistics().queued_rows == 4).await;
    // The first request runs, then the two urgent rows.
    bench.finish(3);
    urgent.await.unwrap().unwrap();
    assert!(low.iter().all(|low| !low.is_finished()));
    bench.finish(2);
    first.await.unwrap().unwrap();
    for low in low {
        low.await.unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_batch_is_staged_while_the_instance_is_busy() {
    let bench = bench(2, 64);
    let first = bench.occupy().await;
    // Long enough for staging to pay.
    bench.lane.shared.lock().set_staging_time(Duration::from_millis(1));
    let a = bench.queue("a", &[1.0]).await;
    let (lane, submission) =
        (bench.lane.clone(), bench.submission("b", &[2.0], Duration::from_secs(60)));
    let b = tokio::spawn(async move { lane.submit(submission, None).await });
    until("a batch is staged", || bench.lane.shared.lock().staged() > 0).await;
    assert_eq!(bench.lane.statistics().queued_rows, 0);
    // The client of a staged request leaves: the other request runs alone.
    b.abort();
    assert!(b.await.unwrap_err().is_cancelled());
    bench.finish(2);
    first.await.unwrap().unwrap();
    assert_eq!(a.await.unwrap().unwrap(), [2.0]);
    assert_eq!(bench.started.recv().unwrap(), 1, "a request whose client left costs no compute");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_is_padded_to_the_next_allowed_size_and_answers_have_their_own_rows() {
    let bench =
        bench_with(LaneConfig { allowed_batch_sizes: vec![2, 4, 8], ..LaneConfig::new(8, 64) });
    let first = tokio::spawn({
        let lane = bench.lane.clone();
        let submission = bench.submission("first", &[7.0], BOUND);
        async move { lane.submit(submission, None).await }
    });
    until("the instance is busy", || bench.started.try_recv() == Ok(2)).await;
    let a = bench.queue("a", &[1.0, 2.0]).await;
    let b = bench.queue("b", &[3.0, 4.0, 5.0]).await;
    bench.finish(2);
    let answer = first.await.unwrap().unwrap();
    assert_eq!(answer.outputs[0].as_f32().unwrap(), [14.0]);
    assert_eq!(answer.batch_rows, 1, "padding is not counted");
    assert_eq!(a.await.unwrap().unwrap(), [2.0, 4.0]);
    assert_eq!(b.await.unwrap().unwrap(), [6.0, 8.0, 10.0]);
    assert_eq!(bench.started.recv().unwrap(), 8);
    // A full batch needs none.
    bench.finish(1);
    let full = bench.lane.submit(bench.submission("a", &[1.0; 8], BOUND), None).await.unwrap();
    assert_eq!(full.outputs[0].rows(), 8);
    assert_eq!(bench.started.recv().unwrap(), 8);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_padded_batch_that_fails_is_bisected() {
    let bench =
        bench_with(LaneConfig { allowed_batch_sizes: vec![3, 8], ..LaneConfig::new(8, 64) });
    let first = bench.occupy().await;
    let sound = bench.queue("a", &[1.0, 2.0]).await;
    let poison = bench.queue("b", &[3.0, -1.0]).await;
    bench.finish(4);
    first.await.unwrap().unwrap();
    assert_eq!(sound.await.unwrap().unwrap(), [2.0, 4.0]);
    assert!(matches!(poison.await.unwrap(), Err(SubmitError::Failed { .. })));
    let runs: Vec<_> = (0..3).map(|_| bench.started.recv().unwrap()).collect();
    assert_eq!(runs, [8, 2, 2], "parts run as they are");
}

/// Returns its input and reports the thread on which it ran.
struct Named {
    ran_on: Sender<Option<String>>,
}

impl Model for Named {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        self.ran_on.send(std::thread::current().name().map(str::to_owned)).unwrap();
        Ok(vec![inputs[0].clone()])
    }
}

#[tokio::test]
async fn short_batches_are_run_by_the_submitting_task() {
    let (ran_on, threads) = channel();
    let (config, pool) = (LaneConfig::new(8, 64), BufferPool::new(1 << 20));
    let lane = Lane::new(LaneParts {
        name: "named",
        info: info(),
        instances: vec![Box::new(Named { ran_on })],
        config,
        pool: pool.clone(),
    })
    .unwrap();
    let this_thread = std::thread::current().name().map(str::to_owned);
    let run = || lane.submit(submission(&pool, "a", &[1.0], Duration::from_secs(60)), None);
    // The first batch goes to the worker, because its time is not known yet.
    run().await.unwrap();
    assert_eq!(threads.recv().unwrap().as_deref(), Some("model-named"));
    // A worker that has only just started would take the next batch.
    until("both workers wait", || lane.shared.lock().waiting_workers() == 2).await;
    assert_eq!(lane.shared.lock().idle_instances(), 1);
    // The lane learns here that batches are short, although that run may have been a long one.
    lane.shared.lock().forget_service_time();
    lane.shared.lock().observe(1, Duration::from_micros(1));
    run().await.unwrap();
    assert_eq!(threads.recv().unwrap(), this_thread);
}
