//! Filling a dimension of tensors up, and cutting it back.

use super::{Shape, Tensor, TensorError};
use crate::dtype::Dtype;
use crate::pool::BufferPool;

/// How a dimension is filled up.
#[derive(Clone, Copy, Debug)]
pub struct Fill<'a> {
    /// The dimension, from 1.
    pub axis: usize,
    /// The size to which it is filled up.
    pub size: usize,
    /// The bytes of the element that fills it.
    pub element: &'a [u8],
}

impl Tensor {
    /// A tensor of the rows of all `parts`, one part after the other, each filled up as `fill`
    /// says. The parts must agree in dtype and in every dimension but the first and the filled one,
    /// and have no texts and no dimension of 0.
    ///
    /// # Errors
    /// [`TensorError::UnlikeParts`] if the parts do not agree or do not fit;
    /// [`TensorError::NoParts`] if there is none; [`TensorError::Overflow`] if the tensor would be
    /// too large.
    pub fn stack_filled<'a>(
        pool: &BufferPool,
        parts: impl Iterator<Item = &'a Self> + Clone,
        Fill { axis, size, element }: Fill<'_>,
    ) -> Result<Self, TensorError> {
        let Some(first) = parts.clone().next() else {
            return Err(TensorError::NoParts);
        };
        let dtype = first.dtype;
        if axis == 0 || axis >= first.shape.len() || dtype.size_bytes() != Some(element.len()) {
            return Err(TensorError::UnlikeParts);
        }
        let mut shape = first.shape.clone();
        (shape[0], shape[axis]) = (parts.clone().map(Self::rows).sum::<usize>(), size);
        let fits = |part: &Self| {
            let has_dim = |(at, (dim, expected)): (usize, (&usize, &usize))| match at {
                0 => *dim > 0,
                at if at == axis => (1..=*expected).contains(dim),
                _ => *dim > 0 && dim == expected,
            };
            part.dtype == dtype
                && part.shape.len() == shape.len()
                && part.shape.iter().zip(&shape).enumerate().all(has_dim)
        };
        if !parts.clone().all(fits) {
            return Err(TensorError::UnlikeParts);
        }
        let len = Self::size_bytes(dtype, &shape)?.unwrap_or_default();
        let inner = shape[axis + 1..].iter().product::<usize>() * element.len();
        let is_zero = element.iter().all(|byte| *byte == 0);
        let mut buffer = pool.begin(len);
        for part in parts {
            let (filled, gap) = (part.shape[axis] * inner, (size - part.shape[axis]) * inner);
            for elements in part.as_bytes().chunks_exact(filled) {
                buffer.append(elements);
                let rest = buffer.append_zeros(gap);
                if !is_zero {
                    rest.chunks_exact_mut(element.len())
                        .for_each(|place| place.copy_from_slice(element));
                }
            }
        }
        Ok(Self { dtype, shape, buffer: buffer.freeze(), bytes: 0..len })
    }

    /// The first `size` places of the dimension `axis`. They share this tensor's buffer if they lie
    /// together; else they are copied. None if the dimension is not that long, or of texts.
    pub fn cut(&self, pool: &BufferPool, axis: usize, size: usize) -> Option<Self> {
        let before = *self.shape.get(axis)?;
        if size == before {
            return Some(self.clone());
        }
        let element_bytes = self.dtype.size_bytes()?;
        if size > before || self.dtype == Dtype::String {
            return None;
        }
        let inner = self.shape[axis + 1..].iter().product::<usize>() * element_bytes;
        let (whole, part) = (before * inner, size * inner);
        let outer: usize = self.shape[..axis].iter().product();
        let mut shape: Shape = self.shape.clone();
        shape[axis] = size;
        if outer == 1 {
            let bytes = self.bytes.start..self.bytes.start + part;
            return Some(Self { dtype: self.dtype, shape, buffer: self.buffer.clone(), bytes });
        }
        let len = outer * part;
        let mut buffer = pool.begin(len);
        if part > 0 {
            self.as_bytes()
                .chunks_exact(whole)
                .for_each(|elements| buffer.append(&elements[..part]));
        }
        Some(Self { dtype: self.dtype, shape, buffer: buffer.freeze(), bytes: 0..len })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(pool: &BufferPool, shape: &[usize]) -> Tensor {
        let count: usize = shape.iter().product();
        let bytes: Vec<u8> = (0..count).map(|at| at as u8).collect();
        Tensor::new(Dtype::Uint8, shape.into(), pool.copy_from(&bytes)).unwrap()
    }

    #[test]
    fn rows_of_different_lengths_are_filled_up() {
        let pool = BufferPool::new(1 << 20);
        let (short, long) = (bytes(&pool, &[2, 1]), bytes(&pool, &[1, 3]));
        let fill = Fill { axis: 1, size: 4, element: &[9] };
        let both = Tensor::stack_filled(&pool, [&short, &long].into_iter(), fill).unwrap();
        assert_eq!(both.shape(), [3, 4]);
        assert_eq!(both.as_bytes(), [0, 9, 9, 9, 1, 9, 9, 9, 0, 1, 2, 9]);
        let second = both.slice_rows(1..2).unwrap();
        assert_eq!(second.cut(&pool, 1, 1).unwrap().as_bytes(), [1]);
        assert_eq!(both.cut(&pool, 1, 2).unwrap().as_bytes(), [0, 9, 1, 9, 0, 1]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let pool = BufferPool::new(0);
        let stack = |parts: &[&Tensor], fill: Fill<'_>| {
            Tensor::stack_filled(&pool, parts.iter().copied(), fill).map(drop)
        };
        let (part, long) = (bytes(&pool, &[1, 3]), bytes(&pool, &[1, 5]));
        let (deep, empty) = (bytes(&pool, &[1, 3, 2]), bytes(&pool, &[1, 0]));
        let fill = Fill { axis: 1, size: 4, element: &[0] };
        assert_eq!(stack(&[], fill), Err(TensorError::NoParts));
        for parts in [&[&part, &long][..], &[&part, &deep], &[&empty]] {
            assert_eq!(stack(parts, fill), Err(TensorError::UnlikeParts));
        }
        for fill in
            [Fill { axis: 0, ..fill }, Fill { axis: 2, ..fill }, Fill { element: &[0; 4], ..fill }]
        {
            assert_eq!(stack(&[&part], fill), Err(TensorError::UnlikeParts));
        }
        let two = bytes(&pool, &[2, 3]);
        let large = stack(&[&two], Fill { size: usize::MAX, ..fill });
        assert!(matches!(large, Err(TensorError::Overflow(_))), "{large:?}");
        assert!(part.cut(&pool, 1, 4).is_none() && part.cut(&pool, 2, 1).is_none());
        let texts = Tensor::from_strings(&pool, [1, 2].as_slice().into(), &["a", "b"]).unwrap();
        assert!(texts.cut(&pool, 1, 1).is_none());
    }

    proptest! {
        /// Each part comes out as it went in, along any dimension.
        #[test]
        fn filled_parts_are_cut_back(
            sizes in prop::collection::vec((1..4_usize, 1..6_usize), 1..5),
            axis in 1..3_usize,
            other in 1..4_usize,
        ) {
            let pool = BufferPool::new(1 << 20);
            let shape = |rows: usize, size: usize| {
                let mut shape = [rows, other, other];
                shape[axis] = size;
                shape
            };
            let parts: Vec<_> =
                sizes.iter().map(|(rows, size)| bytes(&pool, &shape(*rows, *size))).collect();
            let fill = Fill { axis, size: 6, element: &[7] };
            let whole = Tensor::stack_filled(&pool, parts.iter(), fill).unwrap();
            let mut start = 0;
            for (part, (rows, size)) in parts.iter().zip(&sizes) {
                let rows = whole.slice_rows(start..start + rows).unwrap();
                start += rows.rows();
                let cut = rows.cut(&pool, axis, *size).unwrap();
                prop_assert_eq!(cut.shape(), part.shape());
                prop_assert_eq!(cut.as_bytes(), part.as_bytes());
            }
        }
    }
}
