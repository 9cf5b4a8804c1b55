//! Normalisations, and the softmax.

use super::super::call::{Call, Outputs, axes_of, axis_of};
use super::super::dependence::Rows;
use super::super::dim::Dim;
use super::super::fact::{Fact, Why};
use super::super::layout::{broadcast, not_at, only_at};
use super::convolution::NOT_BATCH;

pub(super) fn rule(operator: &str) -> Option<fn(&Call) -> Outputs> {
    Some(match operator {
        "Softmax" | "LogSoftmax" | "Hardmax" => softmax,
        "BatchNormalization" => batch,
        "LayerNormalization" | "RMSNormalization" => layer,
        "InstanceNormalization" | "GroupNormalization" | "LRN" => image,
        "LpNormalization" => lp,
        "MeanVarianceNormalization" => mean_variance,
        _ => return None,
    })
}

const OVER_ROWS: &str = "it normalises over the rows";

/// The input itself, as it is not normalised over the rows.
fn same(call: &Call, axes: &[usize]) -> Outputs {
    let input = call.input(0)?;
    not_at(input, axes, OVER_ROWS)?;
    Ok(vec![Ok(Fact::new(input.rows.clone(), input.shape.clone()))])
}

fn softmax(call: &Call) -> Outputs {
    let rank = call.input(0)?.rank()?;
    if call.opset >= 13 {
        return same(call, &[axis_of(call.int("axis", -1)?, rank)?]);
    }
    // All dimensions from the axis on are one.
    let axis = axis_of(call.int("axis", 1)?, rank)?;
    same(call, &(axis..rank).collect::<Vec<_>>())
}

fn batch(call: &Call) -> Outputs {
    call.ignore(&["epsilon", "momentum", "spatial"]);
    let trains = match call.opset {
        ..14 => (1..5).any(|at| call.has_output(at)),
        _ => call.int("training_mode", 0)? != 0,
    };
    let input = call.input(0)?;
    if trains && !input.is_free() {
        return Err("it trains: it normalises over the rows".into());
    }
    call.free_from(1)?;
    only_at(input, 0, NOT_BATCH)?;
    same(call, &[])
}

/// The result, and the mean and the deviation of each vector.
pub(super) fn layer(call: &Call) -> Outputs {
    call.ignore(&["epsilon", "stash_type"]);
    let input = call.input(0)?;
    let rank = input.rank()?;
    let axis = axis_of(call.int("axis", -1)?, rank)?;
    let axes: Vec<usize> = (axis..rank).collect();
    let statistics = statistics(input, &axes)?;
    let result = scaled(call, 1)?;
    Ok(vec![Ok(result), Ok(statistics.clone()), Ok(statistics)])
}

/// The facts of what is one number for each vector over `axes`.
pub(super) fn statistics(input: &Fact, axes: &[usize]) -> Result<Fact, Why> {
    not_at(input, axes, OVER_ROWS)?;
    let dims = input.dims()?.iter().enumerate();
    let shape = dims.map(|(at, dim)| if axes.contains(&at) { Dim::known(1) } else { dim.clone() });
    Ok(input.reshaped(shape.collect()))
}

/// The first input times scales, plus biases, which are inputs `from` and after it.
fn scaled(call: &Call, from: usize) -> Result<Fact, Why> {
    let input = call.input(0)?;
    let parameters = call.inputs.iter().skip(from).flatten();
    let all: Vec<&Fact> = [input].into_iter().chain(parameters.map(|fact| &**fact)).collect();
    call.free_from(from)?;
    let (rows, shape) = broadcast(&all, call)?;
    if shape.len() != input.rank()? || rows != input.rows {
        return Err("its scales have more dimensions than its input".into());
    }
    Ok(input.reshaped(input.dims()?.to_vec()))
}

/// Each image is normalised alone.
fn image(call: &Call) -> Outputs {
    call.ignore(&["epsilon", "num_groups", "stash_type"]);
    call.ignore(&["alpha", "beta", "bias", "size"]);
    call.free_from(1)?;
    only_at(call.input(0)?, 0, NOT_BATCH)?;
    same(call, &[])
}

fn lp(call: &Call) -> Outputs {
    call.ignore(&["p"]);
    let axis = axis_of(call.int("axis", -1)?, call.input(0)?.rank()?)?;
    same(call, &[axis])
}

fn mean_variance(call: &Call) -> Outputs {
    let axes = call.ints("axes")?.unwrap_or(&[0, 2, 3]);
    match &call.input(0)?.rows {
        Rows::Along(_) => same(call, &axes_of(axes, call.input(0)?.rank()?)?),
        _ => same(call, &[]),
    }
}
