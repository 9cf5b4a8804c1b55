//! Making arrays within the caller's bounds, and reading their elements.

use bytemuck::Pod;
use gristmill_core::{BufferPool, Dtype, Shape, Tensor};

/// Maximum dimensions of an array.
const DIMENSIONS_MAX: usize = 8;

/// Maximum length of one dimension, and of the product of all that are not 0.
const ELEMENTS_MAX: usize = 1 << 31;

/// The elements that are worked on between two questions whether to go on.
pub(crate) const ELEMENTS_PER_PART: usize = 64 << 10;

/// The caller's bounds on memory and time.
pub trait Room {
    /// The pool for new arrays.
    fn pool(&self) -> &BufferPool;

    /// Count memory of `bytes`, before it is taken.
    ///
    /// # Errors
    /// [`Stop::Host`] if it is too much, [`Stop::Elsewhere`] as for [`touch`](Self::touch).
    fn reserve(&mut self, bytes: usize) -> Result<(), Stop>;

    /// The work is about as long as to copy `bytes`.
    ///
    /// # Errors
    /// [`Stop::Elsewhere`] if the step is to be run again on another thread.
    fn touch(&mut self, bytes: usize) -> Result<(), Stop>;

    /// Whether to go on.
    ///
    /// # Errors
    /// [`Stop::Host`] if not.
    fn go_on(&self) -> Result<(), Stop>;
}

/// Why a step made no array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The program is wrong.
    Fault(Kind, String),
    /// The step is to be run again on another thread.
    Elsewhere,
    /// The caller refused memory or time.
    Host,
}

/// The kind of a fault, as Python names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A value, or a shape, that does not fit.
    Value,
    /// An index out of range.
    Index,
    /// A dtype that the operation does not take.
    Type,
}

/// A fault in a value.
pub(crate) fn value(why: impl Into<String>) -> Stop {
    Stop::Fault(Kind::Value, why.into())
}

/// A fault in a dtype.
pub(crate) fn wrong_type(why: impl Into<String>) -> Stop {
    Stop::Fault(Kind::Type, why.into())
}

/// An index out of range.
pub(crate) fn out_of_range(why: impl Into<String>) -> Stop {
    Stop::Fault(Kind::Index, why.into())
}

/// The elements of an array. `T` is the type of its dtype; a bool is a `u8`.
pub(crate) fn elements<T: Pod>(array: &Tensor) -> Result<&[T], Stop> {
    let bytes = array.as_bytes();
    if bytes.is_empty() {
        return Ok(&[]);
    }
    bytemuck::try_cast_slice(bytes).map_err(|_| value("the elements are not aligned"))
}

/// Check that an array can have so many dimensions.
pub(crate) fn check_rank(count: usize) -> Result<(), Stop> {
    if count <= DIMENSIONS_MAX {
        return Ok(());
    }
    Err(value(format!("{count} dimensions are over the limit of {DIMENSIONS_MAX}")))
}

/// Check that an array can have this shape. Then no product or sum of its dimensions overflows.
pub(crate) fn check_shape(shape: &[usize]) -> Result<(), Stop> {
    check_rank(shape.len())?;
    let product = shape.iter().try_fold(1_usize, |product, dim| {
        product.checked_mul((*dim).max(1)).filter(|product| *product <= ELEMENTS_MAX)
    });
    match product {
        Some(_) => Ok(()),
        None => Err(value(format!("shape {shape:?} is over the limit of {ELEMENTS_MAX} elements"))),
    }
}

/// A new array whose elements `write` writes.
pub(crate) fn fill<T: Pod>(
    room: &mut dyn Room,
    dtype: Dtype,
    shape: &[usize],
    write: impl FnOnce(&mut [T], &dyn Room) -> Result<(), Stop>,
) -> Result<Tensor, Stop> {
    check_shape(shape)?;
    let bytes = Tensor::size_bytes(dtype, shape).map_err(|error| value(error.to_string()))?;
    let bytes = bytes.ok_or_else(|| wrong_type("an array of strings cannot be made"))?;
    room.touch(work(shape))?;
    room.reserve(bytes)?;
    let room = &*room;
    let buffer = room.pool().try_fill(bytes, |target| {
        if target.is_empty() { Ok(()) } else { write(bytemuck::cast_slice_mut(target), room) }
    })?;
    Tensor::new(dtype, Shape::from_slice(shape), buffer).map_err(|error| value(error.to_string()))
}

/// How long it takes to work on an array of this shape, in bytes that are copied: an element takes
/// as long as the largest one, and some take longer.
pub(crate) fn work(shape: &[usize]) -> usize {
    shape.iter().product::<usize>().saturating_mul(8)
}

/// The same elements in another shape of as many. Nothing is copied.
pub(crate) fn reshaped(array: &Tensor, shape: &[usize]) -> Result<Tensor, Stop> {
    check_shape(shape)?;
    array.with_shape(Shape::from_slice(shape)).ok_or_else(|| {
        value(format!("cannot reshape an array of shape {:?} into {shape:?}", array.shape()))
    })
}

/// The same elements along one dimension.
pub(crate) fn flat(array: &Tensor) -> Result<Tensor, Stop> {
    reshaped(array, &[array.shape().iter().product()])
}

/// A tensor whose elements can be read in place, or a copy of it.
///
/// # Errors
/// [`Stop`].
pub fn aligned(array: Tensor, room: &mut dyn Room) -> Result<Tensor, Stop> {
    check_shape(array.shape())?;
    let bytes = array.as_bytes();
    let size = array.dtype().size_bytes().unwrap_or(1);
    if bytes.is_empty() || bytes.as_ptr().addr().is_multiple_of(size) {
        return Ok(array);
    }
    room.reserve(bytes.len())?;
    let copy = room.pool().copy_from(bytes);
    let copy = Tensor::new(array.dtype(), Shape::from_slice(array.shape()), copy);
    copy.map_err(|error| value(error.to_string()))
}

/// The shape of arrays that are broadcast against each other.
pub(crate) fn broadcast(shapes: &[&[usize]]) -> Result<Vec<usize>, Stop> {
    let rank = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    let mut found = vec![1; rank];
    for shape in shapes {
        for (have, want) in found.iter_mut().rev().zip(shape.iter().rev()) {
            match (*have, *want) {
                (have, want) if have == want || want == 1 => {}
                (1, _) => *have = *want,
                _ => {
                    let shapes: Vec<_> = shapes.iter().map(|shape| shown(shape)).collect();
                    let shapes = shapes.join(" ");
                    return Err(value(format!(
                        "operands could not be broadcast together with shapes {shapes}"
                    )));
                }
            }
        }
    }
    check_shape(&found)?;
    Ok(found)
}

/// A shape as NumPy shows it.
pub(crate) fn shown(shape: &[usize]) -> String {
    let dimensions: Vec<_> = shape.iter().map(ToString::to_string).collect();
    let comma = if shape.len() == 1 { "," } else { "" };
    format!("({}{comma})", dimensions.join(","))
}
