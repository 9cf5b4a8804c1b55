//! The lane with models whose pace the test controls.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gristmill_core::{
    BufferPool, Deadline, Dtype, Model, ModelError, ModelInfo, Name, NamedTensor, Tensor,
    TensorInfo,
};

use super::{Lane, LaneConfig, Submission, SubmitError};

/// Doubles its input. Says how many rows each run has, and waits for leave to finish it.
struct Gated {
    pool: BufferPool,
    started: Sender<usize>,
    leave: Arc<Mutex<Receiver<()>>>,
}

impl Model for Gated {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        self.started.send(inputs[0].rows()).unwrap();
        self.leave.lock().unwrap().recv().unwrap();
        let values = inputs[0].as_f32().unwrap();
        if values.contains(&-1.0) {
            return Err(ModelError("poison".into()));
        }
        let doubled: Vec<f32> = values.iter().map(|value| value * 2.0).collect();
        let buffer = self.pool.copy_from(bytemuck::cast_slice(&doubled));
        Ok(vec![Tensor::new(Dtype::Float32, inputs[0].shape().into(), buffer).unwrap()])
    }
}

struct Bench {
    lane: Arc<Lane>,
    started: Receiver<usize>,
    leave: Sender<()>,
    pool: BufferPool,
}

fn bench(max_batch_size: usize, max_queue_size: usize) -> Bench {
    let pool = BufferPool::new(1 << 20);
    let (started_sender, started) = channel();
    let (leave, leave_receiver) = channel();
    let info = |name: &str| TensorInfo {
        name: name.into(),
        dtype: Dtype::Float32,
        dims: vec![None, None],
    };
    let info = ModelInfo { backend: "test", inputs: vec![info("x")], outputs: vec![info("y")] };
    let model = Gated {
        pool: pool.clone(),
        started: started_sender,
        leave: Arc::new(Mutex::new(leave_receiver)),
    };
    let config = LaneConfig { max_batch_size, max_queue_size };
    let lane = Lane::new("test", info, vec![Box::new(model)], config, pool.clone()).unwrap();
    Bench { lane: Arc::new(lane), started, leave, pool }
}

fn submission(pool: &BufferPool, tenant: &str, values: &[f32], patience: Duration) -> Submission {
    let buffer = pool.copy_from(bytemuck::cast_slice(values));
    let tensor = Tensor::new(Dtype::Float32, [values.len(), 1].into(), buffer).unwrap();
    Submission {
        tenant: tenant.parse().unwrap(),
        inputs: vec![NamedTensor { name: "x".into(), tensor }],
        deadline: Deadline::at(Instant::now() + patience),
    }
}

type Outcome = Result<Vec<f32>, SubmitError>;

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
            let (outputs, _) = lane.submit(submission).await?;
            Ok(outputs[0].tensor.as_f32().unwrap().to_vec())
        });
        while self.lane.statistics().queued_rows < before + values.len() {
            tokio::task::yield_now().await;
        }
        task
    }

    /// Submit a first request and wait until the instance is busy with it.
    async fn occupy(&self) -> tokio::task::JoinHandle<Outcome> {
        let (lane, submission) =
            (self.lane.clone(), self.submission("first", &[0.0], Duration::from_secs(60)));
        let task = tokio::spawn(async move {
            let (outputs, _) = lane.submit(submission).await?;
            Ok(outputs[0].tensor.as_f32().unwrap().to_vec())
        });
        while self.started.try_recv().is_err() {
            tokio::task::yield_now().await;
        }
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
    assert_eq!((statistics.batches, statistics.rows, statistics.mixed_batches), (2, 4, 1));
    let a: Name = "a".parse().unwrap();
    assert_eq!(statistics.recent_mixed[0].rows[&a], 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_queue_refuses_and_an_oversized_request_is_told_the_maximum() {
    let bench = bench(2, 2);
    let first = bench.occupy().await;
    let second = bench.queue("a", &[1.0, 1.0]).await;
    let refused = bench.lane.submit(bench.submission("b", &[1.0], Duration::from_secs(60))).await;
    assert!(matches!(refused, Err(SubmitError::QueueFull { queued: 2, max: 2 })));
    let wide = bench.lane.submit(bench.submission("b", &[1.0; 3], Duration::from_secs(60))).await;
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
async fn a_poisoned_request_fails_alone() {
    let bench = bench(8, 64);
    let first = bench.occupy().await;
    let good = bench.queue("a", &[1.0]).await;
    let bad = bench.queue("b", &[-1.0]).await;
    // The first run, the batch that fails, and both by themselves.
    bench.finish(4);
    first.await.unwrap().unwrap();
    assert_eq!(good.await.unwrap().unwrap(), [2.0]);
    assert!(matches!(bad.await.unwrap(), Err(SubmitError::Failed(_))));
    assert_eq!(bench.lane.statistics().fail, 1);
}

/// Echoes its input and says on which thread it ran.
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
async fn short_batches_are_run_by_whoever_submits() {
    let (ran_on, threads) = channel();
    let Bench { lane: gated, pool, .. } = bench(8, 64);
    let (info, config) = (gated.info().clone(), gated.config().clone());
    let lane =
        Lane::new("named", info, vec![Box::new(Named { ran_on })], config, pool.clone()).unwrap();
    let own = std::thread::current().name().map(str::to_owned);
    let mut seen = Vec::new();
    // The first batch goes to the worker: nobody knows yet how long it takes.
    for _ in 0..1000 {
        let submission = submission(&pool, "a", &[1.0], Duration::from_secs(60));
        lane.submit(submission).await.unwrap();
        seen.push(threads.recv().unwrap());
        if seen.last() == Some(&own) {
            break;
        }
    }
    assert_eq!(seen[0].as_deref(), Some("model-named"));
    assert_eq!(seen.last(), Some(&own));
}
