//! Transforms of signals, their windows, and some work on images and matrices.

use super::super::call::{Call, Outputs, axis_of};
use super::super::dim::Dim;
use super::super::fact::{Element, Fact};
use super::super::layout::{not_at, only_at};
use super::convolution::NOT_BATCH;

pub(super) fn rule(operator: &str) -> Option<fn(&Call) -> Outputs> {
    Some(match operator {
        "BlackmanWindow" | "HammingWindow" | "HannWindow" | "MelWeightMatrix" => window,
        "DFT" => fourier,
        "STFT" => short_fourier,
        "Col2Im" => columns,
        "Det" => determinant,
        "CenterCropPad" => crop,
        _ => return None,
    })
}

fn window(call: &Call) -> Outputs {
    call.ignore(&["output_datatype", "periodic"]);
    call.free_from(0)?;
    let size = call.input(0)?.elements.as_deref().and_then(|elements| elements.first());
    Ok(vec![Ok(match (call.operator, size.and_then(Element::as_dim)) {
        ("MelWeightMatrix", _) => Fact::free(Some(vec![call.fresh(), call.fresh()])),
        (_, size) => Fact::free(Some(vec![size.unwrap_or_else(|| call.fresh())])),
    })])
}

fn fourier(call: &Call) -> Outputs {
    let one_sided = call.int("onesided", 0)? != 0;
    call.ignore(&["inverse"]);
    call.free_from(1)?;
    let input = call.input(0)?;
    let dims = input.dims()?;
    let axis = match (call.opset, call.optional(2)) {
        (..20, _) => call.int("axis", 1)?,
        (_, None) => -2,
        (_, Some(axis)) => {
            let axis = axis.ints().and_then(|ints| ints.first().copied());
            axis.ok_or("its axis is computed")?
        }
    };
    let at = axis_of(axis, dims.len())?;
    let last = dims.len() - 1;
    not_at(input, &[at, last], "it transforms over the rows")?;
    let mut shape = dims.to_vec();
    if let Some(dim) = shape.get_mut(at).filter(|_| one_sided || call.optional(1).is_some()) {
        *dim = call.fresh();
    }
    if let Some(dim) = shape.get_mut(last) {
        *dim = call.fresh();
    }
    Ok(vec![Ok(input.reshaped(shape))])
}

fn short_fourier(call: &Call) -> Outputs {
    call.ignore(&["onesided"]);
    call.free_from(1)?;
    let input = call.input(0)?;
    only_at(input, 0, NOT_BATCH)?;
    let batch = input.dims()?.first().ok_or("its input has no dimensions")?;
    let shape = vec![batch.clone(), call.fresh(), call.fresh(), Dim::known(2)];
    Ok(vec![Ok(input.reshaped(shape))])
}

fn columns(call: &Call) -> Outputs {
    call.ignore(&["dilations", "pads", "strides"]);
    call.free_from(1)?;
    let input = call.input(0)?;
    only_at(input, 0, NOT_BATCH)?;
    let sizes = call.input(1)?.list_elements().ok_or("its size is computed from values")?;
    let batch = input.dims()?.first().ok_or("its input has no dimensions")?;
    let mut shape = vec![batch.clone(), call.fresh()];
    shape.extend(sizes.iter().map(|size| size.as_dim().unwrap_or_else(|| call.fresh())));
    Ok(vec![Ok(input.reshaped(shape))])
}

fn determinant(call: &Call) -> Outputs {
    let input = call.input(0)?;
    let dims = input.dims()?;
    let kept = dims.len().checked_sub(2).ok_or("its input is not a matrix")?;
    not_at(input, &[kept, kept + 1], "the rows are in its matrices")?;
    Ok(vec![Ok(input.reshaped(dims[..kept].to_vec()))])
}

fn crop(call: &Call) -> Outputs {
    let input = call.input(0)?;
    let mut shape = input.dims()?.to_vec();
    let axes = match call.ints("axes")? {
        Some(axes) => axes.to_vec(),
        None => (0..shape.len() as i64).collect(),
    };
    let sizes = call.input(1)?.list_elements().ok_or("its size is computed from values")?;
    if sizes.len() != axes.len() {
        return Err("its size has another number of dimensions than its input".into());
    }
    let rank = shape.len();
    for (axis, size) in axes.iter().zip(&sizes) {
        let dim = shape.get_mut(axis_of(*axis, rank)?).ok_or("its axis is out of range")?;
        let size = size.as_dim();
        if size.as_ref() != Some(dim) {
            if dim.has_rows() || size.as_ref().is_none_or(Dim::has_rows) {
                return Err("it crops the rows, or crops by their number".into());
            }
            *dim = size.unwrap_or_else(|| call.fresh());
        }
    }
    input.axis()?;
    Ok(vec![Ok(input.reshaped(shape))])
}
