//! `tensors`: made from a guest's memory with one copy, read into it with one more.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use gristmill_core::{Buffer, BufferPool, Dtype, Tensor, TensorError};
use wasmtime::StoreContextMut;
use wasmtime::component::{HasSelf, Linker, Resource, WasmList};

use super::{ELEMENTS_PER_PART, window};
use crate::bindings::tensors::{self as wit, Host, HostTensor, LengthMismatch, Scored};
use crate::call::CallState;
use crate::meter::CpuExhausted;

/// Dimensions of a tensor.
const DIMENSIONS_MAX: usize = 32;

type Created = Result<Resource<Tensor>, wit::TensorError>;

/// `create` is linked by hand, over the generated one: it reads the guest's memory in place, where
/// the generated one would copy it into a `Vec` first.
pub(super) fn link(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
    type Params = (wit::Dtype, WasmList<u32>, WasmList<u8>);
    linker.allow_shadowing(true);
    linker.instance("gristmill:plugin/tensors@0.1.0")?.func_wrap_async(
        "[static]tensor.create",
        |mut store: StoreContextMut<'_, CallState>, (dtype, shape, data): Params| {
            Box::new(async move {
                let state = store.data_mut();
                if let Err(error) = state.admit_tensor(shape.len(), data.len()).await? {
                    return Ok((Err(error),));
                }
                let shape: Vec<u32> = shape.as_le_slice(&store).to_vec();
                let buffer = store.data().pool.copy_from(data.as_le_slice(&store));
                store.data_mut().finish_tensor(dtype, &shape, buffer).map(|created| (created,))
            })
        },
    )?;
    linker.allow_shadowing(false);
    Ok(())
}

impl CallState {
    /// Hold a new tensor of `dimensions` dimensions and `bytes` bytes against the limits.
    async fn admit_tensor(
        &mut self,
        dimensions: usize,
        bytes: usize,
    ) -> wasmtime::Result<Result<(), wit::TensorError>> {
        if dimensions > DIMENSIONS_MAX {
            let message = format!("{dimensions} dimensions are over the limit of {DIMENSIONS_MAX}");
            return Ok(Err(wit::TensorError::TooLarge(message)));
        }
        let limit = self.limits.tensor_bytes;
        if bytes > limit {
            let message = format!("{bytes} bytes are over the limit of {limit} for one tensor");
            return Ok(Err(wit::TensorError::TooLarge(message)));
        }
        self.before_looking_at(bytes).await?;
        self.hold(BufferPool::bytes_taken(bytes))?;
        Ok(Ok(()))
    }

    fn finish_tensor(
        &mut self,
        dtype: wit::Dtype,
        shape: &[u32],
        buffer: Arc<Buffer>,
    ) -> wasmtime::Result<Created> {
        let shape = shape.iter().map(|dim| *dim as usize).collect();
        match Tensor::new(from_wit(dtype), shape, buffer) {
            Ok(tensor) => Ok(Ok(self.table.push(tensor)?)),
            Err(TensorError::Length { expected, actual }) => {
                let (expected, actual) = (expected as u64, actual as u64);
                Ok(Err(wit::TensorError::LengthMismatch(LengthMismatch { expected, actual })))
            }
            Err(error @ TensorError::Overflow(_)) => {
                Ok(Err(wit::TensorError::TooLarge(error.to_string())))
            }
            Err(error @ TensorError::Element(_)) => {
                Ok(Err(wit::TensorError::InvalidElement(error.to_string())))
            }
        }
    }

    /// The tensor, once the call is where so many of its bytes may be looked at.
    async fn inspected(&mut self, tensor: &Resource<Tensor>) -> wasmtime::Result<Tensor> {
        let tensor = self.table.get(tensor)?.clone();
        self.before_looking_at(tensor.as_bytes().len()).await?;
        Ok(tensor)
    }
}

impl Host for CallState {}

impl HostTensor for CallState {
    async fn create(
        &mut self,
        dtype: wit::Dtype,
        shape: Vec<u32>,
        data: Vec<u8>,
    ) -> wasmtime::Result<Created> {
        if let Err(error) = self.admit_tensor(shape.len(), data.len()).await? {
            return Ok(Err(error));
        }
        let buffer = self.pool.copy_from(&data);
        self.finish_tensor(dtype, &shape, buffer)
    }

    fn dtype(&mut self, tensor: Resource<Tensor>) -> wasmtime::Result<wit::Dtype> {
        Ok(to_wit(self.table.get(&tensor)?.dtype()))
    }

    fn shape(&mut self, tensor: Resource<Tensor>) -> wasmtime::Result<Vec<u32>> {
        Ok(self.table.get(&tensor)?.shape().iter().map(|dim| *dim as u32).collect())
    }

    async fn data(&mut self, tensor: Resource<Tensor>) -> wasmtime::Result<Vec<u8>> {
        let tensor = self.table.get(&tensor)?.clone();
        self.before_copying(tensor.as_bytes().len()).await?;
        Ok(tensor.as_bytes().to_vec())
    }

    async fn read(
        &mut self,
        tensor: Resource<Tensor>,
        offset: u64,
        length: u64,
    ) -> wasmtime::Result<Vec<u8>> {
        let tensor = self.table.get(&tensor)?.clone();
        let range = window(tensor.as_bytes(), offset, length);
        self.before_copying(range.len()).await?;
        Ok(tensor.as_bytes()[range].to_vec())
    }

    async fn argmax(&mut self, tensor: Resource<Tensor>) -> wasmtime::Result<Vec<Scored>> {
        let tensor = self.inspected(&tensor).await?;
        let Some((values, width)) = rows_of(&tensor) else { return Ok(Vec::new()) };
        self.before_copying(tensor.rows() * size_of::<Scored>()).await?;
        let mut found = Vec::with_capacity(tensor.rows());
        let mut seen = 0;
        for row in values.chunks_exact(width) {
            let mut best = Scored { index: 0, value: row[0] };
            for (part, values) in row.chunks(ELEMENTS_PER_PART).enumerate() {
                for (index, value) in values.iter().enumerate() {
                    if *value > best.value {
                        let index = (part * ELEMENTS_PER_PART + index) as u32;
                        best = Scored { index, value: *value };
                    }
                }
                seen += values.len();
                if seen >= ELEMENTS_PER_PART {
                    seen = 0;
                    self.may_go_on()?;
                }
            }
            found.push(best);
        }
        Ok(found)
    }

    async fn top_k(
        &mut self,
        tensor: Resource<Tensor>,
        row: u32,
        k: u32,
    ) -> wasmtime::Result<Vec<Scored>> {
        let tensor = self.inspected(&tensor).await?;
        let Some((values, width)) = rows_of(&tensor) else { return Ok(Vec::new()) };
        let Some(row) = values.chunks_exact(width).nth(row as usize) else { return Ok(Vec::new()) };
        let k = (k as usize).min(width);
        // The heap that selects, and the list that is returned.
        self.before_copying(k * 2 * size_of::<Scored>()).await?;
        Ok(largest(row, k, || self.may_go_on())?)
    }

    async fn softmax(
        &mut self,
        tensor: Resource<Tensor>,
    ) -> wasmtime::Result<Option<Resource<Tensor>>> {
        let tensor = self.inspected(&tensor).await?;
        let Some((values, width)) = rows_of(&tensor) else { return Ok(None) };
        self.hold(BufferPool::bytes_taken(tensor.as_bytes().len()))?;
        let buffer = self.pool.try_fill(tensor.as_bytes().len(), |bytes| {
            let target: &mut [f32] = bytemuck::cast_slice_mut(bytes);
            let mut seen = 0;
            for (row, target) in values.chunks_exact(width).zip(target.chunks_exact_mut(width)) {
                seen += row.len();
                if seen >= ELEMENTS_PER_PART {
                    seen = 0;
                    self.may_go_on()?;
                }
                softmax(row, target, || self.may_go_on())?;
            }
            Ok::<_, CpuExhausted>(())
        })?;
        let softened = Tensor::new(Dtype::Float32, tensor.shape().into(), buffer)?;
        Ok(Some(self.table.push(softened)?))
    }

    fn drop(&mut self, tensor: Resource<Tensor>) -> wasmtime::Result<()> {
        self.table.delete(tensor)?;
        Ok(())
    }
}

/// The values and the length of a row; none where there is nothing to look at.
fn rows_of(tensor: &Tensor) -> Option<(&[f32], usize)> {
    let values = tensor.as_f32()?;
    let width = values.len().checked_div(tensor.rows())?;
    (width > 0).then_some((values, width))
}

/// A value by rank: a larger value is greater, of equal ones that with the smaller index.
struct Ranked(f32, Reverse<u32>);

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0).then(self.1.cmp(&other.1))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Eq for Ranked {}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

/// The `k` largest values, largest first, in time of order n log k. `may_go_on` is asked between
/// parts.
fn largest<E>(
    row: &[f32],
    k: usize,
    may_go_on: impl Fn() -> Result<(), E>,
) -> Result<Vec<Scored>, E> {
    let mut kept = BinaryHeap::with_capacity(k);
    for (part, values) in row.chunks(ELEMENTS_PER_PART).enumerate() {
        for (index, value) in values.iter().enumerate() {
            let ranked = Ranked(*value, Reverse((part * ELEMENTS_PER_PART + index) as u32));
            if kept.len() < k {
                kept.push(Reverse(ranked));
            } else if let Some(mut least) = kept.peek_mut()
                && ranked > least.0
            {
                *least = Reverse(ranked);
            }
        }
        may_go_on()?;
    }
    let mut scored = Vec::with_capacity(kept.len());
    while let Some(Reverse(Ranked(value, Reverse(index)))) = kept.pop() {
        scored.push(Scored { index, value });
        if scored.len().is_multiple_of(ELEMENTS_PER_PART) {
            may_go_on()?;
        }
    }
    scored.reverse();
    Ok(scored)
}

fn softmax<E>(
    row: &[f32],
    target: &mut [f32],
    may_go_on: impl Fn() -> Result<(), E>,
) -> Result<(), E> {
    let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    let parts = row.chunks(ELEMENTS_PER_PART).zip(target.chunks_mut(ELEMENTS_PER_PART));
    for (index, (values, target)) in parts.enumerate() {
        if index > 0 {
            may_go_on()?;
        }
        for (value, target) in values.iter().zip(&mut *target) {
            *target = (value - largest).exp();
        }
        sum += target.iter().sum::<f32>();
    }
    for value in target {
        *value /= sum;
    }
    Ok(())
}

/// Both ways between the contract's dtypes and core's, from one list.
macro_rules! dtypes {
    ($($wit:ident = $core:ident),* $(,)?) => {
        pub(super) fn from_wit(dtype: wit::Dtype) -> Dtype {
            match dtype { $(wit::Dtype::$wit => Dtype::$core),* }
        }

        fn to_wit(dtype: Dtype) -> wit::Dtype {
            match dtype { $(Dtype::$core => wit::Dtype::$wit),* }
        }
    };
}

dtypes! {
    Bool = Bool,
    Uint8 = Uint8,
    Int8 = Int8,
    Uint16 = Uint16,
    Int16 = Int16,
    Uint32 = Uint32,
    Int32 = Int32,
    Uint64 = Uint64,
    Int64 = Int64,
    Float16 = Float16,
    Bfloat16 = Bfloat16,
    Float32 = Float32,
    Float64 = Float64,
    String = String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn go_on() -> Result<(), CpuExhausted> {
        Ok(())
    }

    fn pairs(scored: Vec<Scored>) -> Vec<(u32, f32)> {
        scored.into_iter().map(|scored| (scored.index, scored.value)).collect()
    }

    #[test]
    fn the_largest_come_first_and_of_equals_the_first() {
        let row = [1.0, 3.0, 2.0, 3.0, -1.0];
        let found = pairs(largest(&row, 3, go_on).unwrap());
        assert_eq!(found, [(1, 3.0), (3, 3.0), (2, 2.0)]);
        assert_eq!(pairs(largest(&row, 5, go_on).unwrap()).last(), Some(&(4, -1.0)));
        assert!(largest(&row, 0, go_on).unwrap().is_empty());
    }

    #[test]
    fn selecting_agrees_with_sorting() {
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as f32
        };
        let row: Vec<f32> = (0..200_000).map(|_| next()).collect();
        let mut sorted: Vec<(u32, f32)> =
            row.iter().enumerate().map(|(index, value)| (index as u32, *value)).collect();
        sorted.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        for k in [1, 10, 70_000, row.len()] {
            assert_eq!(pairs(largest(&row, k, go_on).unwrap()), sorted[..k]);
        }
    }

    #[test]
    fn work_in_parts_stops_when_it_may_not_go_on() {
        let row = vec![0.0; 4 * ELEMENTS_PER_PART];
        let asked = std::cell::Cell::new(0);
        let twice = || {
            asked.set(asked.get() + 1);
            if asked.get() > 2 { Err(CpuExhausted) } else { Ok(()) }
        };
        assert!(largest(&row, 10, twice).is_err());
        asked.set(0);
        assert!(softmax(&row, &mut row.clone(), twice).is_err());
        assert_eq!(asked.get(), 3);
    }

    #[test]
    fn softmax_sums_to_one_over_parts() {
        let row: Vec<f32> = (0..2 * ELEMENTS_PER_PART + 7).map(|i| (i % 5) as f32).collect();
        let mut target = vec![0.0; row.len()];
        softmax(&row, &mut target, go_on).unwrap();
        assert!((target.iter().sum::<f32>() - 1.0).abs() < 1e-3);
        assert!(target[4] > target[3]);
    }
}
