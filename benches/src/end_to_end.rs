//! The whole server, compared with the bare session in this process at the same batch: HTTP
//! clients, the server's process, its lane and the model.
//!
//! The bare session always runs whole batches of the largest size, so forming smaller batches
//! counts against the server. Clients and server share the machine.

mod clients;
mod server;

use std::path::Path;

use anyhow::{Context, Result, ensure};
use gristmill_backend::LoadedModel;
use gristmill_core::Tensor;
use serde_json::{Value, json};

use self::clients::{Clients, Flow};
pub use self::server::Server;
use self::server::infer_request;
use crate::compare::{Comparison, ROUNDS, bare_loop, batch_for, median_ratio};
use crate::files::read;
use crate::harness::Harness;

/// The number of connections whose requests are a whole batch each. With so many, a next request is
/// always queued.
const BATCHED_CONNECTIONS: usize = 4;

/// A server of the binary `gristmill` that serves the model in the file `path`.
pub fn serve(harness: &Harness, gristmill: &Path, path: &str) -> Result<Server> {
    let server = Server::start(gristmill)?;
    harness.runtime.block_on(server.deploy(read(Path::new(path))?))?;
    Ok(server)
}

/// Clients with one way to send rows, and their results in each round.
struct Way {
    name: &'static str,
    clients: Clients,
    flows: Vec<Flow>,
}

/// Measure rows a second in rounds: by the bare session, through the server in requests of one row
/// (`end to end`), and in requests of a whole batch (`end to end batched`). Returns the figures of
/// each way through the server.
pub fn compare(
    harness: &Harness,
    server: &Server,
    comparison: &Comparison,
) -> Result<Vec<(&'static str, Value)>> {
    let Comparison { path, options, rows, batch, time, warm_up, .. } = comparison;
    harness.runtime.block_on(server.configure(options, *batch))?;
    let mut bare = harness.load_with(path, options)?;
    let input = batch_for(&bare, &rows[0], *batch);
    let mut ways = ways(comparison, &mut bare, &input)?;
    bare_loop(&mut bare, &input, *warm_up)?;
    for way in &ways {
        harness.runtime.block_on(way.clients.run(server, *warm_up))?;
    }
    let mut bare_per_s = Vec::new();
    for _ in 0..ROUNDS {
        bare_per_s.push(bare_loop(&mut bare, &input, *time)?);
        for way in &mut ways {
            way.flows.push(harness.runtime.block_on(way.clients.run(server, *time))?);
        }
    }
    Ok(ways.into_iter().map(|way| (way.name, way.figures(&bare_per_s))).collect())
}

/// The two ways to send rows. The expected length of an answer comes from a run of the bare
/// session.
fn ways(comparison: &Comparison, bare: &mut LoadedModel, batch: &Tensor) -> Result<[Way; 2]> {
    let name = bare.info.inputs[0].name.clone();
    let session = bare.instances.first_mut().context("no instance")?;
    let outputs = session.run(std::slice::from_ref(batch))?;
    let batch_bytes: usize = outputs.iter().map(|output| output.as_bytes().len()).sum();
    ensure!(
        batch_bytes.is_multiple_of(batch.rows()),
        "{batch_bytes} bytes of outputs are not {} rows",
        batch.rows()
    );

    let rows = comparison.rows;
    let whole: Vec<Tensor> = rows.iter().cycle().take(batch.rows()).cloned().collect();
    let single = Clients {
        connections: comparison.clients,
        requests: rows.iter().map(|row| infer_request(&name, std::slice::from_ref(row))).collect(),
        rows: 1,
        answer_bytes: batch_bytes / batch.rows(),
    };
    let batched = Clients {
        connections: BATCHED_CONNECTIONS,
        requests: vec![infer_request(&name, &whole)],
        rows: batch.rows(),
        answer_bytes: batch_bytes,
    };
    Ok([
        Way { name: "end to end", clients: single, flows: Vec::new() },
        Way { name: "end to end batched", clients: batched, flows: Vec::new() },
    ])
}

impl Way {
    fn figures(&self, bare_per_s: &[f64]) -> Value {
        let per_s: Vec<_> = self.flows.iter().map(|flow| flow.rows_per_s).collect();
        let mean_batch: Vec<_> = self.flows.iter().map(|flow| flow.mean_batch).collect();
        json!({
            "per_s": per_s,
            "bare_per_s": bare_per_s,
            "mean_batch": mean_batch,
            "connections": self.clients.connections,
            "ratio": median_ratio(&per_s, bare_per_s),
        })
    }
}
