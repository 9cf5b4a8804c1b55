//! Operators that make each element of the result from the elements at its place.

use super::super::arithmetic::{Exactness, fold, narrowed, whole};
use super::super::call::{Call, Outputs};
use super::super::dependence::{RowPositions, Rows};
use super::super::dim::Dim;
use super::super::fact::{Element, Fact, Why};
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
fn of(call: &Call, operator: &str, facts: &[&Fact]) -> Result<Fact, Why> {
    if facts.is_empty() {
        return Err("an input is missing".into());
    }
    if let ("Identity", [fact]) = (operator, facts) {
        return Ok(Fact::clone(fact));
    }
    if let Some(fact) = placed(call, operator, facts) {
        return Ok(fact);
    }
    let is_count = |fact: &&&Fact| match &fact.rows {
        Rows::Counted => true,
        // Numbers of rows.
        Rows::Placed(_, positions) => positions.below.is_one(),
        _ => false,
    };
    let (rows, shape) = if facts.iter().any(|fact| is_count(&fact)) {
        if !facts.iter().all(|fact| fact.is_free() || is_count(&fact)) {
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
    let count = count.and_then(|count| usize::try_from(count).ok());
    let elements = elements
        .zip(count)
        .and_then(|(elements, count)| fold(operator, &elements, count, call.symbols.exactness()));
    Ok(match (elements, shape) {
        (Some(elements), Some(shape)) => Fact::of(elements, shape),
        (_, shape) => Fact::new(rows, shape),
    })
}

/// Whole numbers that are places of the rows, or may become such.
fn placed(call: &Call, operator: &str, facts: &[&Fact]) -> Option<Fact> {
    let is_placed = |fact: &Fact| matches!(fact.rows, Rows::Placed(..));
    let (fact, other) = match facts {
        [fact, other] if is_placed(fact) => (fact, other),
        [other, fact] if is_placed(fact) => (fact, other),
        _ => return None,
    };
    let Rows::Placed(axis, positions) = &fact.rows else { return None };
    match operator {
        "Mul" => {
            let [factor] = &other.elements.as_ref()?[..] else { return None };
            let factor = factor.as_dim().filter(|factor| !factor.has_rows())?;
            let is_scalar = other.rank().ok()? <= fact.rank().ok()?;
            let below = match positions.below.is_one() {
                true => positions.below.clone(),
                false => positions.below.times(&factor)?,
            };
            let positions = RowPositions { stride: positions.stride.times(&factor)?, below };
            if !call.symbols.exactness().holds(&positions.stride) {
                return None;
            }
            let rows = Rows::Placed(axis.clone(), positions);
            is_scalar.then(|| Fact::new(rows, fact.shape.clone()))
        }
        "Add" if positions.below.is_one() => {
            let below = other.below.clone().or_else(|| below(other))?;
            let plain = Fact::new(Rows::Along(axis.clone()), fact.shape.clone());
            let (rows, shape) = broadcast(&[&plain, other], call).ok()?;
            let positions = RowPositions { stride: positions.stride.clone(), below };
            Some(Fact::new(Rows::Placed(rows.axis()?.clone(), positions), Some(shape)))
        }
        _ => None,
    }
}

/// A limit of small constants.
fn below(fact: &Fact) -> Option<Dim> {
    let all = fact.ints()?;
    let all = all.iter().map(|value| u64::try_from(*value).ok()?.checked_add(1));
    Some(Dim::known(all.collect::<Option<Vec<_>>>()?.into_iter().max()?))
}

fn cast(call: &Call) -> Outputs {
    call.ignore(&["saturate", "round_mode"]);
    // Only its type matters.
    let input = call.input(0)?;
    let to = if call.operator == "Cast" { call.int("to", 0)? } else { 0 };
    const INT32: i64 = 6;
    const INT64: i64 = 7;
    // 32 bits, and floating point.
    const NARROW: [i64; 3] = [1, INT32, 11];
    let is_whole = matches!(to, INT32 | INT64);
    let mut fact = input.clone();
    match (&input.elements, &input.rows) {
        (Some(elements), _) if to == INT64 => fact.elements = Some(whole(elements)),
        (Some(elements), _) if NARROW.contains(&to) => {
            call.symbols.narrow();
            let elements = if is_whole { whole(elements) } else { elements.clone() };
            fact.elements = Some(narrowed(&elements));
        }
        // The places of the rows.
        (None, Rows::Placed(_, positions)) if is_whole => {
            call.symbols.narrow();
            let is_held = to == INT64 || Exactness::Narrow.holds(&positions.stride);
            return match is_held {
                true => Ok(vec![Ok(fact)]),
                false => Err("the numbers of the rows may be too large for 32 bits".into()),
            };
        }
        (None, Rows::Along(_) | Rows::Free) if is_whole => {
            let holds = |below: &Dim| to == INT64 || Exactness::Narrow.holds(below);
            fact.below = fact.below.filter(holds);
        }
        _ => fact = of(call, call.operator, &[input])?,
    }
    Ok(vec![Ok(fact)])
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
    input.axis()?;
    if trains {
        return Ok(vec![Err("it trains: its results are random".into()); 2]);
    }
    let all_true = Fact::new(input.rows.clone(), input.shape.clone());
    Ok(vec![Ok(input.clone()), Ok(all_true)])
}
