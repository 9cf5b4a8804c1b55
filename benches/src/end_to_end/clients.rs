//! Clients that send one request after the other, as fast as answers come.

use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use gristmill_client::http::Request;
use gristmill_client::{Answer, Connection, HEADER_LENGTH};
use tokio::task::JoinSet;
use tokio::time::sleep_until;

use super::server::Server;

/// The time from the first connection to the window in which answers count: several batches.
const SETTLE: Duration = Duration::from_millis(500);

pub(super) struct Clients {
    pub(super) connections: usize,
    /// The connections take them in turns.
    pub(super) requests: Vec<Request<Bytes>>,
    /// Rows of each request.
    pub(super) rows: usize,
    /// Bytes of the tensors in each answer.
    pub(super) answer_bytes: usize,
}

/// The results of the clients in a window of time.
pub(super) struct Flow {
    /// Rows answered.
    pub(super) rows_per_s: f64,
    /// By the server's own counters.
    pub(super) mean_batch: f64,
}

impl Clients {
    /// Keep the server busy, and count for `time`.
    pub(super) async fn run(&self, server: &Server, time: Duration) -> Result<Flow> {
        let begin = Instant::now() + SETTLE;
        let window = begin..begin + time;
        let mut tasks = JoinSet::new();
        for request in self.requests.iter().cycle().take(self.connections) {
            let (address, request) = (server.data_plane().to_owned(), request.clone());
            tasks.spawn(client(address, request, self.answer_bytes, window.clone()));
        }
        sleep_until(window.start.into()).await;
        let before = server.counts().await?;
        sleep_until(window.end.into()).await;
        let after = server.counts().await?;
        let mut answers = 0;
        while let Some(answered) = tasks.join_next().await {
            answers += answered??;
        }
        let batches = after.batches - before.batches;
        ensure!(batches > 0.0, "no batch was run in {time:?}");
        Ok(Flow {
            rows_per_s: (answers * self.rows) as f64 / time.as_secs_f64(),
            mean_batch: (after.rows - before.rows) / batches,
        })
    }
}

/// Send `request` until the window ends; returns how many answers came in it.
async fn client(
    address: String,
    request: Request<Bytes>,
    answer_bytes: usize,
    window: Range<Instant>,
) -> Result<usize> {
    let mut connection = Connection::open(&address).await?;
    let mut answers = 0;
    while Instant::now() < window.end {
        let answer = connection.send(request.clone()).await?.ok()?;
        let bytes = tensor_bytes(&answer)?;
        ensure!(
            bytes == answer_bytes,
            "an answer of {bytes} bytes, not {answer_bytes}: {}",
            answer.beginning()
        );
        if window.contains(&Instant::now()) {
            answers += 1;
        }
    }
    Ok(answers)
}

/// The bytes after the answer's JSON.
fn tensor_bytes(answer: &Answer) -> Result<usize> {
    let header_len: Option<usize> = answer.header(HEADER_LENGTH).parse().ok();
    let bytes = header_len.and_then(|len| answer.body.len().checked_sub(len));
    bytes.with_context(|| format!("an answer without binary tensors: {}", answer.beginning()))
}
