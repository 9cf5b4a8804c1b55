//! Tensors of the tokens of texts: rows of one length, with padding.

use gristmill_core::{BufferPool, Dtype, Shape, Tensor, TensorError};
pub(super) use gristmill_text::Encoded as Row;

/// Rows of one length.
pub(super) struct Grid<'a> {
    pub(super) rows: &'a [Row],
    /// At least that of the longest row.
    pub(super) length: usize,
    pub(super) pad_left: bool,
    /// `int64` or `int32`.
    pub(super) dtype: Dtype,
}

impl Grid<'_> {
    /// The bytes of a tensor with one element for each token.
    pub(super) fn bytes(&self) -> usize {
        let elements = self.rows.len().saturating_mul(self.length);
        elements.saturating_mul(self.element_bytes())
    }

    fn element_bytes(&self) -> usize {
        self.dtype.size_bytes().unwrap_or(size_of::<i64>())
    }

    /// A tensor of one element for each token, and `pad` for padding.
    pub(super) fn tensor(
        &self,
        pool: &BufferPool,
        pad: i64,
        element: impl Fn(&Row, usize) -> i64,
    ) -> Result<Tensor, TensorError> {
        let elements = self.rows.iter().flat_map(|row| {
            let (start, element) = (self.start(row), &element);
            (0..self.length).map(move |at| match at.checked_sub(start) {
                Some(at) if at < row.ids.len() => element(row, at),
                _ => pad,
            })
        });
        self.made(pool, [self.rows.len(), self.length].as_slice().into(), elements)
    }

    /// A tensor of where each token begins and ends.
    pub(super) fn offsets(&self, pool: &BufferPool) -> Result<Tensor, TensorError> {
        let elements = self.rows.iter().flat_map(|row| {
            let start = self.start(row);
            (0..self.length).flat_map(move |at| {
                let offset = at.checked_sub(start).and_then(|at| row.offsets.get(at));
                let (begin, end) = offset.copied().unwrap_or_default();
                [i64::from(begin), i64::from(end)]
            })
        });
        self.made(pool, [self.rows.len(), self.length, 2].as_slice().into(), elements)
    }

    /// Where the tokens of a row begin.
    fn start(&self, row: &Row) -> usize {
        if self.pad_left { self.length - row.ids.len() } else { 0 }
    }

    fn made(
        &self,
        pool: &BufferPool,
        shape: Shape,
        elements: impl Iterator<Item = i64>,
    ) -> Result<Tensor, TensorError> {
        let count: usize = shape.iter().product();
        let mut buffer = pool.begin(count * self.element_bytes());
        match self.dtype {
            Dtype::Int32 => buffer.extend(elements.map(|element| element as i32)),
            _ => buffer.extend(elements),
        }
        Tensor::new(self.dtype, shape, buffer.freeze())
    }
}
