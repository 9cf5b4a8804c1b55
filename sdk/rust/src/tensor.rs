//! Typed tensors: slices in, slices out.

use std::marker::PhantomData;

use bytemuck::Pod;

use crate::{Dtype, Failure, NamedTensor, Tensor, TensorError};

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that is a tensor's element type.
pub trait Element: Pod + sealed::Sealed {
    /// The element type.
    const DTYPE: Dtype;
}

macro_rules! elements {
    ($($rust:ty = $dtype:ident),* $(,)?) => {$(
        impl sealed::Sealed for $rust {}

        impl Element for $rust {
            const DTYPE: Dtype = Dtype::$dtype;
        }
    )*};
}

elements! {
    u8 = Uint8,
    i8 = Int8,
    u16 = Uint16,
    i16 = Int16,
    u32 = Uint32,
    i32 = Int32,
    u64 = Uint64,
    i64 = Int64,
    f32 = Float32,
    f64 = Float64,
}

impl Tensor {
    /// A tensor of `shape` with these elements, row-major. They are copied once, to the host.
    ///
    /// # Errors
    /// [`TensorError::LengthMismatch`] if the shape needs another number of elements.
    pub fn from_slice<T: Element>(shape: &[usize], elements: &[T]) -> Result<Self, TensorError> {
        let dim = |dim: &usize| {
            let fault = |_| TensorError::TooLarge(format!("dimension {dim} is over 2^32"));
            u32::try_from(*dim).map_err(fault)
        };
        let shape: Vec<u32> = shape.iter().map(dim).collect::<Result<_, _>>()?;
        Self::create(T::DTYPE, &shape, bytemuck::cast_slice(elements))
    }

    /// The elements, copied once, from the host.
    ///
    /// # Errors
    /// [`Failure::Internal`] if the tensor's dtype is not `T`'s.
    pub fn view<T: Element>(&self) -> Result<View<T>, Failure> {
        let dtype = self.dtype();
        if dtype != T::DTYPE {
            let text = format!("tensor is {dtype:?}, wanted {:?}", T::DTYPE);
            return Err(Failure::Internal(text));
        }
        let shape = self.shape().into_iter().map(|dim| dim as usize).collect();
        let mut bytes = self.data();
        if bytemuck::try_cast_slice::<u8, T>(&bytes).is_err() {
            // Without this crate's allocator the bytes may not be aligned.
            let elements: Vec<T> = bytemuck::allocation::pod_collect_to_vec(&bytes);
            return Ok(View { shape, storage: Storage::Elements(elements) });
        }
        bytes.truncate(bytes.len() / size_of::<T>() * size_of::<T>());
        Ok(View { shape, storage: Storage::Bytes(bytes, PhantomData) })
    }
}

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
    /// The dimensions.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// All elements, row-major.
    pub fn as_slice(&self) -> &[T] {
        match &self.storage {
            Storage::Bytes(bytes, _) => bytemuck::cast_slice(bytes),
            Storage::Elements(elements) => elements,
        }
    }

    /// The rows: slices of all dimensions after the first.
    pub fn rows(&self) -> impl Iterator<Item = &[T]> {
        let width = self.shape.iter().skip(1).product::<usize>();
        self.as_slice().chunks_exact(width.max(1))
    }
}

/// This request's rows of the model's outputs.
pub struct Outputs(Vec<NamedTensor>);

impl Outputs {
    #[doc(hidden)]
    pub fn new(outputs: Vec<NamedTensor>) -> Self {
        Self(outputs)
    }

    /// The output of this name.
    ///
    /// # Errors
    /// [`Failure::Internal`] if the model has no such output.
    pub fn get(&self, name: &str) -> Result<&Tensor, Failure> {
        let found = self.0.iter().find(|output| output.name == name);
        found.map(|output| &output.tensor).ok_or_else(|| {
            let names: Vec<_> = self.names().collect();
            Failure::Internal(format!("the model has no output {name:?}, it has {names:?}"))
        })
    }

    /// All outputs with their names, in the model's order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Tensor)> {
        self.0.iter().map(|output| (output.name.as_str(), &output.tensor))
    }

    /// The names of all outputs, in the model's order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(|output| output.name.as_str())
    }

    /// The elements of the output of this name. Its shape must be `shape`, in which `None` means
    /// any size.
    ///
    /// # Errors
    /// [`Failure::Internal`] if the model has no such output, or its dtype or shape differs.
    pub fn view<T: Element>(
        &self,
        name: &str,
        shape: &[Option<usize>],
    ) -> Result<View<T>, Failure> {
        let view = self.get(name)?.view::<T>()?;
        let fits = view.shape.len() == shape.len()
            && shape
                .iter()
                .zip(&view.shape)
                .all(|(want, have)| want.is_none_or(|want| want == *have));
        if fits {
            return Ok(view);
        }
        Err(Failure::Internal(format!(
            "output {name:?} has shape {:?}, wanted {shape:?}",
            view.shape
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::Outputs;
    use crate::{NamedTensor, Tensor};

    #[test]
    fn outputs_are_listed_in_their_order() {
        let output = |(handle, name): (u32, &str)| {
            // SAFETY: the test makes no call with the handle. The tensor is forgotten below, so it
            // is not dropped, which would call the host.
            let tensor = unsafe { Tensor::from_handle(handle) };
            NamedTensor { name: name.into(), tensor }
        };
        let outputs = Outputs::new([(1, "scores"), (2, "boxes")].map(output).into());
        assert_eq!(outputs.names().collect::<Vec<_>>(), ["scores", "boxes"]);
        let listed: Vec<_> = outputs.iter().map(|(name, tensor)| (name, tensor.handle())).collect();
        assert_eq!(listed, [("scores", 1), ("boxes", 2)]);
        assert_eq!(outputs.get("boxes").map(Tensor::handle).ok(), Some(2));
        let missing = outputs.get("labels").err().unwrap();
        assert!(
            format!("{missing:?}").contains(r#"it has [\"scores\", \"boxes\"]"#),
            "{missing:?}"
        );
        std::mem::forget(outputs);
    }
}
