//! Operators that take some elements of a tensor.

use super::super::call::{Call, Outputs, axis_of};
use super::super::dependence::{Axis, Rows};
use super::super::dim::Dim;
use super::super::fact::{Element, Fact, Why};
use super::super::layout::not_at;

pub(super) fn rule(operator: &str) -> Option<fn(&Call) -> Outputs> {
    Some(match operator {
        "Gather" => gather,
        "GatherElements" => gather_elements,
        "Slice" => slice,
        _ => return None,
    })
}

const TAKES_ROWS: &str = "it takes some of the rows by their place";

fn gather(call: &Call) -> Outputs {
    let (data, indices) = (call.input(0)?, call.input(1)?);
    let dims = data.dims()?;
    let at = axis_of(call.int("axis", 0)?, dims.len())?;
    if let Some(picked) = pick(data, indices) {
        return Ok(vec![Ok(picked)]);
    }
    let inner = indices.dims()?;
    let shape = [&dims[..at], inner, &dims[at + 1..]].concat();
    if data.is_counted() && (indices.is_free() || indices.is_counted()) {
        return Ok(vec![Ok(Fact::new(Rows::Counted, Some(shape)))]);
    }
    if let (Rows::Along(axis), Rows::Placed(placed_axis, positions)) = (&data.rows, &indices.rows)
        && axis.at == at
        && positions.are_in(axis, &dims[at])
    {
        return Ok(vec![Ok(Fact::along(placed_axis.moved(placed_axis.at + at), shape))]);
    }
    not_at(data, &[at], TAKES_ROWS)?;
    let axis = match (data.axis()?, indices.axis()?) {
        (None, None) => None,
        (Some(axis), None) if axis.at < at => Some(axis.clone()),
        (Some(axis), None) => Some(axis.moved(axis.at + inner.len() - 1)),
        (None, Some(axis)) => Some(axis.moved(axis.at + at)),
        _ => return Err("the rows choose among the rows".into()),
    };
    Ok(vec![Ok(Fact::new(axis.map_or(Rows::Free, Rows::Along), Some(shape)))])
}

/// Known elements of a list at known indices.
fn pick(data: &Fact, indices: &Fact) -> Option<Fact> {
    let (elements, chosen) = (data.list_elements()?, indices.ints()?);
    if data.rank() != Ok(1) {
        return None;
    }
    let element = |place: &i64| elements.get(axis_of(*place, elements.len()).ok()?).cloned();
    let picked = chosen.iter().map(element).collect::<Option<Vec<_>>>()?;
    Some(Fact::of(picked, indices.shape.clone()?))
}

fn gather_elements(call: &Call) -> Outputs {
    let (data, indices) = (call.input(0)?, call.input(1)?);
    let (dims, inner) = (data.dims()?, indices.dims()?);
    let at = axis_of(call.int("axis", 0)?, dims.len())?;
    not_at(data, &[at], TAKES_ROWS)?;
    let size = |fact: &Fact, axis: &Axis| fact.dims().ok()?.get(axis.at).cloned();
    match (data.axis()?, indices.axis()?) {
        (None, None) => {}
        (None, Some(axis)) if axis.at == at => {}
        (Some(axis), Some(other)) if axis == other && size(data, axis) == size(indices, axis) => {}
        _ => return Err("it takes elements by the place of the rows".into()),
    }
    if dims.len() != inner.len() {
        return Err("its inputs have different numbers of dimensions".into());
    }
    Ok(vec![Ok(indices.reshaped(inner.to_vec()))])
}

fn slice(call: &Call) -> Outputs {
    let input = call.input(0)?;
    let dims = input.dims()?;
    let cuts = cuts(call, dims.len())?;
    if let Some(part) = part(input, &cuts) {
        return Ok(vec![Ok(part)]);
    }
    if input.is_counted() {
        return Ok(vec![Ok(Fact::new(Rows::Counted, None))]);
    }
    let mut shape = dims.to_vec();
    for cut in &cuts {
        let dim = shape.get_mut(cut.axis).ok_or("its axis is out of range")?;
        if cut.is_whole(dim) {
            continue;
        }
        if dim.has_rows() {
            return Err(TAKES_ROWS.into());
        }
        if [&cut.start, &cut.end, &cut.step].iter().any(|each| each.is_counted()) {
            return Err("what it takes depends on the number of rows".into());
        }
        let indices = dim.as_known().and_then(|size| cut.indices(size));
        *dim = indices.map_or_else(|| call.fresh(), |indices| Dim::known(indices.count as u64));
    }
    input.axis()?;
    Ok(vec![Ok(input.reshaped(shape))])
}

/// What a slice does to one axis.
struct Cut {
    axis: usize,
    start: Element,
    end: Element,
    step: Element,
}

/// Indices along an axis: the first, the distance to the next, and how many.
struct AxisIndices {
    first: i64,
    step: i64,
    count: usize,
}

fn cuts(call: &Call, rank: usize) -> Result<Vec<Cut>, Why> {
    let list = |name: &str, at: usize| -> Result<Option<Vec<Element>>, Why> {
        if let Some(numbers) = call.older(name, 10)? {
            return Ok(Some(numbers.iter().copied().map(Element::Int).collect()));
        }
        let Some(fact) = call.optional(at) else { return Ok(None) };
        let elements = fact.list_elements().ok_or("its limits are computed from values")?;
        Ok(Some(elements))
    };
    let starts = list("starts", 1)?.ok_or("it has no starts")?;
    let ends = list("ends", 2)?.ok_or("it has no ends")?;
    let axes = match call.numbers("axes", 3, 10)? {
        Some(axes) => axes,
        None => (0..starts.len() as i64).collect(),
    };
    let steps = list("steps", 4)?.unwrap_or(vec![Element::Int(1); starts.len()]);
    if [ends.len(), axes.len(), steps.len()].iter().any(|length| *length != starts.len()) {
        return Err("its limits have different lengths".into());
    }
    let mut cuts: Vec<Cut> = Vec::new();
    for (((start, end), step), axis) in starts.into_iter().zip(ends).zip(steps).zip(axes) {
        let axis = axis_of(axis, rank)?;
        if cuts.iter().any(|cut| cut.axis == axis) {
            return Err("it names an axis twice".into());
        }
        cuts.push(Cut { axis, start, end, step });
    }
    Ok(cuts)
}

impl Cut {
    fn is_whole(&self, dim: &Dim) -> bool {
        // Exporters write "to the end" as the largest number of some type.
        let reaches = match &self.end {
            Element::Int(end) => *end >= i64::from(i32::MAX),
            end => end.as_dim().as_ref() == Some(dim),
        };
        self.start == Element::Int(0) && self.step == Element::Int(1) && reaches
    }

    /// Which places of an axis of `size` it takes.
    fn indices(&self, size: u64) -> Option<AxisIndices> {
        let (Element::Int(start), Element::Int(end), Element::Int(step)) =
            (&self.start, &self.end, &self.step)
        else {
            return None;
        };
        let (size, step) = (i64::try_from(size).ok()?, *step);
        // Runtimes differ in where a step to the front ends.
        if step <= 0 {
            return None;
        }
        let from_start = |at: i64| if at < 0 { at.saturating_add(size) } else { at };
        let (start, end) = (from_start(*start), from_start(*end));
        let first = start.clamp(0, size);
        let length = end.clamp(0, size) - first;
        let count = length.max(0).checked_add(step - 1)? / step;
        Some(AxisIndices { first, step, count: usize::try_from(count).ok()? })
    }
}

/// The elements of a small tensor that `cuts` take.
fn part(input: &Fact, cuts: &[Cut]) -> Option<Fact> {
    let mut elements = input.elements.clone()?;
    let mut sizes = Vec::new();
    for dim in input.shape.as_ref()? {
        sizes.push(usize::try_from(dim.as_known()?).ok()?);
    }
    for cut in cuts {
        let size = *sizes.get(cut.axis)?;
        let indices = cut.indices(size as u64)?;
        let after = sizes.get(cut.axis + 1..)?;
        let inner = after.iter().try_fold(1_usize, |all, size| all.checked_mul(*size))?;
        let mut taken = Vec::new();
        for block in elements.chunks(inner.checked_mul(size).filter(|length| *length > 0)?) {
            for at in 0..indices.count {
                let place = indices.first.checked_add(indices.step.checked_mul(at as i64)?)?;
                let place = usize::try_from(place).ok()?.checked_mul(inner)?;
                taken.extend_from_slice(block.get(place..place.checked_add(inner)?)?);
            }
        }
        elements = taken;
        *sizes.get_mut(cut.axis)? = indices.count;
    }
    Some(Fact::of(elements, sizes.into_iter().map(|size| Dim::known(size as u64)).collect()))
}
