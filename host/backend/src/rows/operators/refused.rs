//! Operators through which rows are never followed, each with the reason.

use super::super::call::{Call, Outputs};

const OF_BATCH: &str = "its scale is that of the whole batch; quantize the model statically";

pub(super) fn rule(operator: &str) -> Option<fn(&Call) -> Outputs> {
    Some(match operator {
        "RandomNormal" | "RandomNormalLike" | "RandomUniform" | "RandomUniformLike"
        | "Multinomial" | "Bernoulli" => |call| refuse(call, "its results are random"),
        "NonMaxSuppression" | "NonZero" | "Unique" | "Compress" => {
            |call| refuse(call, "the number of its results depends on values")
        }
        "Loop" | "Scan" | "SequenceMap" => |call| refuse(call, "loops are not followed"),
        "DynamicQuantizeLinear" => |call| refuse(call, OF_BATCH),
        "RoiAlign" | "MaxRoiPool" => |call| refuse(call, "its regions name images by their place"),
        "MaxUnpool" => |call| refuse(call, "its places count from the first row"),
        "StringNormalizer" | "StringSplit" => {
            |call| refuse(call, "the number of its results depends on values")
        }
        "SequenceConstruct" | "SequenceAt" | "SequenceEmpty" | "SequenceErase"
        | "SequenceInsert" | "SequenceLength" | "SplitToSequence" | "ConcatFromSequence"
        | "Optional" | "OptionalGetElement" | "OptionalHasElement" => {
            |call| refuse(call, "sequences are not followed")
        }
        _ => return None,
    })
}

/// Its attributes do not matter, and neither do its inputs.
fn refuse(call: &Call, why: &'static str) -> Outputs {
    call.attributes.ignore_all();
    Ok(vec![Err(why.into()); call.outputs.len()])
}

/// Operators of ONNX Runtime.
pub(super) fn rule_of_microsoft(operator: &str) -> Option<fn(&Call) -> Outputs> {
    Some(match operator {
        "DynamicQuantizeMatMul" | "DynamicQuantizeLSTM" => |call| refuse(call, OF_BATCH),
        _ => return None,
    })
}
