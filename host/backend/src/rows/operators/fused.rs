//! Operators that ONNX Runtime's tools make of others.

use super::super::call::{Call, Outputs};
use super::super::fact::Fact;
use super::super::layout::broadcast;

pub(super) fn rule_of_microsoft(operator: &str) -> Option<fn(&Call) -> Outputs> {
    Some(match operator {
        "Gelu" | "FastGelu" | "BiasGelu" | "QuickGelu" => elementwise,
        "SimplifiedLayerNormalization" => simplified,
        _ => return None,
    })
}

/// ONNX Runtime has this one in the standard domain.
pub(super) fn rule(operator: &str) -> Option<fn(&Call) -> Outputs> {
    (operator == "SimplifiedLayerNormalization").then_some(simplified)
}

/// A function of the sum of the input and a bias.
fn elementwise(call: &Call) -> Outputs {
    call.ignore(&["alpha"]);
    let (rows, shape) = broadcast(&call.present(), call)?;
    Ok(vec![Ok(Fact::new(rows, Some(shape)))])
}

fn simplified(call: &Call) -> Outputs {
    super::normalisation::layer(call)
}
