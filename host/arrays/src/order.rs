//! Operations that compare elements with each other: sorting, finding, counting apart.

use gristmill_core::{Dtype, Tensor};

use crate::array::{ELEMENTS_PER_PART, Room, Stop, elements, fill, flat, value, wrong_type};
use crate::call::{Call, axes_of};
use crate::math::Element;
use crate::promote::{cast, check_integer, with_type};
use crate::shapes::{permuted, steps_of};

/// Sorts `items` by `before`, with as much `spare` memory; equal ones stay in their order. Rust's
/// sort cannot be stopped, so it sorts parts, which are then merged.
pub(crate) fn sort_in_parts<T: Copy>(
    items: &mut [T],
    spare: &mut [T],
    before: impl Fn(&T, &T) -> bool,
    room: &dyn Room,
) -> Result<(), Stop> {
    let compare = |a: &T, b: &T| before(b, a).cmp(&before(a, b));
    for part in items.chunks_mut(ELEMENTS_PER_PART) {
        part.sort_by(compare);
        room.go_on()?;
    }
    let mut width = ELEMENTS_PER_PART;
    let (mut from, mut to) = (&mut *items, &mut *spare);
    let mut is_in_spare = false;
    while width < from.len() {
        for (from, to) in from.chunks(2 * width).zip(to.chunks_mut(2 * width)) {
            let (left, right) = from.split_at(width.min(from.len()));
            let (mut i, mut j) = (0, 0);
            for (at, to) in to.iter_mut().enumerate() {
                let is_right = i == left.len() || (j < right.len() && before(&right[j], &left[i]));
                let next = if is_right { &mut j } else { &mut i };
                *to = if is_right { right[*next] } else { left[*next] };
                *next += 1;
                if at.is_multiple_of(ELEMENTS_PER_PART) {
                    room.go_on()?;
                }
            }
        }
        std::mem::swap(&mut from, &mut to);
        is_in_spare = !is_in_spare;
        width *= 2;
    }
    if is_in_spare {
        to.copy_from_slice(from);
    }
    Ok(())
}

/// To sort an element takes as long as to copy so many bytes.
const SORT_WORK: usize = 64;

/// Memory for `count` more elements of `T`, which sorting takes, where `all` are sorted.
pub(crate) fn spare<T: Copy>(
    count: usize,
    all: usize,
    item: T,
    room: &mut dyn Room,
) -> Result<Vec<T>, Stop> {
    room.touch(all.saturating_mul(SORT_WORK))?;
    // Rust's sort takes as much again for each part.
    room.reserve(count.saturating_mul(2 * size_of::<T>()))?;
    Ok(vec![item; count])
}

/// `sort(array, axis, descending)`.
pub(crate) fn sort(call: &mut Call<'_>) -> Result<Tensor, Stop> {
    let array = call.array(0)?;
    let descending = call.flag(1);
    along(call, &array, |array, len, room| {
        with_type!(array.dtype(), T => {
            let source = elements::<T>(array)?;
            let mut spare = spare(len, source.len(), T::ZERO, room)?;
            fill(room, array.dtype(), array.shape(), |out: &mut [T], room| {
                out.copy_from_slice(source);
                for lane in out.chunks_exact_mut(len) {
                    sort_in_parts(lane, &mut spare, |a, b| a.before(*b), room)?;
                    if descending {
                        lane.reverse();
                    }
                }
                Ok(())
            })
        })
    })
}

/// `argsort(array, axis, descending)`: equal elements in their order.
pub(crate) fn argsort(call: &mut Call<'_>) -> Result<Tensor, Stop> {
    let array = call.array(0)?;
    let descending = call.flag(1);
    along(call, &array, |array, len, room| {
        with_type!(array.dtype(), T => {
            let source = elements::<T>(array)?;
            let mut spare = spare(len, source.len(), 0_i64, room)?;
            fill(room, Dtype::Int64, array.shape(), |out: &mut [i64], room| {
                for (lane, from) in out.chunks_exact_mut(len).zip(source.chunks_exact(len)) {
                    sort_places(lane, &mut spare, from, descending, room)?;
                }
                Ok(())
            })
        })
    })
}

/// The places of the elements of `from`, in their order.
fn sort_places<T: Element>(
    places: &mut [i64],
    spare: &mut [i64],
    from: &[T],
    descending: bool,
    room: &dyn Room,
) -> Result<(), Stop> {
    places.iter_mut().zip(0..).for_each(|(place, at)| *place = at);
    let it = |at: &i64| from[*at as usize];
    if descending {
        sort_in_parts(places, spare, |a, b| it(b).before(it(a)), room)
    } else {
        sort_in_parts(places, spare, |a, b| it(a).before(it(b)), room)
    }
}

/// `argtopk(array, count, axis)`: the places of the largest elements, largest first.
pub(crate) fn argtopk(call: &mut Call<'_>) -> Result<Tensor, Stop> {
    let array = call.array(0)?;
    let count = call.count(1, "the number of elements may not be negative")?;
    along(call, &array, |array, len, room| {
        if count > len {
            return Err(value(format!("{count} elements of {len} are wanted")));
        }
        let mut shape = array.shape().to_vec();
        if let Some(last) = shape.last_mut() {
            *last = count;
        }
        with_type!(array.dtype(), T => {
            let source = elements::<T>(array)?;
            // Many are sorted, because a selection cannot be stopped.
            let is_sorted = 2 * count > ELEMENTS_PER_PART;
            let (held, all) = if is_sorted { (len, source.len()) } else { (2 * count, 0) };
            let mut places = spare(held, all, 0_i64, room)?;
            let mut more = spare(if is_sorted { len } else { 0 }, 0, 0_i64, room)?;
            room.touch(source.len().saturating_mul(16))?;
            fill(room, Dtype::Int64, &shape, |out: &mut [i64], room| {
                for (out, from) in out.chunks_exact_mut(count).zip(source.chunks_exact(len)) {
                    if is_sorted {
                        sort_places(&mut places, &mut more, from, true, room)?;
                        out.copy_from_slice(&places[..count]);
                        continue;
                    }
                    let found = &mut places;
                    let it = |at: &i64| from[*at as usize];
                    // NaN counts as the largest, and the first of equal ones comes first.
                    let larger = |a: &i64, b: &i64| it(b).before(it(a));
                    let order = |a: &i64, b: &i64| larger(b, a).cmp(&larger(a, b)).then(a.cmp(b));
                    found.clear();
                    let mut least = None;
                    for at in 0..len as i64 {
                        if least.as_ref().is_none_or(|least| larger(&at, least)) {
                            found.push(at);
                            if found.len() == 2 * count {
                                found.select_nth_unstable_by(count - 1, order);
                                found.truncate(count);
                                least = found.last().copied();
                                room.go_on()?;
                            }
                        }
                        if (at as usize).is_multiple_of(ELEMENTS_PER_PART) {
                            room.go_on()?;
                        }
                    }
                    found.sort_unstable_by(order);
                    out.copy_from_slice(&found[..count]);
                }
                Ok(())
            })
        })
    })
}

/// Run `work` on an array whose axis is the last one, with its length, and put the axis of the
/// result back. Without an axis, all flat.
fn along(
    call: &mut Call<'_>,
    array: &Tensor,
    work: impl FnOnce(&Tensor, usize, &mut dyn Room) -> Result<Tensor, Stop>,
) -> Result<Tensor, Stop> {
    let rank = array.shape().len();
    let Some(axis) = call.axis(0, rank)? else {
        let array = flat(array)?;
        return work(&array, array.shape()[0], call.room);
    };
    let len = array.shape()[axis];
    let order: Vec<_> = (0..rank).filter(|at| *at != axis).chain([axis]).collect();
    let done = work(&permuted(array, &order, call.room)?, len, call.room)?;
    // The last axis goes back to its place.
    let mut back: Vec<_> = (0..rank - 1).collect();
    back.insert(axis, rank - 1);
    permuted(&done, &back, call.room)
}

/// `unique(array)`: the different elements, sorted. With `counts`, how often each is there.
pub(crate) fn unique(call: &mut Call<'_>, counts: bool) -> Result<Tensor, Stop> {
    let array = call.array(0)?;
    let len = array.shape().iter().product::<usize>();
    let room = &mut *call.room;
    with_type!(array.dtype(), T => {
        let mut spare = spare(len, len, T::ZERO, room)?;
        room.reserve(len * size_of::<T>())?;
        let mut sorted = elements::<T>(&array)?.to_vec();
        sort_in_parts(&mut sorted, &mut spare, |a, b| a.before(*b), room)?;
        let differs = |a: &T, b: &T| a != b && !(a.is_nan() && b.is_nan());
        let is_first = |at: usize| at == 0 || differs(&sorted[at - 1], &sorted[at]);
        let mut firsts = 0;
        for at in 0..len {
            firsts += usize::from(is_first(at));
            ask(at, room)?;
        }
        if counts {
            fill(room, Dtype::Int64, &[firsts], |out: &mut [i64], room| {
                let mut place = 0;
                for at in 0..len {
                    if is_first(at) && at > 0 {
                        place += 1;
                    }
                    out[place] += 1;
                    ask(at, room)?;
                }
                Ok(())
            })
        } else {
            fill(room, array.dtype(), &[firsts], |out: &mut [T], room| {
                let mut place = 0;
                for (at, element) in sorted.iter().enumerate() {
                    if is_first(at) {
                        out[place] = *element;
                        place += 1;
                    }
                    ask(at, room)?;
                }
                Ok(())
            })
        }
    })
}

/// Ask, at every so many elements, whether to go on.
fn ask(at: usize, room: &dyn Room) -> Result<(), Stop> {
    if at.is_multiple_of(ELEMENTS_PER_PART) { room.go_on() } else { Ok(()) }
}

/// `nonzero(array)`: the places of the elements that are not 0, as `[dimensions, count]`.
pub(crate) fn nonzero(call: &mut Call<'_>) -> Result<Tensor, Stop> {
    let array = call.array(0)?;
    if array.shape().is_empty() {
        return Err(value("nonzero of an array without dimensions: use reshape(1) first"));
    }
    let flags = cast(&array, Dtype::Bool, call.room)?;
    places(&flags, call.room)
}

/// The places of the flags that are set.
pub(crate) fn places(flags: &Tensor, room: &mut dyn Room) -> Result<Tensor, Stop> {
    let (shape, steps) = (flags.shape(), steps_of(flags.shape()));
    let flags = elements::<u8>(flags)?;
    let count = flags.iter().filter(|flag| **flag != 0).count();
    fill(room, Dtype::Int64, &[shape.len(), count], |out: &mut [i64], room| {
        let mut found = 0;
        for (part, from) in flags.chunks(ELEMENTS_PER_PART).zip((0..).step_by(ELEMENTS_PER_PART)) {
            for (at, _) in part.iter().enumerate().filter(|(_, flag)| **flag != 0) {
                for (axis, (len, step)) in shape.iter().zip(&steps).enumerate() {
                    out[axis * count + found] = ((from + at) / step % len) as i64;
                }
                found += 1;
            }
            room.go_on()?;
        }
        Ok(())
    })
}

/// `searchsorted(sorted, values, side)`: where each value would be put in.
pub(crate) fn searchsorted(call: &mut Call<'_>, right: bool) -> Result<Tensor, Stop> {
    let (dtype, arrays) = call.arrays()?;
    let [sorted, wanted] = &arrays[..] else {
        return Err(value("the operation takes two operands"));
    };
    if sorted.shape().len() != 1 {
        return Err(value("the sorted array has to have one dimension"));
    }
    with_type!(dtype, T => {
        let (sorted, values) = (elements::<T>(sorted)?, elements::<T>(wanted)?);
        fill(call.room, Dtype::Int64, wanted.shape(), |out: &mut [i64], room| {
            for (at, (out, value)) in out.iter_mut().zip(values).enumerate() {
                *out = sorted.partition_point(|it| {
                    if right { !value.before(*it) } else { it.before(*value) }
                }) as i64;
                if at.is_multiple_of(1024) {
                    room.go_on()?;
                }
            }
            Ok(())
        })
    })
}

/// `take_along_axis(array, indices, axis)`.
pub(crate) fn take_along_axis(call: &mut Call<'_>) -> Result<Tensor, Stop> {
    let (array, indices) = (call.array(0)?, call.array(1)?);
    check_integer(indices.dtype())?;
    let (array, axis) = call.axis_or_flat(0, array)?;
    let indices = cast(&indices, Dtype::Int64, call.room)?;
    let (own_shape, wanted) = (array.shape(), indices.shape());
    let fits = own_shape.len() == wanted.len()
        && own_shape.iter().zip(wanted).enumerate().all(|(at, (a, b))| at == axis || a == b);
    if !fits {
        return Err(value(format!("indices of shape {wanted:?} do not fit shape {own_shape:?}")));
    }
    let places = in_range(elements::<i64>(&indices)?, own_shape[axis], axis)?;
    let steps = steps_of(wanted);
    let own_steps = steps_of(own_shape);
    let mut at = 0;
    let shape = wanted.to_vec();
    crate::shapes::gather(&array, &shape, call.room, || {
        let mut place = places(at) * own_steps[axis];
        for (dimension, (len, step)) in shape.iter().zip(&steps).enumerate() {
            if dimension != axis {
                place += at / step % len * own_steps[dimension];
            }
        }
        at += 1;
        place
    })
}

/// Indices along an axis of `len`, after they were checked. Negative ones count from the end.
pub(crate) fn in_range(
    indices: &[i64],
    len: usize,
    axis: usize,
) -> Result<impl Fn(usize) -> usize, Stop> {
    let from_end = move |index: i64| if index < 0 { index.wrapping_add(len as i64) } else { index };
    let is_wrong = |index: &&i64| !usize::try_from(from_end(**index)).is_ok_and(|it| it < len);
    if let Some(wrong) = indices.iter().find(is_wrong) {
        let why = format!("index {wrong} is out of bounds for axis {axis} with size {len}");
        return Err(crate::array::out_of_range(why));
    }
    Ok(move |at: usize| from_end(indices[at]) as usize)
}

/// An index array's dtype has to be of integers.
pub(crate) fn check_indices(array: &Tensor) -> Result<(), Stop> {
    let why = || wrong_type("arrays used as indices must be of integer (or boolean) type");
    check_integer(array.dtype()).map_err(|_| why())
}

/// `flip(array, axis)`.
pub(crate) fn flip(call: &mut Call<'_>) -> Result<Tensor, Stop> {
    let array = call.array(0)?;
    let rank = array.shape().len();
    let axes = match call.ints(0)? {
        Some(axes) => axes_of(&axes, rank)?,
        None => (0..rank).collect(),
    };
    let (shape, steps) = (array.shape(), steps_of(array.shape()));
    let mut first = 0;
    let dims = shape.iter().zip(&steps).enumerate().map(|(axis, (len, step))| {
        if axes.contains(&axis) {
            first += len.saturating_sub(1) * step;
            (*len, -(*step as isize))
        } else {
            (*len, *step as isize)
        }
    });
    let dims: Vec<_> = dims.collect();
    crate::shapes::gather(&array, shape, call.room, crate::shapes::strided(first, &dims))
}
