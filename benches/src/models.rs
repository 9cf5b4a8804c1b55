//! Models for benchmarks that measure the lane and not the model.

use std::time::Duration;

use gristmill_core::{BufferPool, Dtype, Model, ModelError, ModelInfo, Tensor, TensorInfo};

/// A value that makes [`Doubling`] fail.
pub const POISON: f32 = -1.0;

/// The description of these models: a float tensor with any number of columns in, and one out.
pub fn info() -> ModelInfo {
    let tensor = |name: &str| TensorInfo {
        name: name.into(),
        dtype: Dtype::Float32,
        dims: vec![None, None],
    };
    ModelInfo {
        backend: "bench",
        inputs: vec![tensor("x")],
        outputs: vec![tensor("y")],
        forms_batches: true,
        optional: Vec::new(),
        equal_dims: Vec::new(),
    }
}

/// Returns its input, so that only the lane costs time.
pub struct Identity;

impl Model for Identity {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        Ok(inputs.to_vec())
    }
}

/// Returns its input after a time, during which it leaves the processor free, like a model on an
/// accelerator.
pub struct Paced {
    pub fixed: Duration,
    pub per_row: Duration,
}

impl Model for Paced {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        std::thread::sleep(self.fixed + self.per_row * inputs[0].rows() as u32);
        Ok(inputs.to_vec())
    }
}

impl Paced {
    /// The least time of a batch of `rows`.
    pub fn batch(&self, rows: u32) -> Duration {
        self.fixed + self.per_row * rows
    }
}

/// Doubles its input, and fails if a request in the batch is poison.
pub struct Doubling {
    pub pool: BufferPool,
}

impl Model for Doubling {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        let values = inputs[0].as_f32().ok_or_else(|| ModelError::new("not FP32"))?;
        if values.contains(&POISON) {
            return Err(ModelError::new("poison"));
        }
        let doubled = self.pool.fill(inputs[0].as_bytes().len(), |target| {
            let target: &mut [f32] = bytemuck::cast_slice_mut(target);
            for (target, value) in target.iter_mut().zip(values) {
                *target = value * 2.0;
            }
        });
        let doubled = Tensor::new(Dtype::Float32, inputs[0].shape().into(), doubled);
        Ok(vec![doubled.map_err(|error| ModelError::new(error.to_string()))?])
    }
}
