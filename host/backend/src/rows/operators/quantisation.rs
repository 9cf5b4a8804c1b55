//! Work on quantized numbers. Scales and zero points are constants; they may differ by channel.

use super::super::call::{Call, Outputs, axis_of};
use super::super::dim::Dim;
use super::super::fact::{Fact, Why};
use super::super::layout::broadcast;
use super::convolution::convolve;
use super::products::product;

pub(super) fn rule(operator: &str) -> Option<fn(&Call) -> Outputs> {
    Some(match operator {
        "QuantizeLinear" | "DequantizeLinear" => linear,
        "ConvInteger" => |call| convolve(call, 1),
        "QLinearConv" => |call| convolve(call, 3),
        "MatMulInteger" => |call| multiply(call, [0, 1], [2, 3]),
        "QLinearMatMul" => |call| {
            scalars(call, &[6, 7])?;
            let outputs = multiply(call, [0, 3], [1, 4])?;
            multiply(call, [0, 3], [2, 5]).map(|_| outputs)
        },
        _ => return None,
    })
}

/// Quantized operators of ONNX Runtime.
pub(super) fn rule_of_microsoft(operator: &str) -> Option<fn(&Call) -> Outputs> {
    Some(match operator {
        "QLinearAdd" | "QLinearMul" => |call| {
            scalars(call, &[1, 2, 4, 5, 6, 7])?;
            let (rows, shape) = broadcast(&[call.input(0)?, call.input(3)?], call)?;
            Ok(vec![Ok(Fact::new(rows, Some(shape)))])
        },
        "QLinearSigmoid" | "QLinearLeakyRelu" => |call| {
            call.ignore(&["alpha"]);
            scalars(call, &[1, 2, 3, 4])?;
            same(call.input(0)?)
        },
        "QuantizeLinear" | "DequantizeLinear" => linear,
        "MatMulIntegerToFloat" => |call| {
            scalars(call, &[2, 4])?;
            let (rows, shape) = product(call.input(0)?, call.input(1)?, call)?;
            let result = Fact::new(rows, Some(shape));
            // Scales and zero points of columns, and the bias.
            let others = [3, 5, 6].into_iter().filter_map(|at| call.optional(at));
            let all: Vec<&Fact> = std::iter::once(&result).chain(others).collect();
            call.free_from(2)?;
            let (rows, shape) = broadcast(&all, call)?;
            Ok(vec![Ok(Fact::new(rows, Some(shape)))])
        },
        _ => return None,
    })
}

fn same(input: &Fact) -> Outputs {
    input.axis()?;
    Ok(vec![Ok(Fact::new(input.rows.clone(), input.shape.clone()))])
}

fn is_one_number(fact: &Fact) -> bool {
    let count = fact.shape.as_ref().and_then(Dim::product);
    fact.is_free() && count.is_some_and(|count| count.is_one())
}

/// These inputs must be constants of one number.
fn scalars(call: &Call, inputs: &[usize]) -> Result<(), Why> {
    let mut inputs = inputs.iter().filter_map(|at| call.optional(*at));
    if inputs.all(is_one_number) {
        return Ok(());
    }
    Err("its scales are not one number, or depend on the rows".into())
}

fn linear(call: &Call) -> Outputs {
    call.ignore(&["saturate", "output_dtype", "precision"]);
    call.free_from(1)?;
    let (input, scale) = (call.input(0)?, call.input(1)?);
    let axis = call.int("axis", 1)?;
    let is_blocked = call.int("block_size", 0)? != 0;
    if let (Some(rows), false) = (input.axis()?, is_one_number(scale))
        && (is_blocked || scale.rank()? != 1 || axis_of(axis, input.rank()?)? == rows.at)
    {
        return Err("its scales differ by row".into());
    }
    same(input)
}

/// A product whose factors have scales or zero points.
fn multiply(call: &Call, factors: [usize; 2], scales: [usize; 2]) -> Outputs {
    let [left, right] = factors;
    let (left, right) = (call.input(left)?, call.input(right)?);
    // Those of a constant may differ by row or column.
    for (factor, at) in [left, right].into_iter().zip(scales) {
        match call.optional(at) {
            Some(scale) if factor.is_free() && scale.is_free() => {}
            Some(_) => scalars(call, &[at])?,
            None => {}
        }
    }
    let (rows, shape) = product(left, right, call)?;
    Ok(vec![Ok(Fact::new(rows, Some(shape)))])
}
