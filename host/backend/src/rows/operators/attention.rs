//! Attention: the rows are the batch of queries, keys, values and masks.

use tract_onnx::pb::attribute_proto::AttributeType;

use super::super::call::{Call, Outputs};
use super::super::dependence::{Axis, Rows};
use super::super::dim::Dim;
use super::super::fact::{Fact, Why};
use super::super::layout::broadcast;
use super::normalisation::statistics;

pub(super) fn rule(operator: &str) -> Option<fn(&Call) -> Outputs> {
    Some(match operator {
        "Attention" => attention,
        "RotaryEmbedding" => |call| rotary(call, [1, 2, 3]),
        _ => return None,
    })
}

/// Attention as ONNX Runtime has it.
pub(super) fn rule_of_microsoft(operator: &str) -> Option<fn(&Call) -> Outputs> {
    Some(match operator {
        "MultiHeadAttention" => multi_head,
        "Attention" => packed,
        "RotaryEmbedding" => |call| rotary(call, [2, 3, 1]),
        "SkipLayerNormalization" | "SkipSimplifiedLayerNormalization" => skip_normalisation,
        _ => return None,
    })
}

const NOT_BATCH: &str = "the rows are not its batch";

/// Whether the rows are the batch, in dimension `at`.
fn is_batch(fact: &Fact, at: usize) -> Result<bool, Why> {
    let is_rows = fact.dims()?.get(at) == Some(&Dim::rows());
    Ok(is_rows && fact.axis()? == Some(&Axis::first(at)))
}

fn batches(call: &Call, inputs: &[usize]) -> Result<(), Why> {
    for at in inputs {
        if let Some(fact) = call.optional(*at)
            && !is_batch(fact, 0)?
        {
            return Err(NOT_BATCH.into());
        }
    }
    Ok(())
}

/// A mask for the scores, which have four dimensions.
fn mask(call: &Call, input: usize) -> Result<(), Why> {
    let Some(mask) = call.optional(input) else { return Ok(()) };
    let dims = mask.dims()?;
    let is_for_all = mask.is_free() && (dims.len() < 4 || dims.first().is_some_and(Dim::is_one));
    if is_for_all || dims.len() == 4 && is_batch(mask, 0)? {
        return Ok(());
    }
    Err("its mask is not that of the rows".into())
}

/// A result with the batch first.
fn result(call: &Call, rank: usize) -> Fact {
    let others = (1..rank).map(|_| call.fresh());
    Fact::along(Axis::first(0), std::iter::once(Dim::rows()).chain(others).collect())
}

fn attention(call: &Call) -> Outputs {
    call.ignore(&["is_causal", "kv_num_heads", "q_num_heads", "qk_matmul_output_mode", "scale"]);
    call.ignore(&["softcap", "softmax_precision", "left_window_size", "right_window_size"]);
    call.input(2)?;
    batches(call, &[0, 1, 2, 4, 5, 6])?;
    mask(call, 3)?;
    let rank = call.input(0)?.rank()?;
    Ok(vec![Ok(result(call, rank)), Ok(result(call, 4)), Ok(result(call, 4)), Ok(result(call, 4))])
}

fn multi_head(call: &Call) -> Outputs {
    call.ignore(&["num_heads", "mask_filter_value", "scale", "unidirectional"]);
    if call.inputs.len() > 8 || !call.optional(3).is_none_or(Fact::is_free) {
        return Err("its inputs are not known".into());
    }
    batches(call, &[0, 1, 2, 4, 6, 7])?;
    mask(call, 5)?;
    let hidden = call.input(2)?.dims()?.last().cloned().unwrap_or_else(|| call.fresh());
    let query = call.input(0)?.dims()?;
    let [batch, length, _] = query else { return Err("its query is packed".into()) };
    let output = Fact::along(Axis::first(0), vec![batch.clone(), length.clone(), hidden]);
    Ok(vec![Ok(output), Ok(result(call, 4)), Ok(result(call, 4)), Ok(result(call, 4))])
}

/// One product makes queries, keys and values.
fn packed(call: &Call) -> Outputs {
    call.ignore(&["num_heads", "mask_filter_value", "scale", "unidirectional"]);
    call.ignore(&["do_rotary", "rotary_embedding_dim", "past_present_share_buffer"]);
    let sizes = call.attributes.get("qkv_hidden_sizes", AttributeType::Ints)?;
    let is_plain = call.inputs.len() <= 6 && call.optional(4).is_none() && sizes.is_none();
    let is_fixed = call.input(1)?.is_free() && call.optional(2).is_none_or(Fact::is_free);
    if !is_plain || !is_fixed {
        return Err("its inputs are not known".into());
    }
    batches(call, &[0, 3])?;
    mask(call, 5)?;
    let input = call.input(0)?;
    let [batch, length, _] = input.dims()? else { return Err(NOT_BATCH.into()) };
    let shape = vec![batch.clone(), length.clone(), call.fresh()];
    Ok(vec![Ok(input.reshaped(shape))])
}

/// Angles by place in the sequence, or by place of each row.
fn rotary(call: &Call, [cosines, sines, places]: [usize; 3]) -> Outputs {
    call.ignore(&["interleaved", "num_heads", "rotary_embedding_dim", "scale"]);
    call.ignore(&["is_packed_batching"]);
    let input = call.input(0)?;
    batches(call, &[0])?;
    match call.optional(places) {
        Some(_) => {
            batches(call, &[places])?;
            if !call.input(cosines)?.is_free() || !call.input(sines)?.is_free() {
                return Err("its angles depend on the rows".into());
            }
        }
        None => batches(call, &[cosines, sines])?,
    }
    Ok(vec![Ok(input.reshaped(input.dims()?.to_vec()))])
}

fn skip_normalisation(call: &Call) -> Outputs {
    call.ignore(&["epsilon"]);
    let (input, skip) = (call.input(0)?, call.input(1)?);
    call.free_from(2)?;
    let (rows, shape) = broadcast(&[input, skip], call)?;
    let sum = Fact::new(rows, Some(shape));
    let last = sum.rank()?.checked_sub(1).ok_or("its input has no dimensions")?;
    let statistics = statistics(&sum, &[last])?;
    match sum.rows {
        Rows::Along(_) => {
            Ok(vec![Ok(sum.clone()), Ok(statistics.clone()), Ok(statistics), Ok(sum)])
        }
        _ => Err("its input does not depend on the rows".into()),
    }
}
