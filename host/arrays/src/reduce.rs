//! Reductions: one element of many, along some axes.

use bytemuck::Pod;
use gristmill_core::{Dtype, Tensor};

use crate::array::{ELEMENTS_PER_PART, Room, Stop, elements, fill, value};
use crate::call::Call;
use crate::elementwise::with;
use crate::math::Element;
use crate::promote::{
    cast, float_of, is_float, repeat, sum_of, with_float, with_integer, with_type,
};
use crate::shapes::permuted;

/// An array as blocks of `count` rows of `inner` elements. A reduction makes one row of
/// each block.
struct Blocks {
    array: Tensor,
    count: usize,
    inner: usize,
    /// Of the result.
    shape: Vec<usize>,
}

impl Blocks {
    /// Of an array and the axes that are reduced, in order; none are all.
    fn new(
        array: &Tensor,
        axes: Option<&[usize]>,
        keeps: bool,
        room: &mut dyn Room,
    ) -> Result<Self, Stop> {
        let rank = array.shape().len();
        let all: Vec<usize> = (0..rank).collect();
        let axes = axes.unwrap_or(&all);
        let is_reduced = |axis: &usize| axes.contains(axis);
        let shape = array.shape().to_vec();
        let kept =
            |axis: usize| if is_reduced(&axis) { keeps.then_some(1) } else { Some(shape[axis]) };
        let result = (0..rank).filter_map(kept).collect();
        let neighbours = axes.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        let (array, first, last) = if neighbours {
            let first = axes.first().copied().unwrap_or(rank);
            (array.clone(), first, first + axes.len())
        } else {
            // The reduced axes become the last ones.
            let order: Vec<_> =
                all.iter().filter(|axis| !is_reduced(axis)).chain(axes).copied().collect();
            (permuted(array, &order, room)?, rank - axes.len(), rank)
        };
        let product = |part: &[usize]| part.iter().product::<usize>();
        let (count, inner) =
            (product(&array.shape()[first..last]), product(&array.shape()[last..]));
        Ok(Self { array, count, inner, shape: result })
    }

    /// Begin each result with `start` of the first element, go on with `step`, and end with `end`.
    /// `none` is the result of no elements.
    fn fold<T: Pod, A: Copy, O: Pod>(
        &self,
        dtype: Dtype,
        room: &mut dyn Room,
        none: Option<O>,
        (start, step, end): (impl Fn(T) -> A, impl Fn(A, T, usize) -> A, impl Fn(A) -> O),
    ) -> Result<Tensor, Stop> {
        let Self { array, count, inner, shape } = self;
        let (count, inner) = (*count, *inner);
        let source = elements::<T>(array)?;
        if count == 0 {
            let Some(none) = none else {
                return Err(value("a reduction of no elements has no result"));
            };
            return fill(room, dtype, shape, |out: &mut [O], room| repeat(out, none, room));
        }
        // Wide rows are worked on in parts.
        let width = inner.min(ELEMENTS_PER_PART);
        if inner > 1 {
            room.reserve(width * size_of::<A>())?;
        }
        fill(room, dtype, shape, |out: &mut [O], room| {
            let mut results = Vec::with_capacity(width);
            let mut since_asked = 0;
            for (block, out) in source.chunks_exact(count * inner).zip(out.chunks_exact_mut(inner))
            {
                if inner == 1 {
                    let mut result = start(block[0]);
                    for (part, from) in
                        block.chunks(ELEMENTS_PER_PART).zip((0..).step_by(ELEMENTS_PER_PART))
                    {
                        let skipped = usize::from(from == 0);
                        for (at, element) in part.iter().enumerate().skip(skipped) {
                            result = step(result, *element, from + at);
                        }
                        if part.len() == ELEMENTS_PER_PART {
                            room.go_on()?;
                        }
                    }
                    out[0] = end(result);
                } else {
                    for (out, from) in out.chunks_mut(width).zip((0..).step_by(width)) {
                        let columns = from..from + out.len();
                        results.clear();
                        results.extend(block[columns.clone()].iter().map(|first| start(*first)));
                        for (at, row) in block.chunks_exact(inner).enumerate().skip(1) {
                            for (result, element) in results.iter_mut().zip(&row[columns.clone()]) {
                                *result = step(*result, *element, at);
                            }
                            since_asked += out.len();
                            if since_asked >= ELEMENTS_PER_PART {
                                since_asked = 0;
                                room.go_on()?;
                            }
                        }
                        out.iter_mut().zip(&results).for_each(|(out, result)| *out = end(*result));
                    }
                }
                since_asked += count + 1;
                if since_asked >= ELEMENTS_PER_PART {
                    since_asked = 0;
                    room.go_on()?;
                }
            }
            Ok(())
        })
    }
}

/// The reductions, as `sum(array, axis, keepdims)`. None for any other name.
pub(crate) fn reduction(op: &str, call: &mut Call<'_>) -> Option<Result<Tensor, Stop>> {
    if !matches!(
        op,
        "sum"
            | "prod"
            | "mean"
            | "max"
            | "min"
            | "any"
            | "all"
            | "count_nonzero"
            | "argmax"
            | "argmin"
            | "var"
            | "std"
    ) {
        return None;
    }
    Some(reduce(op, call))
}

fn reduce(op: &str, call: &mut Call<'_>) -> Result<Tensor, Stop> {
    let array = call.array(0)?;
    let axes = call.axes(0, array.shape().len())?;
    let keeps = call.flag(1);
    if matches!(op, "var" | "std") {
        let correction = call.float(2, 0.0)?;
        let variance = variance(&array, axes.as_deref(), keeps, correction, call.room)?;
        return if op == "std" { with("sqrt", &variance, 0.0, call.room) } else { Ok(variance) };
    }
    if matches!(op, "argmax" | "argmin") && axes.as_ref().is_some_and(|axes| axes.len() > 1) {
        return Err(value(format!("{op} takes one axis")));
    }
    of(op, &array, axes.as_deref(), keeps, call.room)
}

/// A reduction of an array.
pub(crate) fn of(
    op: &str,
    array: &Tensor,
    axes: Option<&[usize]>,
    keeps: bool,
    room: &mut dyn Room,
) -> Result<Tensor, Stop> {
    let dtype = array.dtype();
    let blocks = Blocks::new(array, axes, keeps, room)?;
    match op {
        "sum" | "prod" => {
            let is_sum = op == "sum";
            if is_float(dtype) {
                let none = if is_sum { 0.0 } else { 1.0 };
                // The parts are added in more digits than NumPy has.
                return with_float!(dtype, T => blocks.fold(
                    dtype, room, Some(none as T), (
                        |first: T| f64::from(first),
                        |sum, it, _| if is_sum { sum + f64::from(it) } else { sum * f64::from(it) },
                        |sum| sum as T,
                    ),
                ));
            }
            let none = if is_sum { 0 } else { 1 };
            let join = |sum: i64, it: i64| {
                if is_sum { sum.wrapping_add(it) } else { sum.wrapping_mul(it) }
            };
            // Flags are added as numbers; sums of unsigned integers have the same bits.
            let stored = if dtype == Dtype::Bool { Dtype::Uint8 } else { dtype };
            with_integer!(stored, T => blocks.fold(
                sum_of(dtype), room, Some(none),
                (|it: T| it as i64, |sum, it, _| join(sum, it as i64), |sum| sum),
            ))
        }
        "mean" => {
            let result = float_of(dtype);
            let count = blocks.count as f64;
            with_type!(dtype, T => {
                if result == Dtype::Float32 {
                    blocks.fold(result, room, Some(f32::NAN),
                        (T::to_f64, |sum, it: T, _| sum + it.to_f64(), |sum| (sum / count) as f32))
                } else {
                    blocks.fold(result, room, Some(f64::NAN),
                        (T::to_f64, |sum, it: T, _| sum + it.to_f64(), |sum| sum / count))
                }
            })
        }
        "max" => with_type!(dtype, T => {
            blocks.fold(dtype, room, None, (|it: T| it, |max: T, it, _| max.larger(it), |max| max))
        }),
        "min" => with_type!(dtype, T => {
            blocks.fold(dtype, room, None, (|it: T| it, |min: T, it, _| min.smaller(it), |min| min))
        }),
        "argmax" => with_type!(dtype, T => blocks.fold(
            Dtype::Int64, room, None, (
                |it: T| (it, 0_i64),
                // The first of equal ones, and the first NaN.
                |(max, at): (T, i64), it: T, now| {
                    let is_first = it > max || (it.is_nan() && !max.is_nan());
                    if is_first { (it, now as i64) } else { (max, at) }
                },
                |(_, at)| at,
            ),
        )),
        "argmin" => with_type!(dtype, T => blocks.fold(
            Dtype::Int64, room, None, (
                |it: T| (it, 0_i64),
                // The first of equal ones, and the first NaN.
                |(min, at): (T, i64), it: T, now| {
                    let is_first = it < min || (it.is_nan() && !min.is_nan());
                    if is_first { (it, now as i64) } else { (min, at) }
                },
                |(_, at)| at,
            ),
        )),
        "any" => with_type!(dtype, T => blocks.fold(
            Dtype::Bool, room, Some(0_u8), (
                |it: T| u8::from(it != T::ZERO),
                |any, it, _| any | u8::from(it != T::ZERO),
                |any| any,
            ),
        )),
        "all" => with_type!(dtype, T => blocks.fold(
            Dtype::Bool, room, Some(1_u8), (
                |it: T| u8::from(it != T::ZERO),
                |all, it, _| all & u8::from(it != T::ZERO),
                |all| all,
            ),
        )),
        _ => with_type!(dtype, T => blocks.fold(
            Dtype::Int64, room, Some(0_i64), (
                |it: T| i64::from(it != T::ZERO),
                |count, it, _| count + i64::from(it != T::ZERO),
                |count| count,
            ),
        )),
    }
}

/// The mean of the squares of the distances from the mean.
fn variance(
    array: &Tensor,
    axes: Option<&[usize]>,
    keeps: bool,
    correction: f64,
    room: &mut dyn Room,
) -> Result<Tensor, Stop> {
    let array = cast(array, float_of(array.dtype()), room)?;
    let mean = of("mean", &array, axes, true, room)?;
    let apart = with("subtract", &array, &mean, room)?;
    let squares = with("multiply", &apart, &apart, room)?;
    let sum = of("sum", &squares, axes, keeps, room)?;
    let count = array.as_bytes().len().checked_div(sum.as_bytes().len()).unwrap_or(0);
    with("divide", &sum, (count as f64 - correction).max(0.0), room)
}

/// `cumulative_sum(array, axis)`, `cumulative_prod(array, axis)`.
pub(crate) fn cumulative(call: &mut Call<'_>, is_product: bool) -> Result<Tensor, Stop> {
    let array = call.array(0)?;
    let (array, axis) = call.axis_or_flat(0, array)?;
    let dtype = if is_float(array.dtype()) { array.dtype() } else { sum_of(array.dtype()) };
    let array = cast(&array, dtype, call.room)?;
    let inner: usize = array.shape()[axis + 1..].iter().product();
    let block = array.shape()[axis] * inner;
    with_type!(dtype, T => {
        let source = elements::<T>(&array)?;
        fill(call.room, dtype, array.shape(), |out: &mut [T], room| {
            for (at, element) in source.iter().enumerate() {
                out[at] = match at % block < inner {
                    true => *element,
                    false if is_product => out[at - inner].multiply(*element),
                    false => out[at - inner].add(*element),
                };
                if at.is_multiple_of(ELEMENTS_PER_PART) {
                    room.go_on()?;
                }
            }
            Ok(())
        })
    })
}

/// `softmax(array, axis)`: 1 is divided among the elements along the axis.
pub(crate) fn softmax(call: &mut Call<'_>) -> Result<Tensor, Stop> {
    let array = call.floats()?;
    let axes = call.axes(0, array.shape().len())?;
    let room = &mut *call.room;
    let max = of("max", &array, axes.as_deref(), true, room)?;
    let powers = with("exp", &with("subtract", &array, &max, room)?, 0.0, room)?;
    let sum = of("sum", &powers, axes.as_deref(), true, room)?;
    with("divide", &powers, &sum, room)
}

/// `normalize(array, axis)`: divided by the Euclidean length along the axis, and left if that is 0.
pub(crate) fn normalize(call: &mut Call<'_>) -> Result<Tensor, Stop> {
    let array = call.floats()?;
    let axes = call.axes(0, array.shape().len())?;
    let room = &mut *call.room;
    let squares = of("sum", &with("multiply", &array, &array, room)?, axes.as_deref(), true, room)?;
    let length = with("sqrt", &squares, 0.0, room)?;
    let is_zero = with("equal", &length, 0.0, room)?;
    // A length of 0 becomes 1.
    let length = with("add", &length, &is_zero, room)?;
    with("divide", &array, &length, room)
}
