//! Running the rows of one request: each is a request for the pipeline, and all run side by side.
//! Their plugin calls and model runs wait for the permits of their tenant, as those of any requests
//! do.
//!
//! The request has one receipt and counts once in a candidate's evaluation. Its rows are kept, and
//! run by a shadow, one by one.
//!
//! Invariants: the receipt has all that the rows used, however the request ends. The first row that
//! fails ends the others. Responses count against their tenant's budget while others are awaited.

use futures_util::stream::{FuturesUnordered, StreamExt};
use gristmill_core::{HeldBytes, Receipt};
use gristmill_sandbox::{Line, Response};
use tracing::{Instrument, error_span};

use crate::evaluated::Evaluated;
use crate::pipeline::{InferError, PipelineAnswer, Work};
use crate::variant::Part;

/// The answers of a pipeline to the rows of a request.
pub struct RowsAnswer {
    /// The responses in the order of the rows, or the row that failed.
    pub outcome: Result<Vec<RowResponse>, FailedRow>,
    /// The lines of the plugin calls of the rows that ended, as in [`PipelineAnswer`].
    pub lines: Vec<Line>,
}

/// The response to a row.
pub struct RowResponse {
    /// The postprocessor's response.
    pub response: Response,
    /// Its body counts until this is dropped.
    pub held: HeldBytes,
}

/// A row that failed.
pub struct FailedRow {
    /// Its index.
    pub row: usize,
    /// Why it failed.
    pub error: InferError,
}

/// Run the rows of a client's request, which are all for the same pipeline.
pub async fn run_rows(works: Vec<Work>, part: Option<Part>, receipt: &mut Receipt) -> RowsAnswer {
    let mut lines = Vec::new();
    let Some(first) = works.first() else { return RowsAnswer { outcome: Ok(Vec::new()), lines } };
    let evaluated = Evaluated::begin(first, part, receipt);
    let mut responses: Vec<Option<RowResponse>> = works.iter().map(|_| None).collect();
    let mut receipts = RowReceipts::of(receipt, works.len());
    let failed = {
        let mut running = FuturesUnordered::new();
        for (row, (work, receipt)) in works.into_iter().zip(&mut receipts.rows).enumerate() {
            let running_row = run_row(row, work, &evaluated, receipt);
            running.push(running_row.instrument(error_span!("row", row)));
        }
        loop {
            let Some((row, outcome, row_lines)) = running.next().await else { break None };
            lines.extend(row_lines);
            match outcome {
                Ok(response) => responses[row] = Some(response),
                Err(error) => break Some(FailedRow { row, error }),
            }
        }
    };
    drop(receipts);
    let outcome = match failed {
        Some(failed) => Err(failed),
        None => Ok(responses.into_iter().flatten().collect()),
    };
    RowsAnswer { outcome, lines }
}

async fn run_row(
    row: usize,
    work: Work,
    evaluated: &Evaluated,
    receipt: &mut Receipt,
) -> (usize, Result<RowResponse, InferError>, Vec<Line>) {
    let held = work.route.quota.bytes.hold(0);
    let PipelineAnswer { outcome, lines } = evaluated.run(work, receipt).await;
    let counted = outcome.and_then(|response| {
        held.try_add(response.body.len())?;
        Ok(RowResponse { response, held })
    });
    (row, counted, lines)
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
