//! Reductions, and other work along some axes.

use super::super::arithmetic::fold;
use super::super::call::{Call, Outputs, axes_of, axis_of};
use super::super::dependence::Rows;
use super::super::dim::Dim;
use super::super::fact::{Element, Fact, Why};
use super::super::layout::not_at;

pub(super) fn rule(operator: &str) -> Option<fn(&Call) -> Outputs> {
    Some(match operator {
        "ReduceL1" | "ReduceL2" | "ReduceLogSum" | "ReduceLogSumExp" | "ReduceMax"
        | "ReduceMean" | "ReduceMin" | "ReduceProd" | "ReduceSum" | "ReduceSumSquare" => reduce,
        "ArgMax" | "ArgMin" => arg,
        "TopK" => top,
        "CumSum" | "CumProd" => cumulative,
        _ => return None,
    })
}

fn reduce(call: &Call) -> Outputs {
    let input = call.input(0)?;
    let keeps = call.int("keepdims", 1)? != 0;
    let takes_all = call.int("noop_with_empty_axes", 0)? == 0;
    if !takes_all && call.opset < since(call) {
        return Err("its attribute `noop_with_empty_axes` is one of a newer version".into());
    }
    if let Some(product) = product_of_sizes(call, keeps) {
        return Ok(vec![Ok(product)]);
    }
    let axes = call.numbers("axes", 1, since(call))?.unwrap_or_default();
    let rank = input.rank()?;
    let axes = match axes.is_empty() {
        true if takes_all => (0..rank).collect(),
        true => return Ok(vec![Ok(Fact::new(input.rows.clone(), input.shape.clone()))]),
        false => axes_of(&axes, rank)?,
    };
    Ok(vec![Ok(reduced(input, &axes, keeps)?)])
}

/// The opset from which on the axes are an input.
fn since(call: &Call) -> i64 {
    if call.operator == "ReduceSum" { 13 } else { 18 }
}

/// The product of all of a list of sizes.
fn product_of_sizes(call: &Call, keeps: bool) -> Option<Fact> {
    let input = call.optional(0).filter(|_| call.operator == "ReduceProd")?;
    let elements = input.elements.as_ref().filter(|_| input.rank() == Ok(1))?;
    let axes = call.numbers("axes", 1, since(call)).ok()?.unwrap_or_default();
    let takes_all = call.int("noop_with_empty_axes", 0).ok()? == 0;
    if !matches!(axes[..], [] | [0] | [-1]) || axes.is_empty() && !takes_all {
        return None;
    }
    let exactness = call.symbols.exactness();
    let multiply = |all: Element, each: &Element| {
        fold("Mul", &[&[all], std::slice::from_ref(each)], 1, exactness)?.pop()
    };
    let product = elements.iter().try_fold(Element::Int(1), multiply)?;
    Some(Fact::of(vec![product], vec![Dim::known(1); keeps.into()]))
}

/// One result for all indices of `axes`.
fn reduced(input: &Fact, axes: &[usize], keeps: bool) -> Result<Fact, Why> {
    not_at(input, axes, "it reduces over the rows")?;
    let one = Dim::known(1);
    let dims = input.dims()?.iter().enumerate();
    let shape = dims.filter_map(|(at, dim)| match axes.contains(&at) {
        false => Some(dim.clone()),
        true => keeps.then(|| one.clone()),
    });
    let shape = shape.collect();
    Ok(match input.axis()? {
        Some(axis) if !keeps => {
            let before = axes.iter().filter(|each| **each < axis.at).count();
            Fact::along(axis.moved(axis.at - before), shape)
        }
        _ => input.reshaped(shape),
    })
}

fn arg(call: &Call) -> Outputs {
    call.ignore(&["select_last_index"]);
    let input = call.input(0)?;
    let axis = axis_of(call.int("axis", 0)?, input.rank()?)?;
    let below = input.dims()?.get(axis).cloned();
    let result = reduced(input, &[axis], call.int("keepdims", 1)? != 0)?;
    Ok(vec![Ok(Fact { below, ..result })])
}

fn top(call: &Call) -> Outputs {
    call.ignore(&["largest", "sorted"]);
    if call.int("k", 0)? != 0 && call.opset >= 10 {
        return Err("its attribute `k` is one of an older version".into());
    }
    call.free_from(1)?;
    let input = call.input(0)?;
    let axis = axis_of(call.int("axis", -1)?, input.rank()?)?;
    not_at(input, &[axis], "it sorts the rows")?;
    let mut shape = input.dims()?.to_vec();
    let count = call.optional(1).and_then(|count| count.elements.as_ref()?.first()?.as_dim());
    if let Some(dim) = shape.get_mut(axis) {
        *dim = count.unwrap_or_else(|| call.fresh());
    }
    let result = input.reshaped(shape);
    Ok(vec![Ok(result.clone()), Ok(result)])
}

fn cumulative(call: &Call) -> Outputs {
    call.ignore(&["exclusive", "reverse"]);
    call.free_from(1)?;
    let input = call.input(0)?;
    if let Rows::Along(axis) = &input.rows {
        let numbers = call.input(1)?.ints().ok_or("its axis is computed")?;
        let [number] = numbers[..] else { return Err("its axis is not one number".into()) };
        if axis_of(number, input.rank()?)? == axis.at {
            return Err("it sums up the rows".into());
        }
    }
    input.axis()?;
    Ok(vec![Ok(Fact::new(input.rows.clone(), input.shape.clone()))])
}
