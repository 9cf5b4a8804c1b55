//! The outputs that a pipeline's JSON answers are.
//!
//! Each answer is read once to find all values, and each value once. The memory of an output counts
//! as a whole before any of its values is read.

use std::sync::Arc;

use gristmill_core::{ByteBudget, ErrorCode, Shape};
use gristmill_oip::{Output, OutputData, Reserved, Room, RowValue};
use gristmill_serve::RowResponse;
use gristmill_snapshot::{NamedOutput, Signature, row_dims};
use gristmill_transport::Problem;
use serde_json::value::RawValue;

use super::row::in_row;
use super::time::TimeLeft;
use crate::inference::pipeline::check_status;

/// An output that is wanted.
struct Wanted<'a> {
    /// Its place in the signature.
    at: usize,
    output: &'a NamedOutput,
    dims: Vec<usize>,
}

/// The outputs at the places in `wanted`, with a row of each response.
///
/// # Errors
/// A response has an error status, is not JSON, or has another value than an output needs; the
/// budget has no room, or the time is over.
pub(super) fn outputs(
    signature: &Signature,
    wanted: &[usize],
    responses: &[RowResponse],
    budget: &Arc<ByteBudget>,
    time: TimeLeft,
) -> Result<Vec<Output>, Problem> {
    let count = responses.len();
    let wanted = wanted.iter().filter_map(|at| {
        let output = signature.outputs.get(*at)?;
        Some(Wanted { at: *at, output, dims: row_dims(&output.info) })
    });
    let wanted: Vec<_> = wanted.collect();
    let mut rows = Vec::with_capacity(count);
    for (row, response) in responses.iter().enumerate() {
        time.check()?;
        let values = values(signature, &wanted, response);
        rows.push(values.map_err(|problem| in_row(problem, row, count))?);
    }
    let room = Room::new(Some(budget), usize::MAX);
    let mut columns: Vec<Reserved> = Vec::with_capacity(wanted.len());
    for (column, wanted) in wanted.iter().enumerate() {
        let bytes = rows.iter().map(|values| wanted.row().bytes_max(values[column]));
        let bytes = bytes.fold(0, usize::saturating_add);
        columns.push(room.reserve(&wanted.output.info.name, bytes)?);
    }
    for (row, values) in rows.iter().enumerate() {
        time.check()?;
        for ((wanted, value), column) in wanted.iter().zip(values).zip(&mut columns) {
            let read = wanted.read(value, &mut column.bytes);
            read.map_err(|problem| in_row(problem, row, count))?;
        }
    }
    let outputs = wanted.iter().zip(columns).map(|(wanted, column)| {
        let info = &wanted.output.info;
        let sizes = info.dims.iter().skip(1).filter_map(|size| *size);
        let shape: Shape = std::iter::once(count).chain(sizes).collect();
        let data = OutputData::Bytes(column.into_bytes());
        Output { name: info.name.clone(), datatype: info.dtype, shape, data }
    });
    Ok(outputs.collect())
}

/// The values of the outputs that are wanted in a response.
fn values<'a>(
    signature: &Signature,
    wanted: &[Wanted<'_>],
    response: &'a RowResponse,
) -> Result<Vec<&'a RawValue>, Problem> {
    check_status(response.status, &response.body)?;
    let values = signature
        .pointers
        .values(&response.body)
        .map_err(|why| unusable(format!("the pipeline's answer is not JSON: {why}")))?;
    let value = |Wanted { at, output, .. }: &Wanted<'_>| {
        let (name, pointer) = (&output.info.name, &output.pointer);
        values.get(*at).copied().flatten().ok_or_else(|| {
            unusable(format!("output {name:?}: the pipeline's answer has no value at {pointer:?}"))
        })
    };
    wanted.iter().map(value).collect()
}

impl Wanted<'_> {
    fn row(&self) -> RowValue<'_> {
        RowValue { datatype: self.output.info.dtype, dims: &self.dims }
    }

    /// Append one row of the output to `bytes`.
    fn read(&self, value: &RawValue, bytes: &mut Vec<u8>) -> Result<(), Problem> {
        self.row().read(value, bytes).map_err(|why| {
            let (name, pointer) = (&self.output.info.name, &self.output.pointer);
            unusable(format!("output {name:?}: the value at {pointer:?} of the answer: {why}"))
        })
    }
}

fn unusable(detail: String) -> Problem {
    Problem::new(ErrorCode::PluginInvalidOutput, detail)
}
