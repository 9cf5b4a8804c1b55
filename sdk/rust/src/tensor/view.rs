//! A tensor's elements in the plugin's memory.

use std::marker::PhantomData;

use bytemuck::checked;

use super::Element;

enum Storage<T> {
    /// Known to be aligned for `T`.
    Bytes(Vec<u8>, PhantomData<T>),
    Elements(Vec<T>),
}

/// A tensor's elements in the plugin's memory.
pub struct View<T> {
    shape: Vec<usize>,
    storage: Storage<T>,
}

impl<T: Element> View<T> {
    /// `bytes` are elements of `T`: the host checked them.
    pub(super) fn new(shape: Vec<usize>, bytes: Vec<u8>) -> Self {
        if checked::try_cast_slice::<u8, T>(&bytes).is_ok() {
            return Self { shape, storage: Storage::Bytes(bytes, PhantomData) };
        }
        // Without this crate's allocator the bytes may not be aligned.
        let elements = bytes.chunks_exact(size_of::<T>()).map(checked::pod_read_unaligned);
        Self { shape, storage: Storage::Elements(elements.collect()) }
    }

    /// The dimensions.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// All elements, row-major.
    pub fn as_slice(&self) -> &[T] {
        match &self.storage {
            Storage::Bytes(bytes, _) => checked::cast_slice(bytes),
            Storage::Elements(elements) => elements,
        }
    }

    /// The rows: slices of all dimensions after the first.
    pub fn rows(&self) -> impl Iterator<Item = &[T]> {
        let width = self.shape.iter().skip(1).product::<usize>();
        self.as_slice().chunks_exact(width.max(1))
    }
}
