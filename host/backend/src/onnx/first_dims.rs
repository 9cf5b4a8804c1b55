//! First dimensions of outputs that a file fixes. Converters of LightGBM write that a classifier
//! has one label, whatever the number of rows.

use super::wire::{Malformed, fields, put_bytes};

/// The fields of a model and of a graph.
const GRAPH: u64 = 7;
const INPUT: u64 = 11;
const OUTPUT: u64 = 12;

/// The fields on the way from an input or output to its dimensions: type, tensor, shape, dimension.
const DIMS: [u64; 4] = [2, 1, 2, 1];

/// The number in a dimension.
const SIZE: u64 = 1;

/// Whether a model fixes the first dimension of an output, but not that of each input.
///
/// # Errors
/// The file is malformed.
pub(crate) fn are_fixed(model: &[u8]) -> Result<bool, Malformed> {
    let (mut has_open_input, mut has_fixed_output) = (false, false);
    for graph in fields(model) {
        let graph = graph?;
        if graph.number != GRAPH {
            continue;
        }
        for field in fields(graph.bytes()) {
            let field = field?;
            match field.number {
                INPUT => has_open_input |= is_fixed(field.bytes())? == Some(false),
                OUTPUT => has_fixed_output |= is_fixed(field.bytes())? == Some(true),
                _ => {}
            }
        }
    }
    Ok(has_open_input && has_fixed_output)
}

/// Whether the first dimension of an input or output is a number. None if it has none.
fn is_fixed(value_info: &[u8]) -> Result<Option<bool>, Malformed> {
    let mut message = value_info;
    for number in DIMS {
        match first(message, number)? {
            Some(inner) => message = inner,
            None => return Ok(None),
        }
    }
    Ok(Some(first(message, SIZE)?.is_some()))
}

/// The first field of this number.
fn first(message: &[u8], number: u64) -> Result<Option<&[u8]>, Malformed> {
    for field in fields(message) {
        let field = field?;
        if field.number == number {
            return Ok(Some(field.bytes()));
        }
    }
    Ok(None)
}

/// The model with an open first dimension of each output whose first one is fixed.
///
/// # Errors
/// The file is malformed.
pub(crate) fn opened(model: &[u8]) -> Result<Vec<u8>, Malformed> {
    let [kind, tensor, shape, dim] = DIMS;
    opened_at(model, &[GRAPH, OUTPUT, kind, tensor, shape, dim])
}

/// The message with an open dimension at the end of the way.
fn opened_at(message: &[u8], way: &[u64]) -> Result<Vec<u8>, Malformed> {
    let Some((number, rest)) = way.split_first() else {
        return Ok(if first(message, SIZE)?.is_some() { Vec::new() } else { message.to_vec() });
    };
    let mut changed = Vec::with_capacity(message.len());
    let mut is_done = false;
    for field in fields(message) {
        let field = field?;
        if field.number != *number || is_done {
            changed.extend_from_slice(field.raw);
            continue;
        }
        put_bytes(&mut changed, *number, &opened_at(field.bytes(), rest)?);
        // Only the first dimension of a shape.
        is_done = rest.is_empty();
    }
    Ok(changed)
}

#[cfg(test)]
mod tests;
