//! Runs the wake-up protocol with many orders of its threads. In each order, every request must be
//! answered and every thread must end. If a wake-up is missing, all threads wait, and the test
//! fails.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use gristmill_core::{
    BufferPool, Deadline, Dtype, Model, ModelError, ModelInfo, NamedTensor, Tensor, TensorInfo,
};
use shuttle::future::block_on;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use shuttle::thread;

use crate::leader::LED_BATCHES_MAX;
use crate::sync::checked::{explore, pass};
use crate::sync::now;
use crate::{Lane, LaneConfig, LaneParts, Submission, SubmitError, Upkeep};

const SEED: u64 = 12;

/// The number of orders that each scheduler tries for each scenario.
const ORDERS: usize = 1000;

/// Longer than any simulated time.
const PATIENCE: Duration = Duration::from_secs(1 << 30);

/// Batch times: `LONG` ones are run by workers, `SHORT` ones may be led by submitting tasks.
const LONG: Duration = Duration::from_millis(10);
const SHORT: Duration = Duration::ZERO;

/// Run `scenario` in random orders, and in orders with few switches between threads.
fn check(scenario: fn()) {
    explore(RandomScheduler::new_from_seed(SEED, ORDERS), scenario);
    explore(PctScheduler::new_from_seed(SEED, 3, ORDERS), scenario);
}

/// Returns its input after the simulated time `takes`.
struct Paced {
    takes: Duration,
}

impl Model for Paced {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        pass(self.takes);
        thread::yield_now();
        Ok(inputs.to_vec())
    }
}

fn info() -> ModelInfo {
    let info =
        |name: &str| TensorInfo { name: name.into(), dtype: Dtype::Uint8, dims: vec![None, None] };
    ModelInfo {
        backend: "test",
        inputs: vec![info("x")],
        outputs: vec![info("y")],
        forms_batches: true,
        optional: Vec::new(),
        equal_dims: Vec::new(),
    }
}

fn lane(instances: usize, takes: Duration, max_batch_size: usize) -> Arc<Lane> {
    let models = (0..instances).map(|_| Box::new(Paced { takes }) as Box<dyn Model>).collect();
    let config = LaneConfig::new(max_batch_size, 64);
    Arc::new(
        Lane::new(LaneParts {
            name: "checked",
            info: info(),
            instances: models,
            config,
            pool: BufferPool::new(0),
        })
        .unwrap(),
    )
}

fn submission(value: u8, patience: Duration) -> Submission {
    submission_of(&[value], patience)
}

fn submission_of(values: &[u8], patience: Duration) -> Submission {
    let (shape, buffer) = ([values.len(), 1], BufferPool::new(0).copy_from(values));
    let tensor = Tensor::new(Dtype::Uint8, shape.as_slice().into(), buffer).unwrap();
    Submission {
        tenant: "a".parse().unwrap(),
        weight: 1,
        priority: None,
        timeout: None,
        inputs: vec![NamedTensor { name: "x".into(), tensor }],
        arrived: now(),
        deadline: Deadline::at(now() + patience),
        keeps_apart: false,
        more_follow: false,
    }
}

/// Submit and wait for the answer, which is the input.
fn ask(lane: &Lane, value: u8) {
    let answer = block_on(lane.submit(submission(value, PATIENCE), None)).unwrap();
    assert_eq!(answer.outputs[0].as_bytes(), [value]);
}

/// Submit, and leave without waiting for the answer.
fn ask_and_leave(lane: &Lane, value: u8) {
    let mut request = pin!(lane.submit(submission(value, PATIENCE), None));
    block_on(std::future::poll_fn(|context| {
        let _ = request.as_mut().poll(context);
        Poll::Ready(())
    }));
}

/// Run `count` clients at the same time. Each asks twice.
fn clients(lane: &Arc<Lane>, count: u8) {
    let clients: Vec<_> = (0..count)
        .map(|client| {
            let lane = lane.clone();
            thread::spawn(move || (0..2).for_each(|turn| ask(&lane, 2 * client + turn)))
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
}

#[test]
fn long_batches_are_run_by_workers_and_answered_by_others() {
    check(|| clients(&lane(1, LONG, 2), 3));
}

#[test]
fn requests_wake_both_instances() {
    check(|| clients(&lane(2, LONG, 1), 3));
}

/// Answers only when both instances run at the same time.
struct Meets {
    here: Arc<AtomicUsize>,
}

impl Model for Meets {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        self.here.fetch_add(1, Ordering::SeqCst);
        while self.here.load(Ordering::SeqCst) < 2 {
            thread::yield_now();
        }
        Ok(inputs.to_vec())
    }
}

/// A request of two batches wakes one worker, which must wake the second one.
#[test]
fn a_worker_wakes_the_next_one_for_the_rest() {
    check(|| {
        let here = Arc::new(AtomicUsize::new(0));
        let model = || Box::new(Meets { here: here.clone() }) as Box<dyn Model>;
        let (config, pool) = (LaneConfig::new(1, 64), BufferPool::new(0));
        let lane = Lane::new(LaneParts {
            name: "meets",
            info: info(),
            instances: vec![model(), model()],
            config,
            pool,
        })
        .unwrap();
        let answer = block_on(lane.submit(submission_of(&[1, 2], PATIENCE), None)).unwrap();
        assert_eq!(answer.outputs[0].as_bytes(), [1, 2]);
    });
}

#[test]
fn short_batches_are_led_by_submitting_tasks() {
    check(|| {
        let lane = lane(1, SHORT, 2);
        lane.shared.lock().observe(1, Duration::from_micros(1));
        clients(&lane, 3);
    });
}

/// The request has more batches than a leader runs.
#[test]
fn a_leader_leaves_the_rest_to_a_worker() {
    check(|| {
        let lane = lane(1, SHORT, 1);
        lane.shared.lock().observe(1, Duration::from_micros(1));
        let values: Vec<u8> = (0..2 * LED_BATCHES_MAX as u8).collect();
        let answer = block_on(lane.submit(submission_of(&values, PATIENCE), None)).unwrap();
        assert_eq!(answer.outputs[0].as_bytes(), values);
    });
}

/// When a request of 20 parts is dropped, its parts stay in the queue, because they are too few for
/// a sweep.
#[test]
fn all_threads_end_when_a_lane_with_queued_requests_is_dropped() {
    check(|| {
        let lane = lane(1, LONG, 1);
        let mut request = Box::pin(lane.submit(submission_of(&[1; 20], PATIENCE), None));
        block_on(std::future::poll_fn(|context| {
            let _ = request.as_mut().poll(context);
            Poll::Ready(())
        }));
        thread::yield_now();
    });
}

#[test]
fn dropped_requests_do_not_keep_others_waiting() {
    for takes in [SHORT, LONG] {
        let scenario = move || {
            let lane = lane(1, takes, 2);
            if takes == SHORT {
                lane.shared.lock().observe(1, Duration::from_micros(1));
            }
            let leaving = lane.clone();
            let leaving = thread::spawn(move || (0..2).for_each(|_| ask_and_leave(&leaving, 9)));
            clients(&lane, 2);
            leaving.join().unwrap();
            ask_and_leave(&lane, 8);
        };
        explore(RandomScheduler::new_from_seed(SEED, ORDERS), scenario);
        explore(PctScheduler::new_from_seed(SEED, 3, ORDERS), scenario);
    }
}

#[test]
fn staged_batches_are_run() {
    check(|| {
        let lane = lane(1, LONG, 2);
        {
            let mut state = lane.shared.lock();
            state.observe(2, LONG);
            state.set_staging_time(LONG);
        }
        clients(&lane, 4);
    });
}

/// Each run ends only after `may_end` is set.
struct Stuck {
    may_end: Arc<AtomicBool>,
}

impl Model for Stuck {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        while !self.may_end.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        Ok(inputs.to_vec())
    }
}

#[test]
fn a_lost_run_is_replaced_and_its_thread_ends() {
    check(|| {
        let may_end = Arc::new(AtomicBool::new(false));
        let stuck = Box::new(Stuck { may_end: may_end.clone() });
        let replace = Box::new(|| Ok(Box::new(Paced { takes: LONG }) as Box<dyn Model>));
        let upkeep = Upkeep { replace: Some(replace), ..Upkeep::default() };
        let config = LaneConfig { run_grace: LONG, lost_after: LONG, ..LaneConfig::new(2, 64) };
        let (info, pool) = (info(), BufferPool::new(0));
        let parts = LaneParts { name: "stuck", info, instances: vec![stuck], config, pool };
        let lane = Arc::new(Lane::with_upkeep(parts, upkeep).unwrap());
        let first_lane = lane.clone();
        let first = thread::spawn(move || {
            let outcome = block_on(first_lane.submit(submission(1, Duration::from_secs(1)), None));
            assert!(matches!(outcome, Ok(_) | Err(SubmitError::Expired)), "{outcome:?}");
        });
        while lane.statistics().lost == 0 && !may_end.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        // The new instance answers this request.
        ask(&lane, 2);
        may_end.store(true, Ordering::SeqCst);
        first.join().unwrap();
    });
}
