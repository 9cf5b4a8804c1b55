//! Operators that make each element of the result from the elements at its place.

use super::super::arithmetic::fold;
use super::super::call::{Call, Outputs};
use super::super::dim::Dim;
use super::super::fact::{Element, Fact, Rows};
use super::super::layout::broadcast;

pub(super) fn rule(operator: &str) -> Option<fn(&Call) -> Outputs> {
    Some(match operator {
        "Abs" | "Acos" | "Acosh" | "Add" | "And" | "Asin" | "Asinh" | "Atan" | "Atanh"
        | "BitCast" | "BitShift" | "BitwiseAnd" | "BitwiseNot" | "BitwiseOr" | "BitwiseXor"
        | "Ceil" | "Celu" | "Cos" | "Cosh" | "Div" | "Elu" | "Equal" | "Erf" | "Exp" | "Floor"
        | "Gelu" | "Greater" | "GreaterOrEqual" | "HardSigmoid" | "HardSwish" | "Identity"
        | "IsInf" | "IsNaN" | "LeakyRelu" | "Less" | "LessOrEqual" | "Log" | "Max" | "Mean"
        | "Min" | "Mish" | "Mod" | "Mul" | "Neg" | "Not" | "Or" | "PRelu" | "Pow"
        | "Reciprocal" | "Relu" | "Round" | "Selu" | "Shrink" | "Sigmoid" | "Sign" | "Sin"
        | "Sinh" | "Softplus" | "Softsign" | "Sqrt" | "Sub" | "Sum" | "SwiGLU" | "Swish"
        | "Tan" | "Tanh" | "ThresholdedRelu" | "Where" | "Xor" => elementwise,
        "Cast" | "CastLike" => cast,
        "Clip" => clip,
        "Dropout" => dropout,
        _ => return None,
    })
}

fn elementwise(call: &Call) -> Outputs {
    call.ignore(&["alpha", "beta", "gamma", "bias", "lambd", "approximate", "direction", "fmod"]);
    call.ignore(&["detect_negative", "detect_positive", "to"]);
    Ok(vec![Ok(of(call, call.operator, &call.present())?)])
}

/// The result of elementwise work on `facts`.
fn of(call: &Call, operator: &str, facts: &[&Fact]) -> Result<Fact, super::super::fact::Why> {
    if facts.is_empty() {
        return Err("an input is missing".into());
    }
    let (rows, shape) = if facts.iter().any(|fact| fact.is_counted()) {
        if facts.iter().any(|fact| matches!(fact.rows, Rows::Along(_))) {
            return Err("it computes with the number of rows".into());
        }
        let shapes: Vec<Fact> = facts.iter().map(|fact| Fact::free(fact.shape.clone())).collect();
        let shape = broadcast(&shapes.iter().collect::<Vec<_>>(), call);
        (Rows::Counted, shape.ok().map(|(_, shape)| shape))
    } else {
        let (rows, shape) = broadcast(facts, call)?;
        (rows, Some(shape))
    };
    let elements: Option<Vec<&[Element]>> =
        facts.iter().map(|fact| fact.elements.as_deref()).collect();
    let count = shape.as_ref().and_then(|shape| Dim::product(shape)?.as_known());
    let elements = match (elements, count) {
        (Some(elements), Some(count)) => {
            fold(operator, &elements, count.try_into().unwrap_or(usize::MAX))
        }
        _ => None,
    };
    Ok(match (elements, shape) {
        (Some(elements), Some(shape)) => Fact::of(elements, shape),
        (_, shape) => Fact::new(rows, shape),
    })
}

fn cast(call: &Call) -> Outputs {
    call.ignore(&["saturate", "round_mode"]);
    // Only its type matters.
    let input = call.input(0)?;
    // Numbers stay the same in types with many bits.
    let to = if call.operator == "Cast" { call.int("to", 0)? } else { 0 };
    let operator = if matches!(to, 1 | 6 | 7 | 11) { "Identity" } else { call.operator };
    Ok(vec![Ok(of(call, operator, &[input])?)])
}

fn clip(call: &Call) -> Outputs {
    call.ignore(&["min", "max"]);
    call.free_from(1)?;
    // Its limits are scalars.
    Ok(vec![Ok(of(call, call.operator, &[call.input(0)?])?)])
}

/// It does nothing, unless it trains.
fn dropout(call: &Call) -> Outputs {
    call.ignore(&["ratio", "seed"]);
    let trains = call.optional(2).is_some_and(|flag| flag.ints() != Some(vec![0]));
    let input = call.input(0)?;
    if trains {
        return Ok(vec![Err("it trains: its results are random".into()); 2]);
    }
    let all_true = Fact::new(input.rows.clone(), input.shape.clone());
    Ok(vec![Ok(input.clone()), Ok(all_true)])
}
