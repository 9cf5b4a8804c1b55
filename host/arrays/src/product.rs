//! Products of matrices.

use gristmill_core::{Dtype, Tensor};
use ndarray::{ArrayView2, ArrayViewMut2, Axis, Slice};

use crate::array::{ELEMENTS_PER_PART, Room, Stop, broadcast, elements, fill, reshaped, value};
use crate::call::Call;
use crate::elementwise::with;
use crate::math::Element;
use crate::param::Param;
use crate::promote::{Number, cast, common_of, with_integer};
use crate::shapes::steps_of;

/// The multiplications between two questions whether to go on.
const PRODUCTS_PER_PART: usize = 1 << 20;

/// To find the two matrices of a product takes as long as so many multiplications.
const MATRIX_WORK: usize = 256;

const DOT: Param = Param::Number(Number::Bool(true));

/// `matmul(left, right, dot)`: `dot` also takes arrays without dimensions.
pub(crate) fn matmul(call: &mut Call<'_>) -> Result<Tensor, Stop> {
    let dtype = common_of(&call.operands)?;
    let (left, right) = (call.array(0)?, call.array(1)?);
    let room = &mut *call.room;
    let (left, right) = (cast(&left, dtype, room)?, cast(&right, dtype, room)?);
    let is_number = left.shape().is_empty() || right.shape().is_empty();
    if is_number && call.params.first() == Some(&DOT) {
        return with("multiply", &left, &right, room);
    }
    if is_number {
        return Err(value("an operand has no dimensions: use multiply"));
    }
    // A vector is a row on the left, and a column on the right.
    let (row, column) = (left.shape().len() == 1, right.shape().len() == 1);
    let left = if row { reshaped(&left, &[1, left.shape()[0]])? } else { left };
    let right = if column { reshaped(&right, &[right.shape()[0], 1])? } else { right };
    let product = matrices(&left, &right, dtype, room)?;
    let mut shape = product.shape().to_vec();
    if column {
        shape.pop();
    }
    if row {
        shape.remove(shape.len() - 1 - usize::from(!column));
    }
    reshaped(&product, &shape)
}

fn matrices(
    left: &Tensor,
    right: &Tensor,
    dtype: Dtype,
    room: &mut dyn Room,
) -> Result<Tensor, Stop> {
    let (before_left, [rows, depth]) = split(left.shape());
    let (before_right, [depth_right, columns]) = split(right.shape());
    if depth != depth_right {
        let why = format!("{depth} columns on the left, {depth_right} rows on the right");
        return Err(value(why));
    }
    let before = broadcast(&[before_left, before_right])?;
    let count: usize = before.iter().product();
    let shape: Vec<_> = before.iter().copied().chain([rows, columns]).collect();
    let products = [count, rows, depth, columns].iter().fold(1_usize, |a, b| a.saturating_mul(*b));
    room.touch(products.saturating_add(count.saturating_mul(MATRIX_WORK)))?;
    let place = |own_shape: &[usize], at: usize| place_of(&before, own_shape, at);
    let (size_left, size_right) = (rows * depth, depth * columns);
    let bits = if dtype == Dtype::Bool { Dtype::Uint8 } else { dtype };
    match bits {
        Dtype::Float32 => {
            floats::<f32>([left, right], &shape, [rows, depth, columns], room, |at| {
                [place(before_left, at) * size_left, place(before_right, at) * size_right]
            })
        }
        Dtype::Float64 => {
            floats::<f64>([left, right], &shape, [rows, depth, columns], room, |at| {
                [place(before_left, at) * size_left, place(before_right, at) * size_right]
            })
        }
        _ => with_integer!(bits, T => {
            let (a, b) = (elements::<T>(left)?, elements::<T>(right)?);
            fill(room, dtype, &shape, |out: &mut [T], room| {
                let mut since_asked = 0;
                for (at, out) in out.chunks_exact_mut(rows * columns).enumerate() {
                    let a = &a[place(before_left, at) * size_left..][..size_left];
                    let b = &b[place(before_right, at) * size_right..][..size_right];
                    for (row, out) in out.chunks_exact_mut(columns).enumerate() {
                        out.fill(T::ZERO);
                        for (at, b) in b.chunks_exact(columns).enumerate() {
                            let a = a[row * depth + at];
                            for (out, b) in out.iter_mut().zip(b) {
                                *out = if dtype == Dtype::Bool {
                                    *out | (a & *b)
                                } else {
                                    Element::add(*out, Element::multiply(a, *b))
                                };
                            }
                            since_asked += columns;
                            if since_asked >= ELEMENTS_PER_PART {
                                since_asked = 0;
                                room.go_on()?;
                            }
                        }
                    }
                    since_asked += MATRIX_WORK;
                }
                Ok(())
            })
        }),
    }
}

/// The dimensions before the last two, and these.
fn split(shape: &[usize]) -> (&[usize], [usize; 2]) {
    let (before, last) = shape.split_at(shape.len() - 2);
    (before, [last[0], last[1]])
}

/// The number of an array's matrix that is matrix `at` of the result.
fn place_of(common: &[usize], own_shape: &[usize], at: usize) -> usize {
    let (steps, own_steps) = (steps_of(common), steps_of(own_shape));
    let ahead = common.len() - own_shape.len();
    (0..own_shape.len())
        .filter(|axis| own_shape[*axis] != 1)
        .map(|axis| at / steps[axis + ahead] % common[axis + ahead] * own_steps[axis])
        .sum()
}

fn floats<T: ndarray::LinalgScalar + bytemuck::Pod>(
    [left, right]: [&Tensor; 2],
    shape: &[usize],
    [rows, depth, columns]: [usize; 3],
    room: &mut dyn Room,
    places: impl Fn(usize) -> [usize; 2],
) -> Result<Tensor, Stop> {
    let (dtype, a, b) = (left.dtype(), elements::<T>(left)?, elements::<T>(right)?);
    // The copies that ndarray's kernels make of parts of both matrices.
    room.reserve(1 << 20)?;
    let columns_at_once = (PRODUCTS_PER_PART / depth.max(1)).clamp(1, columns.max(1));
    let rows_at_once = (PRODUCTS_PER_PART / (depth * columns_at_once).max(1)).max(1);
    let misfit = |error: ndarray::ShapeError| value(error.to_string());
    fill(room, dtype, shape, |out: &mut [T], room| {
        for (at, out) in out.chunks_exact_mut(rows * columns).enumerate() {
            let [i, j] = places(at);
            let b = ArrayView2::from_shape((depth, columns), &b[j..j + depth * columns]);
            let b = b.map_err(misfit)?;
            for (out, first) in
                out.chunks_mut(rows_at_once * columns).zip((0..).step_by(rows_at_once))
            {
                let some = out.len() / columns;
                let a = &a[i + first * depth..][..some * depth];
                let a = ArrayView2::from_shape((some, depth), a).map_err(misfit)?;
                let mut out = ArrayViewMut2::from_shape((some, columns), out).map_err(misfit)?;
                for from in (0..columns).step_by(columns_at_once) {
                    let part = Slice::from(from..columns.min(from + columns_at_once));
                    let (b, mut out) =
                        (b.slice_axis(Axis(1), part), out.slice_axis_mut(Axis(1), part));
                    ndarray::linalg::general_mat_mul(T::one(), &a, &b, T::zero(), &mut out);
                    room.go_on()?;
                }
            }
        }
        Ok(())
    })
}
