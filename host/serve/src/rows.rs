//! Running the rows of one request: each is a request for the pipeline, and all run side by side.
//! Their plugin calls and model runs wait for the permits of their tenant, as those of any requests
//! do.
//!
//! All rows are one task: when their client leaves, their work is dropped at once, and the receipt
//! has what they used. So short plugin calls take turns on one core; models and long plugin calls,
//! which have threads of their own, run at the same time.
//!
//! The request has one receipt and counts once in a candidate's evaluation. Its rows are kept, and
//! run by a shadow, one by one.
//!
//! Invariants: the receipt has all that the rows used, however the request ends. The first row that
//! fails ends the others. What is kept of a row counts against the tenant's budget while others are
//! awaited.

use futures_util::stream::{FuturesUnordered, StreamExt};
use gristmill_core::{HeldBytes, Receipt};
use gristmill_sandbox::{Line, Request, Response};
use tracing::{Instrument, error_span};

use crate::evaluated::Evaluated;
use crate::pipeline::{InferError, PipelineAnswer, Work};
use crate::variant::TrialPart;

/// Maximum bytes of the lines that are kept for the trace of a request.
const TRACED_BYTES_MAX: usize = 16 << 10;

/// The answers of a pipeline to the rows of a request.
pub struct RowsAnswer {
    /// The responses in the order of the rows, or the row that failed.
    pub outcome: Result<Vec<RowResponse>, FailedRow>,
    /// The lines of the row that failed, as in [`PipelineAnswer`]. If none failed and the request
    /// is traced, the first lines of all rows.
    pub lines: Vec<Line>,
}

/// The postprocessor's response to a row, without its headers.
pub struct RowResponse {
    /// The HTTP status.
    pub status: u16,
    /// The body, which counts until this is dropped.
    pub body: Vec<u8>,
    _held: HeldBytes,
}

/// A row that failed.
pub struct FailedRow {
    /// Its index.
    pub row: usize,
    /// Why it failed.
    pub error: InferError,
}

/// Run the rows of a client's request.
pub async fn run_rows(
    work: &Work,
    rows: Vec<Request>,
    part: Option<TrialPart>,
    receipt: &mut Receipt,
) -> RowsAnswer {
    if rows.is_empty() {
        return RowsAnswer { outcome: Ok(Vec::new()), lines: Vec::new() };
    }
    let held = work.route.quota.bytes.hold(0);
    let mut traced = work.is_traced.then(|| TracedLines { lines: Vec::new(), held });
    let evaluated = Evaluated::begin(work, part, receipt);
    let mut responses: Vec<Option<RowResponse>> = rows.iter().map(|_| None).collect();
    let mut receipts = RowReceipts::of(receipt, rows.len());
    let failed = {
        let mut running = FuturesUnordered::new();
        let evaluated = &evaluated;
        for (row, (request, receipt)) in rows.into_iter().zip(&mut receipts.rows).enumerate() {
            let running_row = async move {
                let held = work.route.quota.bytes.hold(0);
                let answer = evaluated.run(work, request, receipt).await;
                let PipelineAnswer { outcome, lines } = answer;
                // Its calls and its runs are kept until the request ends.
                let spans = size_of_val(receipt.record().spans.as_slice());
                let counted = outcome.and_then(|Response { status, body, .. }| {
                    held.try_add(body.capacity() + spans)?;
                    Ok(RowResponse { status, body, _held: held })
                });
                (row, counted, lines)
            };
            running.push(running_row.instrument(error_span!("row", row)));
        }
        loop {
            let Some((row, outcome, row_lines)) = running.next().await else { break None };
            match outcome {
                Ok(response) => responses[row] = Some(response),
                Err(error) => break Some((FailedRow { row, error }, row_lines)),
            }
            if let Some(traced) = &mut traced {
                traced.keep(row_lines);
            }
        }
    };
    drop(receipts);
    match failed {
        Some((failed, lines)) => RowsAnswer { outcome: Err(failed), lines },
        None => RowsAnswer {
            outcome: Ok(responses.into_iter().flatten().collect()),
            lines: traced.map(|traced| traced.lines).unwrap_or_default(),
        },
    }
}

/// The first lines of the rows that ended, for a trace.
struct TracedLines {
    lines: Vec<Line>,
    held: HeldBytes,
}

impl TracedLines {
    /// Keep the lines for which there is room: no request fails because it is traced.
    fn keep(&mut self, lines: Vec<Line>) {
        for line in lines {
            let bytes = line.bytes();
            let is_over = self.held.bytes() + bytes > TRACED_BYTES_MAX;
            if is_over || self.held.try_add(bytes).is_err() {
                return;
            }
            self.lines.push(line);
        }
    }
}

/// The receipts of the rows, which are joined to that of their request when this is dropped.
struct RowReceipts<'a> {
    request: &'a mut Receipt,
    rows: Vec<Receipt>,
}

impl<'a> RowReceipts<'a> {
    fn of(request: &'a mut Receipt, count: usize) -> Self {
        let rows = (0..count).map(|_| request.part()).collect();
        Self { request, rows }
    }
}

impl Drop for RowReceipts<'_> {
    fn drop(&mut self) {
        for row in self.rows.drain(..) {
            self.request.join(row);
        }
    }
}
