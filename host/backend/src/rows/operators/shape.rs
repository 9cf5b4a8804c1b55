//! Operators that move or repeat dimensions.

use super::super::call::{Call, Outputs};
use super::super::dependence::{Axis, Rows};
use super::super::dim::Dim;
use super::super::fact::{ELEMENTS_MAX, Element, Fact, Why};
use super::super::layout::broadcast;

pub(super) fn rule(operator: &str) -> Option<fn(&Call) -> Outputs> {
    Some(match operator {
        "Transpose" => transpose,
        "Expand" => expand,
        "Tile" => tile,
        "Pad" => pad,
        "Trilu" => trilu,
        _ => return None,
    })
}

fn transpose(call: &Call) -> Outputs {
    let input = call.input(0)?;
    let dims = input.dims()?;
    let order: Vec<usize> = match call.ints("perm")? {
        None => (0..dims.len()).rev().collect(),
        Some(order) => {
            let order = order.iter().map(|each| usize::try_from(*each));
            order.collect::<Result<_, _>>().map_err(|_| "its order is negative")?
        }
    };
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if !sorted.into_iter().eq(0..dims.len()) {
        return Err("its order is not one of its dimensions".into());
    }
    let shape = order.iter().filter_map(|from| dims.get(*from)).cloned().collect();
    let rows = match (&input.rows, input.rows.axis()) {
        (_, Some(axis)) => {
            let at = order.iter().position(|from| *from == axis.at);
            input.rows.on(axis.moved(at.ok_or("its order has no rows")?))
        }
        (Rows::Indices(_), None) => return Err("it moves the places of the rows".into()),
        (other, None) => other.clone(),
    };
    let (elements, below) = (turned(input, &order), input.below.clone());
    Ok(vec![Ok(Fact { elements, below, ..Fact::new(rows, Some(shape)) })])
}

/// The elements of a list, or of a small matrix whose dimensions change places.
fn turned(input: &Fact, order: &[usize]) -> Option<Vec<Element>> {
    let elements = input.elements.as_ref()?;
    match (input.shape.as_deref()?, order) {
        (_, [] | [0] | [0, 1]) => Some(elements.clone()),
        ([_, columns], [1, 0]) => {
            let columns = usize::try_from(columns.as_known()?).ok().filter(|count| *count > 0)?;
            let column = |at| elements.iter().skip(at).step_by(columns).cloned();
            Some((0..columns).flat_map(column).collect())
        }
        _ => None,
    }
}

fn expand(call: &Call) -> Outputs {
    let input = call.input(0)?;
    let wanted = call.input(1)?.list_elements().ok_or("its shape is computed from values")?;
    let mut shape = Vec::new();
    for element in &wanted {
        shape.push(match element {
            Element::Unknown { counted: false } => call.fresh(),
            other => other.as_dim().ok_or("its shape is not known")?,
        });
    }
    if let Some(repeated) = repeated(input, &shape) {
        return Ok(vec![Ok(repeated)]);
    }
    let rank = shape.len().max(input.rank()?);
    let mut with_rows = shape.iter().enumerate().filter(|(_, dim)| dim.has_rows());
    let axis = match &input.rows {
        Rows::Free => None,
        rows => Some(rows.axis().ok_or("it computes with the number of rows")?),
    };
    let target = match (with_rows.next(), with_rows.next()) {
        (None, _) => Fact::free(Some(shape)),
        // Each row gets the same copy.
        (Some((at, _)), None) => {
            let at = at + rank - shape.len();
            let axis = axis.filter(|axis| axis.at + rank - input.rank().unwrap_or(0) == at);
            let axis = axis.map_or(Axis::first(at), |axis| axis.moved(at));
            let mut dims = vec![Dim::known(1); rank - shape.len()];
            dims.append(&mut shape);
            Fact::along(axis, dims)
        }
        _ => return Err("the rows are in two dimensions".into()),
    };
    let plain = axis.map_or(Rows::Free, |axis| Rows::Along(axis.clone()));
    let plain = Fact::new(plain, input.shape.clone());
    let (rows, shape) = broadcast(&[&plain, &target], call)?;
    let rows = rows.axis().map_or(Rows::Free, |axis| input.rows.on(axis.clone()));
    Ok(vec![Ok(Fact { below: input.below.clone(), ..Fact::new(rows, Some(shape)) })])
}

/// One element, if its repetitions are few.
fn repeated(input: &Fact, shape: &[Dim]) -> Option<Fact> {
    let [element] = &input.elements.as_ref()?[..] else { return None };
    let count = usize::try_from(Dim::product(shape)?.as_known()?).ok()?;
    let is_longer = input.rank().is_ok_and(|rank| rank > shape.len());
    let is_few = count <= ELEMENTS_MAX && !is_longer;
    is_few.then(|| Fact::of(vec![element.clone(); count], shape.to_vec()))
}

fn tile(call: &Call) -> Outputs {
    let input = call.input(0)?;
    let dims = input.dims()?;
    let repeats = call.input(1)?.list_elements().ok_or("its repeats are computed from values")?;
    if repeats.len() != dims.len() {
        return Err("its repeats have another length than expected".into());
    }
    let mut axis = input.axis()?.cloned();
    let mut shape = Vec::new();
    for (at, (dim, repeat)) in dims.iter().zip(&repeats).enumerate() {
        let repeat = match repeat {
            Element::Unknown { counted: false } if !dim.has_rows() => call.fresh(),
            other => other.as_dim().ok_or("its repeats are not known")?,
        };
        if repeat.has_rows() {
            if axis.is_some() {
                return Err("the rows are in two dimensions".into());
            }
            axis = Some(Axis::first(at));
        } else if let Some(axis) = axis.as_mut().filter(|axis| axis.at == at) {
            axis.outer = axis.outer.times(&repeat).ok_or("its repeats are too large")?;
        }
        let unclear = "its repeats are too large";
        let size = dim.times(&repeat);
        let has_rows = dim.has_rows() || repeat.has_rows();
        shape.push(size.or_else(|| (!has_rows).then(|| call.fresh())).ok_or(unclear)?);
    }
    Ok(vec![Ok(Fact::new(axis.map_or(Rows::Free, Rows::Along), Some(shape)))])
}

fn pad(call: &Call) -> Outputs {
    call.ignore(&["mode", "value"]);
    let input = call.input(0)?;
    let dims = input.dims()?;
    let value_is_free = call.optional(2).is_none_or(Fact::is_free);
    if !value_is_free {
        return Err("its padding depends on the rows".into());
    }
    // Not all runtimes read them.
    if call.optional(3).is_some() {
        return Err("it names its axes".into());
    }
    let axes: Vec<i64> = (0..dims.len() as i64).collect();
    let pads: Vec<Element> = match call.older("pads", 11)? {
        Some(pads) => pads.iter().copied().map(Element::Int).collect(),
        None => call.input(1)?.list_elements().ok_or("its pads are computed from values")?,
    };
    if pads.len() != 2 * axes.len() || pads.iter().any(Element::is_counted) {
        return Err("its pads are not known".into());
    }
    let mut shape = dims.to_vec();
    for (at, axis) in axes.iter().enumerate() {
        let axis = super::super::call::axis_of(*axis, dims.len())?;
        let (Some(dim), Some(start), Some(end)) =
            (shape.get_mut(axis), pads.get(at), pads.get(at + axes.len()))
        else {
            return Err("its pads are not known".into());
        };
        *dim = match (dim.as_known(), start, end) {
            (_, Element::Int(0), Element::Int(0)) => continue,
            _ if dim.has_rows() => return Err("it pads the rows".into()),
            (Some(size), Element::Int(start), Element::Int(end)) => {
                let size = i64::try_from(size).ok().and_then(|size| size.checked_add(*start));
                let size = size.and_then(|size| u64::try_from(size.checked_add(*end)?).ok());
                size.map_or_else(|| call.fresh(), Dim::known)
            }
            _ => call.fresh(),
        };
    }
    input.axis()?;
    Ok(vec![Ok(input.reshaped(shape))])
}

fn trilu(call: &Call) -> Outputs {
    call.ignore(&["upper"]);
    call.free_from(1)?;
    let input = call.input(0)?;
    let rank = input.rank()?;
    match input.axis()? {
        Some(axis) if axis.at + 2 >= rank => Err(Why::from("the rows are in its triangle")),
        _ => Ok(vec![Ok(input.reshaped(input.dims()?.to_vec()))]),
    }
}
