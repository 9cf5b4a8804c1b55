//! The resources of `wasi:nn`, without its types.

use std::sync::Arc;

use bytes::Bytes;
use gristmill_core::{Buffer, Dtype, Shape, Tensor, TensorError};

use crate::capability::tensors::DIMENSIONS_MAX;
use crate::model_runs::RunFaultKind;

/// The memory of a resource beside its data and its texts.
pub(super) const RESOURCE_BYTES: usize = 1 << 10;

/// A model that the pipeline names.
pub struct Graph {
    pub(super) model: String,
}

/// The same model, to be run.
pub struct ExecutionContext {
    pub(super) model: String,
}

/// An error that a guest can look at.
pub struct Error {
    pub(super) kind: ErrorKind,
    pub(super) data: String,
}

#[derive(Clone, Copy)]
pub(super) enum ErrorKind {
    Unsupported,
    Run(RunFaultKind),
}

/// A tensor of a guest, or one that a model gave.
pub struct NnTensor {
    dtype: Dtype,
    data: Data,
}

enum Data {
    Fitting(Tensor),
    Unfit {
        dimensions: Vec<u32>,
        /// The data, as so many numbers of one byte.
        bytes: Tensor,
        why: String,
    },
}

impl NnTensor {
    /// A tensor that a guest makes.
    pub(super) fn given(
        dimensions: Vec<u32>,
        dtype: Dtype,
        buffer: Arc<Buffer>,
    ) -> Result<Self, TensorError> {
        let data = match fitting(&dimensions, dtype, &buffer) {
            Ok(tensor) => Data::Fitting(tensor),
            Err(why) => {
                let shape = std::iter::once(buffer.as_bytes().len()).collect();
                Data::Unfit { dimensions, bytes: Tensor::new(Dtype::Uint8, shape, buffer)?, why }
            }
        };
        Ok(Self { dtype, data })
    }

    /// An output of a model.
    pub(super) fn of_model(tensor: Tensor) -> Self {
        Self { dtype: tensor.dtype(), data: Data::Fitting(tensor) }
    }

    pub(super) fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The tensor for a model.
    ///
    /// # Errors
    /// Why the data are not those of a tensor.
    pub(super) fn into_tensor(self) -> Result<Tensor, String> {
        match self.data {
            Data::Fitting(tensor) => Ok(tensor),
            Data::Unfit { why, .. } => Err(why),
        }
    }

    pub(super) fn dimensions(&self) -> Vec<u32> {
        match &self.data {
            Data::Fitting(tensor) => tensor.shape().iter().map(|dim| *dim as u32).collect(),
            Data::Unfit { dimensions, .. } => dimensions.clone(),
        }
    }

    pub(super) fn dimensions_bytes(&self) -> usize {
        let count = match &self.data {
            Data::Fitting(tensor) => tensor.shape().len(),
            Data::Unfit { dimensions, .. } => dimensions.len(),
        };
        count * size_of::<u32>()
    }

    pub(super) fn bytes(&self) -> Bytes {
        let (Data::Fitting(tensor) | Data::Unfit { bytes: tensor, .. }) = &self.data;
        Bytes::from_owner(tensor.clone())
    }
}

/// The tensor, or why the data are not those of one.
fn fitting(dimensions: &[u32], dtype: Dtype, buffer: &Arc<Buffer>) -> Result<Tensor, String> {
    if dimensions.len() > DIMENSIONS_MAX {
        let count = dimensions.len();
        return Err(format!("{count} dimensions are over the limit of {DIMENSIONS_MAX}"));
    }
    let shape: Shape = dimensions.iter().map(|dim| *dim as usize).collect();
    Tensor::new(dtype, shape, buffer.clone()).map_err(|error| match error {
        TensorError::Length { expected, actual } => format!(
            "the dimensions {dimensions:?} of {dtype} need {expected} bytes, but the data has \
             {actual}"
        ),
        error => error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use gristmill_core::BufferPool;

    use super::*;

    #[test]
    fn data_that_do_not_fit_are_told_of_when_they_are_used() {
        let given_tensor = |dimensions: &[u32], dtype, bytes: &[u8]| {
            let buffer = BufferPool::new(0).copy_from(bytes);
            NnTensor::given(dimensions.to_vec(), dtype, buffer).unwrap()
        };
        let tensor = given_tensor(&[2, 1], Dtype::Float16, &[1, 2, 3, 4]);
        assert_eq!((tensor.dimensions(), &tensor.bytes()[..]), (vec![2, 1], &[1, 2, 3, 4][..]));
        assert_eq!(tensor.into_tensor().unwrap().dtype(), Dtype::Float16);

        let unfit = given_tensor(&[2, 1], Dtype::Float32, &[1, 2, 3]);
        assert_eq!((unfit.dimensions(), &unfit.bytes()[..]), (vec![2, 1], &[1, 2, 3][..]));
        let why = "the dimensions [2, 1] of FP32 need 8 bytes, but the data has 3";
        assert_eq!(unfit.into_tensor().unwrap_err(), why);
        let huge = given_tensor(&[u32::MAX; 3], Dtype::Int64, &[]);
        assert!(huge.into_tensor().unwrap_err().contains("overflows"));
        let deep = given_tensor(&[1; 33], Dtype::Uint8, &[0]);
        let why = "33 dimensions are over the limit of 32";
        assert_eq!(deep.into_tensor().unwrap_err(), why);
    }
}
