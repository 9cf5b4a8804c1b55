//! Running batches: the thread that runs one, and the answers of its requests.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use gristmill_core::{BufferPool, Model, ModelError, Tensor};

use super::{Lane, Named, Submission, SubmitError, bench, info, submission, until};
use crate::job::Job;
use crate::leader::LED_BATCHES_MAX;
use crate::policy::Entry;
use crate::ticket::ticket;
use crate::{LaneConfig, LaneParts};

const PATIENCE: Duration = Duration::from_secs(60);

/// Returns its input after three times the longest batch that a submitting task may run, and
/// reports the thread on which it ran.
struct Long(Named);

impl Model for Long {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        let began = Instant::now();
        while began.elapsed() < Duration::from_micros(300) {
            std::hint::spin_loop();
        }
        self.0.run(inputs)
    }
}

#[tokio::test]
async fn long_batches_are_never_run_by_the_submitting_task() {
    const REQUESTS: usize = 100;
    let (ran_on, threads) = channel();
    let (config, pool) = (LaneConfig::new(8, 64), BufferPool::new(1 << 20));
    let models: Vec<Box<dyn Model>> = vec![Box::new(Long(Named { ran_on }))];
    let lane = Lane::new(LaneParts {
        name: "long",
        info: info(),
        instances: models,
        config,
        pool: pool.clone(),
    })
    .unwrap();
    for _ in 0..REQUESTS {
        lane.submit(submission(&pool, "a", &[1.0], PATIENCE), None).await.unwrap();
    }
    let on_workers = |name: &Option<String>| name.as_deref() == Some("model-long");
    assert_eq!(threads.try_iter().filter(on_workers).count(), REQUESTS);
}

/// With a long queue, too, a leader runs only a few batches and leaves the rest to a worker.
#[tokio::test]
async fn a_leader_does_not_lead_for_ever() {
    const QUEUED: usize = 100;
    let (ran_on, threads) = channel();
    let (config, pool) = (LaneConfig::new(1, 1000), BufferPool::new(1 << 20));
    let models: Vec<Box<dyn Model>> = vec![Box::new(Named { ran_on })];
    let lane = Lane::new(LaneParts {
        name: "named",
        info: info(),
        instances: models,
        config,
        pool: pool.clone(),
    })
    .unwrap();
    // From here on the workers do nothing until they are woken.
    until("both workers wait", || lane.shared.lock().waiting_workers() == 2).await;
    let mut flood = Vec::new();
    {
        let mut state = lane.shared.lock();
        state.observe(1, Duration::from_micros(1));
        for _ in 0..QUEUED {
            let submission = submission(&pool, "flood", &[1.0], PATIENCE);
            let Submission { tenant, weight, inputs, arrived, deadline, .. } = submission;
            let (reply, waiting) = ticket();
            state.push(Entry {
                tenant,
                weight,
                level: 0,
                rows: 1,
                bytes: 4,
                shape_key: 0,
                arrived,
                deadline: deadline.instant(),
                timeout: None,
                item: Job { inputs, optional: Vec::new(), reply, follow: Default::default() },
            });
            flood.push(waiting);
        }
    }
    lane.submit(submission(&pool, "late", &[1.0], PATIENCE), None).await.unwrap();
    for waiting in flood {
        waiting.await.unwrap();
    }
    let this_thread = std::thread::current().name().map(str::to_owned);
    let ran: Vec<_> = threads.try_iter().collect();
    let led = ran.iter().filter(|name| **name == this_thread).count();
    assert_eq!(ran.len(), QUEUED + 1);
    assert!((1..=LED_BATCHES_MAX).contains(&led), "the submitting task ran {led} batches");
}

/// Reports that it runs, and answers when the other instance runs, too.
struct Meets {
    here: Sender<()>,
    there: Receiver<()>,
}

impl Model for Meets {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        self.here.send(()).unwrap();
        self.there.recv_timeout(PATIENCE).map_err(|_| ModelError::new("alone"))?;
        Ok(vec![inputs[0].clone()])
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_instances_run_two_batches_at_the_same_time() {
    let ((here, there), (back_here, back_there)) = (channel(), channel());
    let models: Vec<Box<dyn Model>> = vec![
        Box::new(Meets { here, there: back_there }),
        Box::new(Meets { here: back_here, there }),
    ];
    let (config, pool) = (LaneConfig::new(1, 64), BufferPool::new(1 << 20));
    let lane = Lane::new(LaneParts {
        name: "meets",
        info: info(),
        instances: models,
        config,
        pool: pool.clone(),
    })
    .unwrap();
    let ask = || lane.submit(submission(&pool, "a", &[1.0], PATIENCE * 2), None);
    let (one, other) = tokio::join!(ask(), ask());
    one.unwrap();
    other.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_answers_of_a_batch_are_rows_of_one_buffer() {
    let bench = bench(8, 64);
    let first = bench.occupy().await;
    let a = bench.enqueue(bench.submission("a", &[1.0, 2.0], PATIENCE)).await;
    let b = bench.enqueue(bench.submission("b", &[3.0], PATIENCE)).await;
    bench.finish(2);
    first.await.unwrap().unwrap();
    let answers = [a.await.unwrap().unwrap(), b.await.unwrap().unwrap()];
    assert_eq!(bench.started.recv().unwrap(), 3, "one batch");
    let [a, b] = answers.each_ref().map(|answer| &answer.outputs[0]);
    assert_eq!((a.as_f32().unwrap(), b.as_f32().unwrap()), (&[2.0, 4.0][..], &[6.0][..]));
    // Copies would be in separate buffers, whose start is aligned by the pool.
    let mut places = [a, b].map(|tensor| tensor.as_bytes().as_ptr_range());
    places.sort_by_key(|place| place.start);
    assert_eq!(places[0].end, places[1].start);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_panics_fails_that_request_and_the_lane_goes_on() {
    let bench = bench(8, 64);
    let first = bench.occupy().await;
    let good = bench.queue("a", &[1.0]).await;
    let bad = bench.queue("b", &[-2.0]).await;
    // The runs: the first one, both together, each by itself.
    bench.finish(4);
    first.await.unwrap().unwrap();
    assert_eq!(good.await.unwrap().unwrap(), [2.0]);
    let bad = bad.await.unwrap().unwrap_err();
    assert_eq!(bad.to_string(), "model failed: panicked");
    assert!(matches!(&bad, SubmitError::Failed { .. }), "{bad:?}");
    let statistics = bench.lane.statistics();
    assert_eq!((statistics.total.success, statistics.total.fail), (2, 1));
    bench.finish(2);
    let alone = bench.lane.submit(bench.submission("b", &[-2.0], PATIENCE), None).await;
    assert!(matches!(alone, Err(SubmitError::Failed { .. })));
    bench.lane.submit(bench.submission("b", &[3.0], PATIENCE), None).await.unwrap();
}
