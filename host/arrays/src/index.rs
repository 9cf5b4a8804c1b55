//! `array[...]`: integers, slices, new axes, and arrays of integers or flags.

use gristmill_core::{Dtype, Tensor};

use crate::array::{Room, Stop, broadcast, check_shape, elements, out_of_range, reshaped, value};
use crate::call::Call;
use crate::order::{check_indices, in_range, places};
use crate::param::Param;
use crate::promote::{Number, cast};
use crate::runs::Runs;
use crate::shapes::{gather, steps_of, strided};

/// One part of an index.
enum IndexItem {
    Int(i64),
    Slice([Option<i64>; 3]),
    NewAxis,
    Ellipsis,
    Array(Tensor),
}

/// An array of indices, along an axis of what the other parts leave.
struct Along {
    axis: usize,
    indices: Tensor,
}

/// Maximum parts of an index.
const PARTS_MAX: usize = 32;

/// `index(array, others.., parts)`: a part is an integer, `[start, stop, step]`, null for a new
/// axis, "..." or "array", which stands for the next operand.
pub(crate) fn index(call: &mut Call<'_>) -> Result<Tensor, Stop> {
    let array = call.array(0)?;
    let mut parts = read(call)?;
    if parts.iter().any(|part| matches!(part, IndexItem::Array(_))) {
        // Beside arrays, an integer is one, too.
        for part in &mut parts {
            if let IndexItem::Int(at) = part {
                *part = IndexItem::Array(Number::Int((*at).into()).array(Dtype::Int64, call.room)?);
            }
        }
    }
    let taken = |part: &IndexItem| match part {
        IndexItem::Int(_) | IndexItem::Slice(_) => 1,
        IndexItem::Array(flags) if flags.dtype() == Dtype::Bool => flags.shape().len(),
        IndexItem::Array(_) => 1,
        IndexItem::NewAxis | IndexItem::Ellipsis => 0,
    };
    let rank = array.shape().len();
    let named: usize = parts.iter().map(taken).sum();
    if named > rank {
        let why = format!("too many indices: the array has {rank} dimensions, {named} are indexed");
        return Err(out_of_range(why));
    }
    if parts.iter().filter(|part| matches!(part, IndexItem::Ellipsis)).count() > 1 {
        return Err(out_of_range("an index can only have a single ellipsis ('...')"));
    }
    let steps = steps_of(array.shape());
    let mut first = 0;
    let mut dims: Vec<(usize, isize)> = Vec::new();
    let mut along = Vec::new();
    let mut axis = 0;
    let keep = |dims: &mut Vec<(usize, isize)>, axis: &mut usize, count: usize| {
        for _ in 0..count {
            dims.push((array.shape()[*axis], steps[*axis] as isize));
            *axis += 1;
        }
    };
    for part in &parts {
        match part {
            IndexItem::Ellipsis => keep(&mut dims, &mut axis, rank - named),
            IndexItem::NewAxis => dims.push((1, 0)),
            IndexItem::Int(at) => {
                let place = in_range(std::slice::from_ref(at), array.shape()[axis], axis)?(0);
                first += place * steps[axis];
                axis += 1;
            }
            IndexItem::Slice(slice) => {
                let (start, len, step) = slice_of(*slice, array.shape()[axis])?;
                first += start * steps[axis];
                dims.push((len, step * steps[axis] as isize));
                axis += 1;
            }
            IndexItem::Array(flag) if flag.dtype() == Dtype::Bool && flag.shape().is_empty() => {
                // A new axis, of all or of nothing.
                let found = places(&reshaped(flag, &[1])?, call.room)?;
                let count = found.shape()[1];
                along.push(Along { axis: dims.len(), indices: reshaped(&found, &[count])? });
                dims.push((1, 0));
            }
            IndexItem::Array(flags) if flags.dtype() == Dtype::Bool => {
                let (own_dims, wanted) = (&array.shape()[axis..], flags.shape());
                if !own_dims.starts_with(wanted) {
                    let why =
                        format!("boolean index of shape {wanted:?} does not fit {own_dims:?}");
                    return Err(out_of_range(why));
                }
                let found = places(flags, call.room)?;
                for dimension in 0..wanted.len() {
                    let row = found.slice_rows(dimension..dimension + 1);
                    let row = row.ok_or_else(|| value("no such row"))?;
                    let row = reshaped(&row, &[found.shape()[1]])?;
                    along.push(Along { axis: dims.len(), indices: row });
                    keep(&mut dims, &mut axis, 1);
                }
            }
            IndexItem::Array(indices) => {
                check_indices(indices)?;
                let indices = cast(indices, Dtype::Int64, call.room)?;
                along.push(Along { axis: dims.len(), indices });
                keep(&mut dims, &mut axis, 1);
            }
        }
    }
    let left = rank - axis;
    keep(&mut dims, &mut axis, left);
    let shape: Vec<_> = dims.iter().map(|(len, _)| *len).collect();
    check_shape(&shape)?;
    if along.is_empty() {
        let is_all = shape.iter().product::<usize>() == array.shape().iter().product::<usize>();
        if is_all && dims.iter().all(|(len, step)| *len <= 1 || *step > 0) {
            return reshaped(&array, &shape);
        }
        if let Some(rows) = rows(&array, first, &dims, &shape) {
            return Ok(rows);
        }
        return gather(&array, &shape, call.room, strided(first, &dims));
    }
    by_arrays(&array, first, &dims, &along, call.room)
}

/// Rows that follow one another share the array's memory.
fn rows(array: &Tensor, first: usize, dims: &[(usize, isize)], shape: &[usize]) -> Option<Tensor> {
    let own_shape = array.shape();
    let row: usize = own_shape.get(1..)?.iter().product();
    let dense = dims
        .iter()
        .zip(steps_of(shape))
        .all(|((len, step), dense)| *len == 1 || *step == dense as isize);
    let count: usize = shape.iter().product();
    if !dense || row == 0 || count == 0 || !first.is_multiple_of(row) || !count.is_multiple_of(row)
    {
        return None;
    }
    let rows = array.slice_rows(first / row..(first + count) / row)?;
    reshaped(&rows, shape).ok()
}

fn read(call: &mut Call<'_>) -> Result<Vec<IndexItem>, Stop> {
    let Some(parts) = call.params.first().and_then(Param::list) else {
        return Err(value("the index is not a list"));
    };
    if parts.len() > PARTS_MAX {
        return Err(value(format!("{} parts of an index are over {PARTS_MAX}", parts.len())));
    }
    let mut arrays = 0;
    parts
        .iter()
        .map(|part| {
            Ok(match part {
                Param::Null => IndexItem::NewAxis,
                Param::Number(_) => {
                    IndexItem::Int(part.int().ok_or_else(|| value("not an index"))?)
                }
                Param::Text(text) if text == "..." => IndexItem::Ellipsis,
                Param::Text(text) if text == "array" => {
                    arrays += 1;
                    IndexItem::Array(call.array(arrays)?)
                }
                Param::List(ends) => {
                    let mut slice = [None; 3];
                    for (end, given_end) in slice.iter_mut().zip(ends) {
                        *end = given_end.int();
                    }
                    IndexItem::Slice(slice)
                }
                other => return Err(value(format!("{other:?} is not an index"))),
            })
        })
        .collect()
}

/// The first place, the length and the step of a slice, as Python reads it.
fn slice_of(
    [start, stop, step]: [Option<i64>; 3],
    len: usize,
) -> Result<(usize, usize, isize), Stop> {
    let (len, step) = (len as i64, step.unwrap_or(1));
    if step == 0 {
        return Err(value("slice step cannot be zero"));
    }
    let (least, most) = if step > 0 { (0, len) } else { (-1, len - 1) };
    let clamp = |end: i64| {
        let end = if end < 0 { end.saturating_add(len) } else { end };
        end.clamp(least, most)
    };
    let start = start.map_or(if step > 0 { least } else { most }, clamp);
    let stop = stop.map_or(if step > 0 { most } else { least }, clamp);
    let span = if step > 0 { stop - start } else { start - stop };
    if span <= 0 {
        return Ok((0, 0, 1));
    }
    let count = (span - 1) / step.saturating_abs() + 1;
    // The step to the next element, if there is one, stays within the axis.
    let step = if count == 1 { 1 } else { step };
    Ok((start as usize, count as usize, step as isize))
}

/// The elements that arrays of indices name. Their dimensions take the place of the axes that they
/// index, or come first if these are apart.
fn by_arrays(
    array: &Tensor,
    first: usize,
    dims: &[(usize, isize)],
    along: &[Along],
    room: &mut dyn Room,
) -> Result<Tensor, Stop> {
    let shapes: Vec<_> = along.iter().map(|one| one.indices.shape()).collect();
    let common = broadcast(&shapes)?;
    let count: usize = common.iter().product();
    // For each common place, the sum of what the index arrays add.
    room.reserve(count * size_of::<isize>())?;
    let mut starts = vec![first as isize; count];
    for one in along {
        let (len, step) = dims[one.axis];
        let indices = elements::<i64>(&one.indices)?;
        let place = in_range(indices, len, one.axis)?;
        let runs = Runs::new(&common, [one.indices.shape()]);
        let mut at = 0;
        runs.each(room, |[from], [by], len| {
            for n in 0..len {
                starts[at] += place(from + n * by) as isize * step;
                at += 1;
            }
        })?;
    }
    let is_indexed = |axis: usize| along.iter().any(|one| one.axis == axis);
    let neighbours = along.windows(2).all(|pair| pair[0].axis + 1 == pair[1].axis);
    let split = if neighbours { along[0].axis } else { 0 };
    let rest: Vec<_> = (0..dims.len()).filter(|axis| !is_indexed(*axis)).collect();
    let (before, after): (Vec<_>, Vec<_>) = rest.into_iter().partition(|axis| *axis < split);
    let of = |axes: &[usize]| axes.iter().map(|axis| dims[*axis]).collect::<Vec<_>>();
    let (before, after) = (of(&before), of(&after));
    let lens = |dims: &[(usize, isize)]| dims.iter().map(|(len, _)| *len).collect::<Vec<_>>();
    let shape = [lens(&before), common, lens(&after)].concat();
    let inner: usize = lens(&after).iter().product();
    // All places but the common ones begin anew where the ones before them end.
    let mut before_places = strided(0, &before);
    let mut after_places = strided(0, &after);
    let (mut outer, mut at, mut within) = (0, count, inner);
    gather(array, &shape, room, || {
        if within == inner {
            within = 0;
            at += 1;
            if at >= count {
                at = 0;
                outer = before_places();
            }
        }
        within += 1;
        (starts[at] + outer as isize + after_places() as isize) as usize
    })
}

/// `take(array, indices, axis)`.
pub(crate) fn take(call: &mut Call<'_>) -> Result<Tensor, Stop> {
    let (array, indices) = (call.array(0)?, call.array(1)?);
    check_indices(&indices)?;
    let (array, axis) = call.axis_or_flat(0, array)?;
    let steps = steps_of(array.shape());
    let dims: Vec<_> =
        array.shape().iter().zip(&steps).map(|(len, step)| (*len, *step as isize)).collect();
    let indices = cast(&indices, Dtype::Int64, call.room)?;
    by_arrays(&array, 0, &dims, &[Along { axis, indices }], call.room)
}
