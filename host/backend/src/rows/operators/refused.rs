//! Operators through which rows are never followed, each with the reason.

use super::super::call::{Call, Outputs};
use super::super::dim::Dim;
use super::super::fact::Fact;

const OF_BATCH: &str = "its scale is that of the whole batch; quantize the model statically";

const BY_VALUES: &str = "the number of its results depends on values";

/// Operators whose results are random.
pub(super) const RANDOM: [&str; 6] = [
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "Multinomial",
    "Bernoulli",
];

pub(super) fn rule(operator: &str) -> Option<fn(&Call) -> Outputs> {
    Some(match operator {
        random if RANDOM.contains(&random) => |call| always(call, "its results are random"),
        // Their graphs may use more than their inputs.
        "Loop" | "Scan" | "SequenceMap" => |call| always(call, "loops are not followed"),
        "NonZero" => places,
        "NonMaxSuppression" | "Unique" | "Compress" | "StringNormalizer" | "StringSplit" => {
            |call| with_rows(call, BY_VALUES)
        }
        "DynamicQuantizeLinear" => |call| with_rows(call, OF_BATCH),
        "RoiAlign" | "MaxRoiPool" => {
            |call| with_rows(call, "its regions name images by their place")
        }
        "MaxUnpool" => |call| with_rows(call, "its places count from the first row"),
        "SequenceConstruct" | "SequenceAt" | "SequenceEmpty" | "SequenceErase"
        | "SequenceInsert" | "SequenceLength" | "SplitToSequence" | "ConcatFromSequence"
        | "Optional" | "OptionalGetElement" | "OptionalHasElement" => {
            |call| with_rows(call, "sequences are not followed")
        }
        _ => return None,
    })
}

/// Places in a constant: older exporters write the numbers up to a size so.
fn places(call: &Call) -> Outputs {
    let input = call.input(0)?;
    if !input.is_free() {
        return Err(BY_VALUES.into());
    }
    // A scalar counts as a list of one.
    let rank = Dim::known(input.rank()?.max(1) as u64);
    Ok(vec![Ok(Fact::free(Some(vec![rank, call.fresh()])))])
}

/// Operators of ONNX Runtime.
pub(super) fn rule_of_microsoft(operator: &str) -> Option<fn(&Call) -> Outputs> {
    Some(match operator {
        "DynamicQuantizeMatMul" | "DynamicQuantizeLSTM" => |call| with_rows(call, OF_BATCH),
        _ => return None,
    })
}

/// Even if its inputs are the same in every batch.
fn always(call: &Call, why: &'static str) -> Outputs {
    call.attributes.ignore_all();
    Ok(vec![Err(why.into()); call.outputs.len()])
}

/// Only if an input depends on the rows; see `flow` for the others.
fn with_rows(_: &Call, why: &'static str) -> Outputs {
    Err(why.into())
}
