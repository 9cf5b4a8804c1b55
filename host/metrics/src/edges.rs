//! The figures of all answers, by protocol: also of those that reached no pipeline.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use gristmill_core::{ErrorCode, Outcome, Shards};

use crate::collected::Collected;
use crate::family;
use crate::histogram::Durations;

/// A protocol of the data plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// `/v1`, and paths at which nothing is served.
    V1,
    /// The Open Inference Protocol over HTTP.
    V2,
    /// The same over gRPC.
    Grpc,
}

const EDGES: [(Edge, &str); 3] = [(Edge::V1, "v1"), (Edge::V2, "v2"), (Edge::Grpc, "grpc")];

/// An answer without an error.
const OK: usize = ErrorCode::ALL.len();

/// Its client left before it had all of the answer.
const ABANDONED: usize = OK + 1;

/// The figures of all answers.
#[derive(Debug, Default)]
pub struct EdgeFigures(Shards<[OneEdge; EDGES.len()]>);

#[derive(Debug)]
struct OneEdge {
    codes: [AtomicU64; ABANDONED + 1],
    writes: Durations,
}

impl Default for OneEdge {
    fn default() -> Self {
        let codes = std::array::from_fn(|_| AtomicU64::new(0));
        Self { codes, writes: Durations::default() }
    }
}

impl EdgeFigures {
    /// Count an answer that ended so.
    pub fn ended(&self, edge: Edge, outcome: Outcome) {
        let at = match outcome {
            Outcome::Failed(code) => code as usize,
            Outcome::Answered => OK,
            Outcome::Abandoned => ABANDONED,
        };
        self.0.local()[edge as usize].codes[at].fetch_add(1, Relaxed);
    }

    /// Count the time that it took to write the body of an answer.
    pub fn written(&self, edge: Edge, took: Duration) {
        self.0.local()[edge as usize].writes.add(took);
    }

    /// Add the values to `collected`.
    pub fn collect(&self, collected: &mut Collected) {
        for (edge, protocol) in EDGES {
            let shards = || self.0.all().map(|edges| &edges[edge as usize]);
            for at in 0..=ABANDONED {
                let count: u64 = shards().map(|edge| edge.codes[at].load(Relaxed)).sum();
                if count > 0 {
                    let code = match at {
                        OK => "ok",
                        ABANDONED => "abandoned",
                        at => ErrorCode::ALL[at].as_str(),
                    };
                    collected.add(family::RESPONSES, &[protocol, code], count);
                }
            }
            let mut writes = Durations::default().get();
            shards().for_each(|edge| edge.writes.add_to(&mut writes));
            if writes.count() > 0 {
                collected.add(family::WRITE_DURATION, &[protocol], writes);
            }
        }
    }
}
