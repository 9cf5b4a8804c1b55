//! Measuring the parts alone: never from the load that is predicted. If the tenant may not call the
//! model, the times of its batches are those that the server learned from all earlier requests, and
//! the report says so.
//!
//! - The plugins' stages and the model's time of a request are what the server says about single
//!   requests over one connection.
//! - The CPU time of client and server for each request is that of a load over one
//!   connection. From the server's, the stages and the model are taken off; the rest is HTTP.
//! - With many connections, a wake-up of a thread serves several requests. How much that saves is
//!   measured with other requests, over one connection and over all of them: inferences of a
//!   pipeline's model, or requests that do nothing (`/livez`).
//! - The time of a batch is measured for each size alone, by inferences of zeros.

use std::time::Duration;

use anyhow::{Context, Result};
use gristmill_load::{Load, Pace, Url};
use serde::Serialize;

use super::awake::Awake;
use super::figures::Figures;
use super::machine::{Costs, Samples, Service};
use super::probe::{Count, NOT_COUNTED, Told, ask};
use super::subject::Subject;
use crate::admin::Admin;
use crate::bench::modes;
use crate::bench::requests::{NotAllowed, RequestSpec, inference};

/// How long each part is measured at most.
const PART: Duration = Duration::from_secs(2);

/// The time before it that does not count.
const WARM_UP: Duration = Duration::from_millis(300);

/// How long one size of a batch is measured, and how many of them at least and at most.
const SIZE: Duration = Duration::from_millis(300);
const SIZE_COUNT: Count = Count { least: 5, most: 2000 };

/// The single requests that are measured, at least and at most.
const SINGLE_COUNT: Count = Count { least: 20, most: 20_000 };

/// The share of samples that are left out: the slowest, in which the machine did something else.
const STALLS: f64 = 0.02;

/// What was measured.
#[derive(Debug)]
pub(super) struct Measurement {
    pub(super) costs: Costs,
    /// The rows of a request.
    pub(super) rows: usize,
    pub(super) service: Service,
    /// Whether the batch sizes were measured. If not, they are what the server has learned.
    pub(super) sizes_are_measured: bool,
    /// All CPU time of a request over one connection.
    pub(super) alone: Cpu,
    /// That of other requests, from which the savings of many connections are known.
    pub(super) other: Other,
}

/// Other requests than those of the load.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Other {
    /// Whether they are inferences of the model; else they do nothing.
    pub(super) are_inferences: bool,
    pub(super) one_connection: Cpu,
    pub(super) all_connections: Cpu,
}

/// The CPU time of one request in microseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Cpu {
    pub(super) client_us: f64,
    pub(super) server_us: f64,
    /// The part of the server's that the model took.
    pub(super) model_us: f64,
}

impl Cpu {
    /// The server's without the model's.
    fn rest_us(self) -> f64 {
        self.server_us - self.model_us
    }
}

/// What is measured, and how.
pub(super) struct Measuring<'a> {
    pub(super) asked: &'a RequestSpec,
    pub(super) subject: &'a Subject,
    pub(super) admin: &'a Admin,
    /// The load that is to be predicted.
    pub(super) load: &'a Load,
    pub(super) connections: usize,
    pub(super) cores: usize,
}

impl Measuring<'_> {
    pub(super) fn measure(&self) -> Result<Measurement> {
        let _awake = Awake::new(self.cores).context("cannot start threads")?;
        // The first requests may load or compile something.
        let first = ask(self.asked, WARM_UP, Count { least: 5, most: 1000 })?;
        let rows = first.iter().map(|answer| answer.rows).max().unwrap_or(1).max(1);
        let measured = match self.sizes(rows) {
            Err(error) if error.downcast_ref::<NotAllowed>().is_none() => {
                return Err(error.context("cannot measure the model's batches"));
            }
            sizes => sizes.ok(),
        };
        let sizes_are_measured = measured.is_some();
        let service = measured.unwrap_or_else(|| self.learned(rows, &first));
        let cpus = Cpus { measuring: self, service: &service };
        let client_us = cpus.measure(self.asked, 1, "one connection: ")?.client_us;
        // The stages and the CPU time are those of the same requests.
        let before = cpus.read()?;
        let answers = ask(self.asked, self.time(), SINGLE_COUNT)?;
        let asked = (answers.len() + NOT_COUNTED) as f64;
        let alone = cpus.of(cpus.read()? - before, asked, client_us);
        let other = self.other(rows, &cpus)?;
        let is_handler = self.subject.is_handler;
        let costs = Costs { is_handler, ..costs(alone, &other, &answers) };
        Ok(Measurement { costs, rows, service, sizes_are_measured, alone, other })
    }

    fn other(&self, rows: usize, cpus: &Cpus<'_>) -> Result<Other> {
        let both = |asked: &RequestSpec, are_inferences| -> Result<Other> {
            let one_connection = cpus.measure(asked, 1, "others, one connection: ")?;
            let all_connections =
                cpus.measure(asked, self.connections, "others, all connections: ")?;
            Ok(Other { are_inferences, one_connection, all_connections })
        };
        // Inferences over all connections are the load itself if it is that of a model. Little is
        // known from a model that takes most of the time.
        if self.subject.pipeline.is_some()
            && let Ok(inference) = self.inference(rows)
            && let other = both(&inference, true)?
            && other.all_connections.model_us < other.all_connections.server_us / 2.0
        {
            return Ok(other);
        }
        let live = RequestSpec {
            url: Url { path: "/livez".to_owned(), ..self.asked.url.clone() },
            method: "GET".to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            tls: None,
        };
        both(&live, false)
    }

    /// An inference of so many rows of zeros, which the tenant may be allowed.
    fn inference(&self, rows: usize) -> Result<RequestSpec> {
        let headers = self.asked.headers.iter();
        let headers = headers.filter(|header| is_key(header)).cloned();
        let url = Url { path: self.subject.model_path.clone(), ..self.asked.url.clone() };
        inference(&url, rows, headers.collect(), None)
    }

    fn time(&self) -> Duration {
        self.load.duration.min(PART)
    }

    /// The time of batches of one request, of two, of four and so on.
    fn sizes(&self, rows: usize) -> Result<Service> {
        let max = self.subject.config.max_rows.min(rows * self.connections);
        let mut points = Vec::new();
        let mut size = rows.min(max).max(1);
        loop {
            let answers = trimmed(ask(&self.inference(size)?, SIZE, SIZE_COUNT)?);
            points.push((size, mean(answers.iter().map(|answer| answer.model_us))));
            if size >= max {
                return Ok(Service::new(points));
            }
            size = (size * 2).min(max);
        }
    }

    /// The time of batches that the server has learned; else one that grows in proportion.
    fn learned(&self, rows: usize, answers: &[Told]) -> Service {
        let one = mean(answers.iter().map(|answer| answer.model_us));
        match self.subject.config.learned_us {
            Some((fixed, per_row)) if rows < self.subject.config.max_rows => {
                let max = self.subject.config.max_rows;
                Service::new(vec![(rows, one), (max, fixed + per_row * max as f64)])
            }
            _ => Service::new(vec![(rows, one)]),
        }
    }
}

/// The CPU time of requests.
struct Cpus<'a> {
    measuring: &'a Measuring<'a>,
    service: &'a Service,
}

impl Cpus<'_> {
    /// That of client and server for each request of a load.
    fn measure(&self, asked: &RequestSpec, connections: usize, what: &str) -> Result<Cpu> {
        let Load { threads, patience, .. } = *self.measuring.load;
        let target = asked.target()?;
        let load = |duration| Load {
            targets: vec![target.clone()],
            pace: Pace::Closed { connections },
            threads: threads.min(connections),
            warm_up: Duration::ZERO,
            duration,
            patience,
        };
        modes::once(&load(WARM_UP), what)?;
        let before = self.read()?;
        let measured = modes::once(&load(self.measuring.time()), what)?;
        let used = self.read()? - before;
        Ok(self.of(used, measured.answered.max(1) as f64, measured.client_cpu_us))
    }

    fn read(&self) -> Result<Figures> {
        Figures::read(self.measuring.admin, &self.measuring.subject.model)
    }

    /// The model's part is that of its batches if nothing else ran. The server's own figure has the
    /// time in which other threads had the core, too.
    fn of(&self, used: Figures, answered: f64, client_us: f64) -> Cpu {
        let Figures { cpu_us, rows, batches, .. } = used;
        let batch_us = self.service.of((rows / batches.max(1.0)).round() as usize);
        let threads = self.measuring.subject.config.threads as f64;
        let model_us = batches * batch_us * threads / answered;
        Cpu { client_us, server_us: cpu_us / answered, model_us }
    }
}

fn costs(alone: Cpu, other: &Other, answers: &[Told]) -> Costs {
    let samples = |of: fn(&Told) -> f64| Samples::new(answers.iter().map(of).collect());
    let (pre_us, post_us) = (samples(|answer| answer.pre_us), samples(|answer| answer.post_us));
    let Other { one_connection: one, all_connections: all, .. } = other;
    let http_alone = alone.rest_us() - pre_us.mean() - post_us.mean();
    // What a request takes more or less than the other takes, with as many wake-ups.
    let more =
        |load_cost: f64, other: f64, of_all: f64| (load_cost - other + of_all).max(of_all / 2.0);
    Costs {
        client_us: more(alone.client_us, one.client_us, all.client_us),
        http_us: more(http_alone, one.rest_us(), all.rest_us()),
        pre_us,
        post_us,
        is_handler: false,
    }
}

/// Without the slowest.
fn trimmed(mut answers: Vec<Told>) -> Vec<Told> {
    let all = |answer: &Told| answer.pre_us + answer.post_us + answer.model_us;
    answers.sort_by(|one, other| all(one).total_cmp(&all(other)));
    let kept = (answers.len() as f64 * (1.0 - STALLS)).ceil() as usize;
    answers.truncate(kept);
    answers
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = values.fold((0, 0.0), |(count, sum), value| (count + 1, sum + value));
    sum / f64::from(count.max(1))
}

/// Whether the header is that of a key.
fn is_key(header: &str) -> bool {
    header.split_once(':').is_some_and(|(name, _)| name.eq_ignore_ascii_case("authorization"))
}

#[cfg(test)]
mod tests {
    use super::{Cpu, Other, Told, costs, trimmed};

    #[test]
    fn http_is_the_rest_with_the_wake_ups_of_the_load() {
        let cpu = |client_us, server_us| Cpu { client_us, server_us, model_us: 10.0 };
        let answers = [Told { pre_us: 40.0, post_us: 20.0, model_us: 10.0, rows: 1 }];
        let other = Other {
            are_inferences: true,
            one_connection: cpu(10.0, 40.0),
            all_connections: cpu(4.0, 25.0),
        };
        let split = costs(cpu(12.0, 120.0), &other, &answers);
        assert_eq!((split.client_us, split.http_us), (6.0, 35.0));
        assert_eq!((split.pre_us.mean(), split.post_us.mean()), (40.0, 20.0));
        // A measurement that is off does not make a part free.
        let split = costs(cpu(1.0, 70.0), &other, &answers);
        assert_eq!((split.client_us, split.http_us), (2.0, 7.5));
    }

    #[test]
    fn stalls_are_left_out() {
        let answer = |us| Told { pre_us: us, ..Told::default() };
        let kept = trimmed((1..=100).rev().map(|us| answer(f64::from(us))).collect());
        assert_eq!((kept.len(), kept[97].pre_us), (98, 98.0));
    }
}
