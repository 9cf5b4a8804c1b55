//! Models: their batches, queues, instances and providers.

use gristmill_batch::{LaneStatistics, Times};
use gristmill_metrics::{Collected, Distribution, family};
use gristmill_snapshot::{ServedModel, Snapshot};

/// The upper bounds of the ranges of a batch's rows.
const ROWS: [f64; 11] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];

/// The upper bounds of the ranges of a batch's share of the most rows.
const FILL: [f64; 10] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];

pub(crate) fn collect(snapshot: &Snapshot, collected: &mut Collected) {
    for (name, model) in &snapshot.models {
        for (version, served) in model.versions() {
            if let Ok(served) = served {
                let version = version.to_string();
                One { model: name.as_str(), version: &version }.collect(served, collected);
            }
        }
    }
}

/// The attributes of a version of a model.
#[derive(Clone, Copy)]
struct One<'a> {
    model: &'a str,
    version: &'a str,
}

impl One<'_> {
    fn collect(self, served: &ServedModel, collected: &mut Collected) {
        let Self { model, version } = self;
        let ServedModel { lane, providers, file_bytes, .. } = served;
        let labels = [model, version];
        let statistics = lane.statistics();
        self.collect_batches(&statistics, lane.config().max_batch_size, collected);
        let mut add = |family, last: &str, value: f64| {
            collected.add(family, &[model, version, last], value);
        };
        let total = &statistics.total;
        add(family::MODEL_REQUESTS, "success", total.success as f64);
        add(family::MODEL_REQUESTS, "fail", total.fail as f64);
        add(family::MODEL_REFUSED, "queue_full", statistics.refused as f64);
        add(family::MODEL_REFUSED, "too_late", statistics.refused_early as f64);
        add(family::MODEL_REFUSED, "expired", statistics.expired as f64);
        add(family::MODEL_INCIDENTS, "bisected", statistics.bisections as f64);
        add(family::MODEL_INCIDENTS, "given_up", statistics.given_up as f64);
        add(family::MODEL_INCIDENTS, "lost", statistics.lost as f64);
        let ended = f64::from(u8::from(lane.batches_ended().is_some()));
        add(family::MODEL_INCIDENTS, "batching_ended", ended);
        add(family::MODEL_INSTANCES, "busy", statistics.running as f64);
        add(family::MODEL_INSTANCES, "idle", statistics.idle as f64);
        for provider in providers.iter() {
            add(family::PROVIDER_RUNS, provider.name, provider.runs() as f64);
            add(family::PROVIDER_FAULTS, provider.name, provider.faults() as f64);
            add(family::PROVIDER_OPEN, provider.name, f64::from(u8::from(provider.is_open())));
        }
        if !lane.config().padding.is_none() {
            add(family::BATCH_ELEMENTS, "real", statistics.elements.real as f64);
            add(family::BATCH_ELEMENTS, "padding", statistics.elements.padding as f64);
        }
        collected.add(family::QUEUE_ROWS, &labels, statistics.queued_rows);
        collected.add(family::QUEUE_AGE, &labels, statistics.queue_age.as_secs_f64());
        collected.add(family::MODEL_SIZE, &labels, *file_bytes);
    }

    fn collect_batches(
        self,
        statistics: &LaneStatistics,
        rows_max: usize,
        collected: &mut Collected,
    ) {
        let labels = [self.model, self.version];
        let (mut rows, mut fill) = (Distribution::of(&ROWS), Distribution::of(&FILL));
        let mut times = Times::default();
        for (size, batches) in &statistics.total.batches {
            rows.add(*size as f64, batches.count);
            fill.add(*size as f64 / rows_max.max(1) as f64, batches.count);
            times.input += batches.times.input;
            times.run += batches.times.run;
            times.output += batches.times.output;
        }
        collected.add(family::BATCH_ROWS, &labels, rows);
        collected.add(family::BATCH_FILL, &labels, fill);
        collected.add(family::BATCH_ROWS_MAX, &labels, rows_max);
        collected.add(family::BATCH_MIXED, &labels, statistics.mixed_batches);
        for (part, time) in [("input", times.input), ("run", times.run), ("output", times.output)] {
            let attributes = [self.model, self.version, part];
            collected.add(family::MODEL_TIME, &attributes, time.as_secs_f64());
        }
    }
}
