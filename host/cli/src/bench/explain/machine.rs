//! The costs of all parts of a machine that serves one kind of request, as the simulation takes
//! them. Times are in microseconds.

use gristmill_load::Random;

/// A client, a server and a model on one machine.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub(super) cores: usize,
    /// The client's connections. Each sends the next request when it has its answer.
    pub(super) connections: usize,
    pub(super) client_threads: usize,
    /// Whether the client runs on the server's cores.
    pub(super) client_is_here: bool,
    /// The server's threads for requests.
    pub(super) server_threads: usize,
    pub(super) costs: Costs,
    pub(super) lane: LaneModel,
}

/// The CPU time that one request takes in each part, without the model's.
#[derive(Clone, Debug)]
pub(super) struct Costs {
    /// Sending the request and reading its answer.
    pub(super) client_us: f64,
    /// Reading the request and writing its answer, with all that the server does besides plugins
    /// and model.
    pub(super) http_us: f64,
    pub(super) pre_us: Samples,
    pub(super) post_us: Samples,
    /// Whether both are the halves of a handler's call, before and after its runs.
    pub(super) is_handler: bool,
}

/// The batches of a model.
#[derive(Clone, Debug)]
pub(super) struct LaneModel {
    pub(super) instances: usize,
    /// The threads of one run.
    pub(super) threads: usize,
    /// The rows of one request.
    pub(super) rows: usize,
    /// Maximum rows of a batch.
    pub(super) max_rows: usize,
    /// Ascending.
    pub(super) preferred_rows: Vec<usize>,
    /// How long a request waits for others while an instance is idle.
    pub(super) delay_us: f64,
    pub(super) service: Service,
}

/// Times that were measured, one of which is drawn for each request.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples(Vec<f64>);

/// How long a batch takes, by its rows: measured sizes, ascending, with lines between them.
#[derive(Clone, Debug)]
pub(super) struct Service(Vec<(usize, f64)>);

impl Samples {
    pub(super) fn new(samples: Vec<f64>) -> Self {
        Self(samples)
    }

    pub(super) fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len().max(1) as f64
    }

    pub(super) fn draw(&self, random: &mut Random) -> f64 {
        if self.0.is_empty() { 0.0 } else { self.0[random.below(self.0.len())] }
    }

    pub(super) fn times(&self, factor: f64) -> Self {
        Self(self.0.iter().map(|sample| sample * factor).collect())
    }
}

impl Service {
    /// From measured sizes. A larger batch never takes less time than a smaller one.
    pub(super) fn new(mut points: Vec<(usize, f64)>) -> Self {
        points.sort_by_key(|(rows, _)| *rows);
        points.dedup_by_key(|(rows, _)| *rows);
        let mut least = 0.0;
        for (_, us) in &mut points {
            *us = us.max(least);
            least = *us;
        }
        Self(points)
    }

    pub(super) fn points(&self) -> &[(usize, f64)] {
        &self.0
    }

    /// The time of a batch. Beyond the sizes that were measured the last line goes on; from one
    /// size alone the time grows in proportion.
    pub(super) fn of(&self, rows: usize) -> f64 {
        let after = self.0.partition_point(|(size, _)| *size < rows);
        let line = |(from, from_us): (usize, f64), (to, to_us): (usize, f64)| {
            let share = (rows as f64 - from as f64) / (to as f64 - from as f64);
            from_us + share * (to_us - from_us)
        };
        match (&*self.0, after) {
            ([], _) => 0.0,
            ([(_, us), ..], 0) => *us,
            ([(size, us)], _) => us * rows as f64 / (*size).max(1) as f64,
            (points, after) => {
                let last = after.min(points.len() - 1);
                line(points[last - 1], points[last])
            }
        }
    }

    pub(super) fn times(&self, factor: f64) -> Self {
        Self(self.0.iter().map(|(rows, us)| (*rows, us * factor)).collect())
    }
}

impl LaneModel {
    /// The time of a batch of so many requests. A request with more rows than a batch holds runs in
    /// several.
    pub(super) fn batch_us(&self, requests: usize) -> f64 {
        let rows = requests * self.rows;
        match rows > self.max_rows {
            true => self.service.of(self.max_rows) * rows as f64 / self.max_rows as f64,
            false => self.service.of(rows),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Service;

    #[test]
    fn between_measured_sizes_there_are_lines() {
        let service = Service::new(vec![(4, 50.0), (1, 20.0), (8, 90.0)]);
        assert_eq!([1, 2, 4, 6, 8].map(|rows| service.of(rows)), [20.0, 30.0, 50.0, 70.0, 90.0]);
        assert_eq!(service.of(16), 170.0, "the last line goes on");
        assert_eq!(Service::new(vec![(2, 10.0)]).of(6), 30.0);
        assert_eq!(Service::new(vec![(2, 10.0)]).of(1), 10.0);
        let noisy = Service::new(vec![(1, 20.0), (2, 15.0)]);
        assert_eq!(noisy.of(2), 20.0, "a larger batch takes no less");
    }
}
