//! The outputs that a pipeline's JSON answers are.

use std::sync::Arc;

use bytes::Bytes;
use gristmill_core::{ByteBudget, ErrorCode, Shape};
use gristmill_oip::{Output, OutputData, ParseError, Room, RowValue, ValueFault};
use gristmill_sandbox::value_at;
use gristmill_serve::RowResponse;
use gristmill_snapshot::{NamedOutput, Signature, row_dims};
use gristmill_transport::Problem;

use super::row::in_row;
use crate::inference::pipeline::check_status;

/// The outputs at the places in `wanted`, with a row of each response.
///
/// # Errors
/// A response has an error status, is not JSON, or has another value than an output needs; or the
/// budget has no room.
pub(super) fn outputs(
    signature: &Signature,
    wanted: &[usize],
    responses: Vec<RowResponse>,
    budget: &Arc<ByteBudget>,
) -> Result<Vec<Output>, Problem> {
    let rows = responses.len();
    let room = Room::new(Some(budget), usize::MAX);
    let wanted: Vec<_> = wanted.iter().filter_map(|at| signature.outputs.get(*at)).collect();
    let dims: Vec<_> = wanted.iter().map(|output| row_dims(&output.info)).collect();
    let mut columns: Vec<Vec<Bytes>> = wanted.iter().map(|_| Vec::with_capacity(rows)).collect();
    for (row, RowResponse { response, held }) in responses.into_iter().enumerate() {
        check_status(&response).map_err(|problem| in_row(problem, row, rows))?;
        for ((output, dims), column) in wanted.iter().zip(&dims).zip(&mut columns) {
            let value = value_of(output, dims, &response.body, &room);
            column.push(value.map_err(|problem| in_row(problem, row, rows))?);
        }
        drop((response, held));
    }
    let outputs = wanted.iter().zip(columns).map(|(output, column)| {
        let info = &output.info;
        let sizes = info.dims.iter().skip(1).filter_map(|size| *size);
        let shape: Shape = std::iter::once(rows).chain(sizes).collect();
        let data = OutputData::Bytes(joined(&info.name, column, &room)?);
        Ok(Output { name: info.name.clone(), datatype: info.dtype, shape, data })
    });
    outputs.collect()
}

/// The bytes of one row of an output.
fn value_of(
    output: &NamedOutput,
    dims: &[usize],
    answer: &[u8],
    room: &Room<'_>,
) -> Result<Bytes, Problem> {
    let (name, pointer) = (&*output.info.name, &output.pointer);
    let value = value_at(answer, pointer)
        .map_err(|why| unusable(format!("the pipeline's answer is not JSON: {why}")))?;
    let missing =
        || unusable(format!("output {name:?}: the pipeline's answer has no value at {pointer:?}"));
    let row = RowValue { name, datatype: output.info.dtype, dims };
    row.read(value.ok_or_else(missing)?, room).map_err(|fault| match fault {
        ValueFault::Value(why) => {
            unusable(format!("output {name:?}: the value at {pointer:?} of the answer: {why}"))
        }
        ValueFault::Room(error) => error.into(),
    })
}

fn unusable(detail: String) -> Problem {
    Problem::new(ErrorCode::PluginInvalidOutput, detail)
}

/// All rows of an output.
fn joined(name: &str, mut rows: Vec<Bytes>, room: &Room<'_>) -> Result<Bytes, ParseError> {
    if rows.len() == 1
        && let Some(row) = rows.pop()
    {
        return Ok(row);
    }
    let mut all = room.reserve(name, rows.iter().map(Bytes::len).sum())?;
    rows.iter().for_each(|row| all.bytes.extend_from_slice(row));
    Ok(all.into_bytes())
}
