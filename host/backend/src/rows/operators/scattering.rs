//! Operators that take or set elements at places that other inputs name.

use super::super::call::{Call, Outputs, axis_of};
use super::super::dependence::{Axis, Rows};
use super::super::dim::Dim;
use super::super::fact::{Element, Fact, Why};

pub(super) fn rule(operator: &str) -> Option<fn(&Call) -> Outputs> {
    Some(match operator {
        "GatherND" => gather_nd,
        "ScatterElements" | "Scatter" => scatter_elements,
        "ScatterND" => scatter_nd,
        "OneHot" => one_hot,
        "ReverseSequence" => reverse_sequence,
        "TensorScatter" => tensor_scatter,
        _ => return None,
    })
}

const BY_PLACE: &str = "it takes or sets elements by the place of the rows";

/// Whether the rows of both are the same, in the same dimension.
pub(super) fn same_rows(one: &Fact, other: &Fact) -> Result<bool, Why> {
    let (Some(axis), Some(other_axis)) = (one.axis()?, other.axis()?) else { return Ok(false) };
    Ok(axis == other_axis && one.dims()?.get(axis.at) == other.dims()?.get(axis.at))
}

fn gather_nd(call: &Call) -> Outputs {
    let (data, indices) = (call.input(0)?, call.input(1)?);
    let (dims, inner) = (data.dims()?, indices.dims()?);
    let batch = usize::try_from(call.int("batch_dims", 0)?).map_err(|_| "it has no batch")?;
    let (last, places) = inner.split_last().ok_or("its indices have no dimensions")?;
    let taken = last.as_known().and_then(|taken| usize::try_from(taken).ok());
    let taken = taken.ok_or("its indices are not known")?;
    let rest = batch.checked_add(taken).and_then(|first| Some((first, dims.get(first..)?)));
    let (first, rest) = rest.ok_or("its indices are longer than its data")?;
    if let Rows::Indices(axis) = &indices.rows
        && batch == 0
        && data.axis()? == Some(&Axis::first(0))
        && dims.first() == Some(&Dim::rows())
    {
        return Ok(vec![Ok(Fact::along(axis.clone(), [places, rest].concat()))]);
    }
    let at = match (data.axis()?, indices.axis()?) {
        (None, None) => None,
        (None, Some(axis)) if (batch..places.len()).contains(&axis.at) => Some(axis.clone()),
        (Some(axis), None) if axis.at >= first => Some(axis.moved(places.len() + axis.at - first)),
        (Some(axis), Some(_)) if axis.at < batch && same_rows(data, indices)? => Some(axis.clone()),
        _ => return Err(BY_PLACE.into()),
    };
    let shape = [places, rest].concat();
    Ok(vec![Ok(Fact::new(at.map_or(Rows::Free, Rows::Along), Some(shape)))])
}

/// All inputs must have the rows, and not where elements are set.
fn scatter_elements(call: &Call) -> Outputs {
    call.ignore(&["reduction"]);
    let (data, indices, updates) = (call.input(0)?, call.input(1)?, call.input(2)?);
    if call.free_from(0).is_ok() {
        return Ok(vec![Ok(Fact::free(data.shape.clone()))]);
    }
    let at = axis_of(call.int("axis", 0)?, data.rank()?)?;
    let is_same = same_rows(data, indices)? && same_rows(data, updates)?;
    match data.axis()? {
        Some(axis) if is_same && axis.at != at => {}
        _ => return Err(BY_PLACE.into()),
    }
    Ok(vec![Ok(data.reshaped(data.dims()?.to_vec()))])
}

fn scatter_nd(call: &Call) -> Outputs {
    call.ignore(&["reduction"]);
    let (data, indices, updates) = (call.input(0)?, call.input(1)?, call.input(2)?);
    if call.free_from(0).is_ok() {
        return Ok(vec![Ok(Fact::free(data.shape.clone()))]);
    }
    let (last, places) = indices.dims()?.split_last().ok_or("its indices have no dimensions")?;
    let taken = last.as_known().and_then(|taken| usize::try_from(taken).ok());
    let taken = taken.ok_or("its indices are not known")?;
    if let Rows::Indices(axis) = &indices.rows
        && data.axis()? == Some(&Axis::first(0))
        && data.dims()?.first() == Some(&Dim::rows())
        && updates.axis()? == Some(axis)
        && updates.dims()?.get(axis.at) == places.get(axis.at)
    {
        return Ok(vec![Ok(data.reshaped(data.dims()?.to_vec()))]);
    }
    let (Some(axis), Some(other), true) = (data.axis()?, updates.axis()?, indices.is_free()) else {
        return Err(BY_PLACE.into());
    };
    let is_same = axis.outer == other.outer
        && axis.at >= taken
        && other.at == places.len() + axis.at - taken
        && data.dims()?.get(axis.at) == updates.dims()?.get(other.at);
    if !is_same {
        return Err(BY_PLACE.into());
    }
    Ok(vec![Ok(data.reshaped(data.dims()?.to_vec()))])
}

fn one_hot(call: &Call) -> Outputs {
    let input = call.input(0)?;
    call.free_from(1)?;
    let mut shape = input.dims()?.to_vec();
    let at = axis_of(call.int("axis", -1)?, shape.len() + 1)?;
    let depth = call.input(1)?.elements.as_deref().and_then(|elements| elements.first());
    shape.insert(at, depth.and_then(Element::as_dim).unwrap_or_else(|| call.fresh()));
    Ok(vec![Ok(match input.axis()? {
        Some(axis) => Fact::along(axis.moved(axis.at + usize::from(axis.at >= at)), shape),
        None => Fact::free(Some(shape)),
    })])
}

fn reverse_sequence(call: &Call) -> Outputs {
    let (input, lengths) = (call.input(0)?, call.input(1)?);
    let batch = axis_of(call.int("batch_axis", 1)?, input.rank()?)?;
    axis_of(call.int("time_axis", 0)?, input.rank()?)?;
    let (Some(axis), Some(other)) = (input.axis()?, lengths.axis()?) else {
        return Err("its lengths are not those of the rows".into());
    };
    let size: (Option<&Dim>, _) = (input.dims()?.get(batch), lengths.dims()?.first());
    if axis.at != batch || *other != axis.moved(0) || size.0 != size.1 {
        return Err("the rows are not its batch".into());
    }
    Ok(vec![Ok(input.reshaped(input.dims()?.to_vec()))])
}

fn tensor_scatter(call: &Call) -> Outputs {
    call.ignore(&["mode"]);
    let (cache, updates) = (call.input(0)?, call.input(1)?);
    let at = axis_of(call.int("axis", -2)?, cache.rank()?)?;
    let is_same = same_rows(cache, updates)?
        && cache.axis()? == Some(&Axis::first(0))
        && at != 0
        && match call.optional(2) {
            Some(places) => same_rows(cache, places)?,
            None => true,
        };
    if !is_same {
        return Err("the rows are not its batch".into());
    }
    Ok(vec![Ok(cache.reshaped(cache.dims()?.to_vec()))])
}
