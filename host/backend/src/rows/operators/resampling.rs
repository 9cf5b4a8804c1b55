//! Resizing, and other work on the places of pixels.

use super::super::call::{Call, Outputs, axes_of};
use super::super::dependence::Rows;
use super::super::dim::Dim;
use super::super::fact::{Element, Fact, Why};
use super::super::layout::only_at;
use super::convolution::NOT_BATCH;

pub(super) fn rule(operator: &str) -> Option<fn(&Call) -> Outputs> {
    Some(match operator {
        "Resize" | "Upsample" => resize,
        "DepthToSpace" | "SpaceToDepth" => blocks,
        "GridSample" => grid_sample,
        "AffineGrid" => affine_grid,
        _ => return None,
    })
}

fn resize(call: &Call) -> Outputs {
    call.ignore(&["mode", "coordinate_transformation_mode", "nearest_mode", "cubic_coeff_a"]);
    call.ignore(&["exclude_outside", "extrapolation_value", "antialias"]);
    let input = call.input(0)?;
    let dims = input.dims()?;
    let axes = match call.ints("axes")? {
        Some(_) if call.opset < 18 => {
            return Err("its attribute `axes` is one of a newer version".into());
        }
        Some(axes) => axes.to_vec(),
        None => (0..dims.len() as i64).collect(),
    };
    if call.text("keep_aspect_ratio_policy", "stretch")? != "stretch" {
        return Err("what it keeps of a side may depend on the number of rows".into());
    }
    // Crops of places are relative to the whole, also of the rows.
    if call.text("coordinate_transformation_mode", "half_pixel")? == "tf_crop_and_resize" {
        return Err("it crops by places".into());
    }
    if axes_of(&axes, dims.len())?.len() != axes.len() {
        return Err("its axes are not clear".into());
    }
    let (scales, sizes) = match (call.operator, call.opset) {
        ("Upsample", ..) | ("Resize", ..11) => (call.optional(1), None),
        _ => (call.optional(2).filter(|scales| !is_empty(scales)), call.optional(3)),
    };
    let wanted = scales.or(sizes).ok_or("it has no sizes")?;
    let wanted = wanted.list_elements().ok_or("its sizes are computed from values")?;
    if wanted.len() != axes.len() {
        return Err("its sizes have another number of dimensions than its input".into());
    }
    let is_nearest = call.text("mode", "nearest")? == "nearest";
    // Else a pixel is computed from pixels of other rows, although with a weight of 0.
    let is_image = matches!(dims.len(), 4 | 5) && only_at(input, 0, NOT_BATCH).is_ok();
    if !(is_nearest || is_image) {
        return Err("it interpolates between the rows".into());
    }
    let mut shape = dims.to_vec();
    for (axis, element) in axes.iter().zip(&wanted) {
        let axis = super::super::call::axis_of(*axis, dims.len())?;
        let dim = shape.get_mut(axis).ok_or("its axis is out of range")?;
        let is_kept = match element {
            Element::Real(scale) if scales.is_some() => *scale == 1.0,
            Element::Int(1) if scales.is_some() => true,
            size => scales.is_none() && size.as_dim().as_ref() == Some(dim),
        };
        if is_kept {
            continue;
        }
        if dim.has_rows() || element.is_counted() {
            return Err("it resizes the rows".into());
        }
        *dim = match (element, scales) {
            (size, None) => size.as_dim().unwrap_or_else(|| call.fresh()),
            (Element::Real(scale), _) => scaled(dim, *scale).unwrap_or_else(|| call.fresh()),
            _ => call.fresh(),
        };
    }
    input.axis()?;
    if !is_nearest && shape.get(1) != dims.get(1) {
        return Err("it interpolates between channels, and so maybe between the rows".into());
    }
    Ok(vec![Ok(input.reshaped(shape))])
}

fn is_empty(fact: &Fact) -> bool {
    fact.shape.as_ref().is_some_and(|shape| shape.iter().any(|dim| dim.as_known() == Some(0)))
}

fn scaled(dim: &Dim, scale: f64) -> Option<Dim> {
    let is_whole = scale.fract() == 0.0 && (1.0..=65536.0).contains(&scale);
    dim.times(&Dim::known(is_whole.then_some(scale as u64)?))
}

/// Channels that become pixels, or pixels that become channels, of each image.
fn blocks(call: &Call) -> Outputs {
    call.ignore(&["mode"]);
    let image = call.input(0)?;
    only_at(image, 0, NOT_BATCH)?;
    let [batch, channels, height, width] = image.dims()? else {
        return Err("its input has not four dimensions".into());
    };
    let size = call.int("blocksize", 0)?;
    let size = u64::try_from(size).ok().filter(|size| (1..65536).contains(size));
    let size = size.ok_or("its blocksize is out of range")?;
    let (side, square) = (Dim::known(size), Dim::known(size * size));
    let sizes = match call.operator {
        "DepthToSpace" => [channels.over(&square), height.times(&side), width.times(&side)],
        _ => [channels.times(&square), height.over(&side), width.over(&side)],
    };
    let sizes = sizes.into_iter().map(|size| size.unwrap_or_else(|| call.fresh()));
    let shape = std::iter::once(batch.clone()).chain(sizes).collect();
    Ok(vec![Ok(image.reshaped(shape))])
}

/// The rows of images and grids are the same, and both must have them.
fn grid_sample(call: &Call) -> Outputs {
    call.ignore(&["align_corners", "mode", "padding_mode"]);
    let (image, grid) = (call.input(0)?, call.input(1)?);
    let ([batch, channels, ..], [other, places @ .., _]) = (image.dims()?, grid.dims()?) else {
        return Err("its inputs have too few dimensions".into());
    };
    same_batch(image, grid, batch == other)?;
    let shape = [&[batch.clone(), channels.clone()], places].concat();
    Ok(vec![Ok(image.reshaped(shape))])
}

fn same_batch(one: &Fact, other: &Fact, is_same: bool) -> Result<(), Why> {
    only_at(one, 0, NOT_BATCH)?;
    only_at(other, 0, NOT_BATCH)?;
    if one.rows != other.rows || !is_same {
        return Err("its inputs have different rows".into());
    }
    Ok(())
}

fn affine_grid(call: &Call) -> Outputs {
    call.ignore(&["align_corners"]);
    let angles = call.input(0)?;
    only_at(angles, 0, NOT_BATCH)?;
    let sizes = call.input(1)?.list_elements().ok_or("its size is computed from values")?;
    let batch = angles.dims()?.first();
    let (Some((first, [_, spatial @ ..])), Some(batch)) = (sizes.split_first(), batch) else {
        return Err("its size has too few dimensions".into());
    };
    if first.as_dim().as_ref() != Some(batch) || spatial.iter().any(Element::is_counted) {
        return Err("its size has other rows than its input".into());
    }
    let mut shape = vec![batch.clone()];
    shape.extend(spatial.iter().map(|size| size.as_dim().unwrap_or_else(|| call.fresh())));
    shape.push(Dim::known(spatial.len() as u64));
    match &angles.rows {
        Rows::Along(_) => Ok(vec![Ok(angles.reshaped(shape))]),
        _ => Err("its input does not depend on the rows".into()),
    }
}
