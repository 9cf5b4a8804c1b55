//! What a machine does under a closed loop, by simulating its events. Pure, and the same each time.
//!
//! Three kinds of threads share the cores equally, as a fair scheduler lets them: those of the
//! client, those of the server that run requests, and those of the model. A thread does one job at
//! a time. A job of the client reads an answer and sends the next request. A job of the server
//! takes a request until the model's queue, or from the model's answer to the client's. A short
//! batch is run by a thread of the server, another one by a thread of the model
//! ([`Rehearsal`]).
//!
//! What it leaves out: the kernel's time slices, waking threads, caches, and other work of the
//! machine. So the middle of the latencies can be predicted, and their end only roughly.

use std::collections::VecDeque;
use std::time::Duration;

use gristmill_batch::{LED_BATCHES_MAX, LaneConfig, Lead, Rehearsal};
use gristmill_load::{Random, percentile};

use super::machine::{LaneModel, Machine};

/// Answers that are counted, and those before them that are not.
const COUNTED: usize = 10_000;
const NOT_COUNTED: usize = 2_000;

/// The prediction for a machine.
#[derive(Clone, Debug)]
pub(super) struct Prediction {
    pub(super) per_second: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    /// The mean rows of a batch.
    pub(super) batch_rows: f64,
    pub(super) used: Used,
}

/// The share of the time in which each is busy.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Used {
    /// Of all cores.
    pub(super) cores: f64,
    /// Of the client's threads.
    pub(super) client: f64,
    /// Of the model's instances, by the clock.
    pub(super) instances: f64,
    /// Of all cores, by the model's threads alone.
    pub(super) model: f64,
}

/// What a thread does.
#[derive(Debug)]
enum Job {
    /// The client reads an answer and sends the next request of this connection.
    Client(usize),
    /// The server reads the request and preprocesses it.
    Begin(usize),
    /// The server postprocesses and answers it.
    Finish(usize),
    /// A thread of the server runs a batch, after so many others.
    Led(Vec<usize>, usize),
    /// A thread of the model runs a batch.
    Batch(Vec<usize>),
}

/// What waits for a thread of the server.
#[derive(Debug)]
enum ThreadTask {
    Begin(usize),
    /// A task has let others go first, and now runs a batch if there is one.
    Lead,
    Finish(usize),
}

#[derive(Debug)]
struct RunningJob {
    job: Job,
    left_us: f64,
}

struct Simulation<'a> {
    machine: &'a Machine,
    now: f64,
    /// Answers that the client has to read.
    answers: VecDeque<usize>,
    waiting: VecDeque<ThreadTask>,
    lane: Rehearsal,
    running: Vec<RunningJob>,
    /// When each connection sent its request.
    sent: Vec<f64>,
    random: Random,
    tally: Tally,
}

/// What is counted.
#[derive(Default)]
struct Tally {
    answered: usize,
    since: f64,
    times: Vec<f64>,
    /// Time of cores, of threads of the client and of instances.
    busy: Used,
    batches: usize,
    batch_rows: usize,
}

/// Let the machine run for a while.
pub(super) fn simulate(machine: &Machine) -> Prediction {
    let connections = machine.connections.max(1);
    let mut simulation = Simulation {
        machine,
        now: 0.0,
        answers: (0..connections).collect(),
        waiting: VecDeque::new(),
        lane: rehearsal(&machine.lane),
        running: Vec::new(),
        sent: vec![0.0; connections],
        random: Random::new(1),
        tally: Tally::default(),
    };
    simulation.run(NOT_COUNTED);
    simulation.tally = Tally { since: simulation.now, ..Tally::default() };
    simulation.run(COUNTED);
    simulation.prediction()
}

/// The model's lane, in which requests are those of one tenant.
#[expect(clippy::expect_used, reason = "it is a name")]
fn rehearsal(model: &LaneModel) -> Rehearsal {
    let config = LaneConfig {
        preferred_batch_sizes: model.preferred_rows.clone(),
        max_queue_delay: time(model.delay_us),
        ..LaneConfig::new(model.max_rows, usize::MAX)
    };
    Rehearsal::new(&config, model.instances, "tenant".parse().expect("a name"))
}

fn time(micros: f64) -> Duration {
    Duration::from_secs_f64(micros / 1e6)
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

impl Simulation<'_> {
    fn run(&mut self, answers: usize) {
        while self.tally.answered < answers {
            self.start();
            let next = self.running.iter().map(|running| running.left_us / self.rate(&running.job));
            let timer = self
                .lane
                .due_at(time(self.now))
                .map(|at| micros(at) - self.now)
                .filter(|wait| *wait > 0.0);
            let Some(step) = next.chain(timer).min_by(f64::total_cmp) else { return };
            self.advance(step);
        }
    }

    /// Give jobs to idle threads.
    fn start(&mut self) {
        let Machine { client_threads, server_threads, costs, lane, .. } = self.machine;
        while self.count(|job| matches!(job, Job::Client(_))) < *client_threads
            && let Some(connection) = self.answers.pop_front()
        {
            self.begin(Job::Client(connection), costs.client_us);
        }
        let is_servers = |job: &Job| matches!(job, Job::Begin(_) | Job::Finish(_) | Job::Led(..));
        while self.count(is_servers) < *server_threads
            && let Some(next) = self.waiting.pop_front()
        {
            match next {
                ThreadTask::Begin(request) => {
                    let us = costs.http_us / 2.0 + costs.pre_us.draw(&mut self.random);
                    self.begin(Job::Begin(request), us);
                }
                ThreadTask::Finish(request) => {
                    let us = costs.http_us / 2.0 + costs.post_us.draw(&mut self.random);
                    self.begin(Job::Finish(request), us);
                }
                ThreadTask::Lead => {
                    self.lane.gathered();
                    self.lead(0);
                }
            }
        }
        while let Some(batch) = self.lane.take_for_worker(time(self.now)) {
            let us = lane.batch_us(batch.len());
            self.begin(Job::Batch(batch), us);
        }
    }

    fn begin(&mut self, job: Job, us: f64) {
        if let Job::Led(batch, _) | Job::Batch(batch) = &job {
            self.tally.batches += 1;
            self.tally.batch_rows += batch.len() * self.machine.lane.rows;
        }
        self.running.push(RunningJob { job, left_us: us });
    }

    /// A thread of the server runs the next batch, if it may.
    fn lead(&mut self, led: usize) {
        if led < LED_BATCHES_MAX
            && let Some(batch) = self.lane.take_for_leader(time(self.now))
        {
            let us = self.machine.lane.batch_us(batch.len());
            self.begin(Job::Led(batch, led + 1), us);
        }
    }

    fn count(&self, is_meant: impl Fn(&Job) -> bool) -> usize {
        self.running.iter().filter(|running| is_meant(&running.job)).count()
    }

    /// The threads of a job on the cores.
    fn threads(&self, job: &Job) -> usize {
        match job {
            Job::Client(_) => usize::from(self.machine.client_is_here),
            Job::Batch(_) => self.machine.lane.threads,
            _ => 1,
        }
    }

    /// The threads of all jobs on the cores.
    fn all_threads(&self) -> usize {
        self.running.iter().map(|running| self.threads(&running.job)).sum()
    }

    /// How fast a job runs: at most at the pace of a core, and slower if threads share the cores.
    fn rate(&self, job: &Job) -> f64 {
        match self.threads(job) {
            0 => 1.0,
            _ => (self.machine.cores as f64 / self.all_threads() as f64).min(1.0),
        }
    }

    fn advance(&mut self, step: f64) {
        let cores = self.all_threads().min(self.machine.cores);
        let clients = self.count(|job| matches!(job, Job::Client(_)));
        let busy = &mut self.tally.busy;
        busy.cores += step * cores as f64;
        busy.client += step * clients as f64;
        busy.instances += step * self.lane.busy() as f64;
        let rates: Vec<f64> = self.running.iter().map(|running| self.rate(&running.job)).collect();
        let of_model = self
            .running
            .iter()
            .zip(&rates)
            .filter(|(running, _)| matches!(running.job, Job::Led(..) | Job::Batch(_)));
        let model: f64 =
            of_model.map(|(running, rate)| rate * self.threads(&running.job) as f64).sum();
        self.tally.busy.model += step * model;
        self.now += step;
        for (running, rate) in self.running.iter_mut().zip(rates) {
            running.left_us -= step * rate;
        }
        let is_done = |running: &mut RunningJob| running.left_us <= 1e-6;
        let done: Vec<_> = self.running.extract_if(.., is_done).collect();
        done.into_iter().for_each(|finished| self.end(finished.job));
    }

    fn submit(&mut self, request: usize) -> Lead {
        let LaneModel { rows, max_rows, .. } = self.machine.lane;
        self.lane.submit(time(self.now), request, rows.min(max_rows))
    }

    fn batch_ended(&mut self, requests: usize) {
        let LaneModel { rows, max_rows, .. } = self.machine.lane;
        let took = time(self.machine.lane.batch_us(requests));
        self.lane.ended(time(self.now), (requests * rows).min(max_rows), took);
    }

    fn end(&mut self, job: Job) {
        match job {
            Job::Client(connection) => {
                let took = self.now - self.sent[connection];
                self.sent[connection] = self.now;
                self.tally.answered += 1;
                self.tally.times.push(took);
                self.waiting.push_back(ThreadTask::Begin(connection));
            }
            Job::Begin(request) => match self.submit(request) {
                Lead::Now => self.lead(0),
                Lead::AfterOthers => self.waiting.push_back(ThreadTask::Lead),
                Lead::No => {}
            },
            Job::Finish(request) => self.answers.push_back(request),
            Job::Led(batch, led) => {
                self.batch_ended(batch.len());
                self.waiting.extend(batch.into_iter().map(ThreadTask::Finish));
                self.lead(led);
            }
            Job::Batch(batch) => {
                self.batch_ended(batch.len());
                self.waiting.extend(batch.into_iter().map(ThreadTask::Finish));
            }
        }
    }

    fn prediction(self) -> Prediction {
        let Self { machine, now, tally, .. } = self;
        let Tally { since, times, busy, batches, batch_rows, .. } = tally;
        let passed = now - since;
        let [p50_us, p99_us] =
            [50.0, 99.0].map(|percent| percentile(&times, percent).unwrap_or_default());
        Prediction {
            per_second: times.len() as f64 / passed * 1e6,
            p50_us,
            p99_us,
            batch_rows: batch_rows as f64 / batches.max(1) as f64,
            used: Used {
                cores: busy.cores / passed / machine.cores as f64,
                client: busy.client / passed / machine.client_threads as f64,
                instances: busy.instances / passed / machine.lane.instances as f64,
                model: busy.model / passed / machine.cores as f64,
            },
        }
    }
}

#[cfg(test)]
mod tests;
