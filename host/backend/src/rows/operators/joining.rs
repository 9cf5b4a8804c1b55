//! Operators that join tensors, or part them.

use super::super::call::{Call, Outputs, axis_of};
use super::super::dependence::{RowPositions, Rows};
use super::super::dim::Dim;
use super::super::fact::{ELEMENTS_MAX, Element, Fact, Why};
use super::super::layout::not_at;

pub(super) fn rule(operator: &str) -> Option<fn(&Call) -> Outputs> {
    Some(match operator {
        "Concat" => concat,
        "Split" => split,
        _ => return None,
    })
}

fn concat(call: &Call) -> Outputs {
    let inputs = call.present();
    let first = inputs.first().ok_or("it has no inputs")?;
    let number = call.int("axis", 1)?;
    if let Some(list) = joined(&inputs) {
        return Ok(vec![Ok(Fact::list(list))]);
    }
    if inputs.iter().all(|input| input.is_free() || input.is_counted())
        && inputs.iter().any(|input| input.is_counted())
    {
        return Ok(vec![Ok(Fact::new(Rows::Counted, None))]);
    }
    let at = axis_of(number, first.rank()?)?;
    if let Some(indices) = indices(&inputs, at) {
        return Ok(vec![Ok(indices)]);
    }
    let with_rows = inputs.iter().find(|input| matches!(input.rows, Rows::Along(_)));
    let mut shape = with_rows.unwrap_or(first).dims()?.to_vec();
    let mut total = Some(Dim::known(0));
    for input in &inputs {
        not_at(input, &[at], "it joins the rows with others")?;
        let dims = input.dims()?;
        if dims.len() != shape.len() {
            return Err("its inputs have different numbers of dimensions".into());
        }
        if let Some(with_rows) = with_rows {
            let axis = with_rows.axis()?.ok_or("the axis of the rows is not known")?;
            if input.axis()? != Some(axis) || dims.get(axis.at) != shape.get(axis.at) {
                return Err("its inputs have different rows".into());
            }
        }
        for (place, (dim, other)) in shape.iter_mut().zip(dims).enumerate() {
            if place != at && dim.as_known().is_none() && other.as_known().is_some() {
                *dim = other.clone();
            }
        }
        let size = dims.get(at).and_then(Dim::as_known);
        let sum = total.and_then(|total| total.as_known()?.checked_add(size?));
        total = sum.map(Dim::known);
    }
    if let Some(dim) = shape.get_mut(at).filter(|_| inputs.len() > 1) {
        *dim = total.unwrap_or_else(|| call.fresh());
    }
    Ok(vec![Ok(Fact::new(with_rows.unwrap_or(first).rows.clone(), Some(shape)))])
}

/// The elements of lists that are joined to one, if they are few.
fn joined(inputs: &[&Fact]) -> Option<Vec<Element>> {
    let mut all = Vec::new();
    for input in inputs {
        let elements = input.list_elements().filter(|_| input.rank() == Ok(1))?;
        all.extend(elements);
        if all.len() > ELEMENTS_MAX {
            return None;
        }
    }
    Some(all)
}

/// Indices whose first number is that of the row: it is joined with others in the last dimension.
fn indices(inputs: &[&Fact], at: usize) -> Option<Fact> {
    let (first, others) = inputs.split_first()?;
    let Rows::Placed(axis, positions) = &first.rows else { return None };
    let (dims, last) = (first.dims().ok()?, first.rank().ok()?.checked_sub(1)?);
    let is_number = *positions == RowPositions::of_rows() && at == last && dims.get(at)?.is_one();
    let mut shape = dims.to_vec();
    let mut count = 1_u64;
    for other in others {
        let dims = other.dims().ok()?;
        let is_same = other.axis().ok()? == Some(axis) && dims.get(axis.at) == shape.get(axis.at);
        if !is_same || dims.len() != shape.len() {
            return None;
        }
        count = count.checked_add(dims.get(at)?.as_known()?)?;
    }
    *shape.get_mut(at)? = Dim::known(count);
    is_number.then(|| Fact::new(Rows::Indices(axis.clone()), Some(shape)))
}

fn split(call: &Call) -> Outputs {
    let input = call.input(0)?;
    let dims = input.dims()?;
    let at = axis_of(call.int("axis", 0)?, dims.len())?;
    let outputs = call.outputs.len() as i64;
    let count = call.int("num_outputs", outputs)?;
    if count != outputs {
        return Err("it has another number of outputs than it says".into());
    }
    not_at_any(input, at)?;
    let sizes: Option<Vec<Element>> = match call.older("split", 13)? {
        Some(sizes) => Some(sizes.iter().copied().map(Element::Int).collect()),
        None => match call.optional(1) {
            Some(sizes) => Some(sizes.list_elements().ok_or("its sizes are computed from values")?),
            None => None,
        },
    };
    if sizes.iter().flatten().any(Element::is_counted) {
        return Err("its sizes depend on the number of rows".into());
    }
    let equal = dims.get(at).and_then(|dim| dim.over(&Dim::known(u64::try_from(count).ok()?)));
    let mut outputs = Vec::new();
    let mut elements = input.elements.as_deref();
    for output in 0..call.outputs.len() {
        let size = match &sizes {
            Some(sizes) => sizes.get(output).and_then(Element::as_dim),
            None => equal.clone(),
        };
        let mut shape = dims.to_vec();
        let dim = shape.get_mut(at).ok_or("its axis is out of range")?;
        *dim = size.unwrap_or_else(|| call.fresh());
        let length = dim.as_known().and_then(|length| usize::try_from(length).ok());
        let parts = match (elements, length) {
            (Some(elements), Some(length)) => elements.split_at_checked(length),
            _ => None,
        };
        elements = parts.map(|(_, rest)| rest);
        outputs.push(Ok(match parts {
            Some((part, _)) if dims.len() == 1 => Fact::of(part.to_vec(), shape),
            _ => input.reshaped(shape),
        }));
    }
    Ok(outputs)
}

fn not_at_any(input: &Fact, at: usize) -> Result<(), Why> {
    if input.is_counted() {
        return Ok(());
    }
    not_at(input, &[at], "it parts the rows")
}
