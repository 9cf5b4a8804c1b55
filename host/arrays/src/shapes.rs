//! Operations that move elements and change none: permuting, joining, repeating.

use gristmill_core::{Dtype, Tensor};

use crate::array::{
    ELEMENTS_PER_PART, Room, Stop, broadcast, fill, flat, reshaped, value, wrong_type,
};
use crate::call::{Call, axes_of};
use crate::param::Param;

/// A copy of few bytes takes as long as one of so many.
const COPY_WORK: usize = 16;

/// Moves elements of `N` bytes from the places that `from` gives, in the order of the result.
fn gather_bytes<const N: usize>(
    source: &[u8],
    out: &mut [u8],
    room: &dyn Room,
    mut from: impl FnMut() -> usize,
) -> Result<(), Stop> {
    let (source, _) = source.as_chunks::<N>();
    let (out, _) = out.as_chunks_mut::<N>();
    for part in out.chunks_mut(ELEMENTS_PER_PART) {
        part.iter_mut().for_each(|out| *out = source[from()]);
        room.go_on()?;
    }
    Ok(())
}

/// A new array of the elements at these places of `array`, one after another.
pub(crate) fn gather(
    array: &Tensor,
    shape: &[usize],
    room: &mut dyn Room,
    from: impl FnMut() -> usize,
) -> Result<Tensor, Stop> {
    let Some(bytes) = array.dtype().size_bytes() else {
        return Err(wrong_type("the operation takes numbers, not strings"));
    };
    fill(room, array.dtype(), shape, |out: &mut [u8], room| {
        let source = array.as_bytes();
        match bytes {
            1 => gather_bytes::<1>(source, out, room, from),
            2 => gather_bytes::<2>(source, out, room, from),
            4 => gather_bytes::<4>(source, out, room, from),
            _ => gather_bytes::<8>(source, out, room, from),
        }
    })
}

/// The places of the elements of a part of an array, whose dimensions have these lengths and steps.
pub(crate) fn strided(first: usize, dims: &[(usize, isize)]) -> impl FnMut() -> usize + use<> {
    let dims: Vec<_> = dims.iter().rev().copied().collect();
    let mut at = vec![0; dims.len()];
    let mut place = first as isize;
    move || {
        let found = place as usize;
        for ((len, step), at) in dims.iter().zip(&mut at) {
            *at += 1;
            place += step;
            if *at < *len {
                break;
            }
            place -= step * *len as isize;
            *at = 0;
        }
        found
    }
}

/// The elements between neighbours along each dimension.
pub(crate) fn steps_of(shape: &[usize]) -> Vec<usize> {
    let mut steps = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        steps[axis - 1] = steps[axis] * shape[axis];
    }
    steps
}

/// The dimensions in another order.
pub(crate) fn permuted(
    array: &Tensor,
    order: &[usize],
    room: &mut dyn Room,
) -> Result<Tensor, Stop> {
    if order.iter().copied().eq(0..order.len()) {
        return Ok(array.clone());
    }
    let (old, steps) = (array.shape(), steps_of(array.shape()));
    let shape: Vec<_> = order.iter().map(|axis| old[*axis]).collect();
    let dims: Vec<_> = order.iter().map(|axis| (old[*axis], steps[*axis] as isize)).collect();
    gather(array, &shape, room, strided(0, &dims))
}

/// `permute_dims(array, axes)`: without axes, in the opposite order.
pub(crate) fn permute(call: &mut Call<'_>) -> Result<Tensor, Stop> {
    let array = call.array(0)?;
    let rank = array.shape().len();
    let order = match call.ints(0)? {
        None => (0..rank).rev().collect(),
        Some(axes) => {
            let order = axes_of(&axes, rank)?;
            let mut sorted = order.clone();
            sorted.sort_unstable();
            if !sorted.into_iter().eq(0..rank) {
                return Err(value(format!("axes {axes:?} do not match {rank} dimensions")));
            }
            order
        }
    };
    permuted(&array, &order, call.room)
}

/// `reshape(array, shape)`: one dimension may be -1.
pub(crate) fn reshape(call: &mut Call<'_>) -> Result<Tensor, Stop> {
    let array = call.array(0)?;
    let wanted = call.ints(0)?.unwrap_or_default();
    let count: usize = array.shape().iter().product();
    let unfit = || {
        let have = array.shape();
        value(format!("cannot reshape an array of shape {have:?} into {wanted:?}"))
    };
    let known_count = wanted
        .iter()
        .filter(|dim| **dim != -1)
        .try_fold(1_usize, |product, dim| product.checked_mul(usize::try_from(*dim).ok()?));
    let known_count = known_count.ok_or_else(unfit)?;
    if wanted.iter().filter(|dim| **dim == -1).count() > 1 {
        return Err(value("can only specify one unknown dimension"));
    }
    let rest =
        if known_count > 0 && count.is_multiple_of(known_count) { count / known_count } else { 0 };
    let shape: Vec<_> =
        wanted.iter().map(|dim| if *dim == -1 { rest } else { *dim as usize }).collect();
    if shape.iter().product::<usize>() != count {
        return Err(unfit());
    }
    reshaped(&array, &shape)
}

/// `broadcast_to(array, shape)`.
pub(crate) fn broadcast_to(call: &mut Call<'_>) -> Result<Tensor, Stop> {
    let array = call.array(0)?;
    let shape = call.shape(0)?;
    if broadcast(&[array.shape(), &shape])? != shape {
        return Err(value(format!("cannot broadcast {:?} to {shape:?}", array.shape())));
    }
    let (own_shape, steps) = (array.shape(), steps_of(array.shape()));
    let ahead = shape.len() - own_shape.len();
    let dims = shape.iter().enumerate().map(|(axis, len)| {
        let step = axis.checked_sub(ahead).filter(|axis| own_shape[*axis] != 1);
        (*len, step.map_or(0, |axis| steps[axis] as isize))
    });
    gather(&array, &shape, call.room, strided(0, &dims.collect::<Vec<_>>()))
}

/// `concat(arrays, axis)`: one after another. Without an axis, all flat.
pub(crate) fn concat(call: &mut Call<'_>) -> Result<Tensor, Stop> {
    let (dtype, mut arrays) = call.arrays()?;
    let rank = arrays[0].shape().len();
    let axis = if call.params.first() == Some(&Param::Null) {
        for array in &mut arrays {
            *array = flat(array)?;
        }
        0
    } else {
        if rank == 0 {
            return Err(value("zero-dimensional arrays cannot be concatenated"));
        }
        call.axis(0, rank)?.unwrap_or(0)
    };
    join(&arrays, dtype, axis, call.room)
}

/// `stack(arrays, axis)`: along a new axis.
pub(crate) fn stack(call: &mut Call<'_>) -> Result<Tensor, Stop> {
    let (dtype, arrays) = call.arrays()?;
    let axis = call.axis(0, arrays[0].shape().len() + 1)?.unwrap_or(0);
    let mut parts = Vec::new();
    for array in arrays {
        let mut shape = array.shape().to_vec();
        if axis > shape.len() {
            return Err(value("all input arrays must have the same shape"));
        }
        shape.insert(axis, 1);
        parts.push(reshaped(&array, &shape)?);
    }
    join(&parts, dtype, axis, call.room)
}

fn join(arrays: &[Tensor], dtype: Dtype, axis: usize, room: &mut dyn Room) -> Result<Tensor, Stop> {
    let mut shape = arrays[0].shape().to_vec();
    shape[axis] = 0;
    for array in arrays {
        let have = array.shape();
        let fits = have.len() == shape.len()
            && have.iter().zip(&shape).enumerate().all(|(at, (a, b))| at == axis || a == b);
        if !fits {
            let first = arrays[0].shape();
            return Err(value(format!("{have:?} does not fit {first:?}, apart from axis {axis}")));
        }
        shape[axis] += have[axis];
    }
    let outer: usize = shape[..axis].iter().product();
    let parts: Vec<_> =
        arrays.iter().map(Tensor::as_bytes).filter(|part| !part.is_empty()).collect();
    room.touch(outer.saturating_mul(parts.len()).saturating_mul(COPY_WORK))?;
    fill(room, dtype, &shape, |out: &mut [u8], room| {
        let mut rest = out;
        let mut since_asked = 0;
        for at in 0..outer {
            for part in &parts {
                let len = part.len() / outer;
                for piece in part[at * len..(at + 1) * len].chunks(ELEMENTS_PER_PART) {
                    let (out, after) = std::mem::take(&mut rest).split_at_mut(piece.len());
                    rest = after;
                    out.copy_from_slice(piece);
                    since_asked += piece.len() + COPY_WORK;
                    if since_asked >= ELEMENTS_PER_PART {
                        since_asked = 0;
                        room.go_on()?;
                    }
                }
            }
        }
        Ok(())
    })
}

/// `repeat(array, count, axis)`: each element so many times. Without an axis, all flat.
pub(crate) fn repeat(call: &mut Call<'_>) -> Result<Tensor, Stop> {
    let array = call.array(0)?;
    let count = call.count(0, "repeats may not be negative")?;
    let (array, axis) = call.axis_or_flat(1, array)?;
    let (mut shape, steps) = (array.shape().to_vec(), steps_of(array.shape()));
    let mut dims: Vec<_> =
        shape.iter().zip(&steps).map(|(len, step)| (*len, *step as isize)).collect();
    dims.insert(axis + 1, (count, 0));
    shape[axis] = shape[axis].checked_mul(count).ok_or_else(|| value("the array is too large"))?;
    gather(&array, &shape, call.room, strided(0, &dims))
}
