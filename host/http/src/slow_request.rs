//! Keeping a request among the slowest of its tenant, when it has ended.

use std::time::SystemTime;

use gristmill_core::{Outcome, Record, SinkNames, SlowRequest};

/// Maximum bytes of a request's id that are kept.
const ID_BYTES_MAX: usize = 128;

/// Keep the request with this record, if it is among the slowest of its tenant. One that was not
/// charged to a pipeline or a model is not kept: it can be slow at its client's will.
pub(crate) fn note(record: &Record, id: &str) {
    let Some(slowest) = record.subject.as_ref().and_then(|subject| subject.slowest()) else {
        return;
    };
    let work = record.took.saturating_sub(record.read.unwrap_or_default());
    let ended = record.arrived + record.took;
    slowest.note(work, ended, || {
        let SinkNames { pipeline, model, .. } = record.names();
        SlowRequest {
            id: id[..id.floor_char_boundary(ID_BYTES_MAX)].to_owned(),
            at: SystemTime::now(),
            ended,
            pipeline: pipeline.cloned(),
            model: model.cloned(),
            code: match record.outcome {
                Outcome::Answered => "ok",
                Outcome::Abandoned => "abandoned",
                Outcome::Failed(code) => code.as_str(),
            },
            took: record.took,
            stages: record.stages(),
            batch_rows: record.batch_rows(),
            batch_tenants: record.batch_tenants(),
            charge: record.charge(),
        }
    });
}
