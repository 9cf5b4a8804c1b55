//! Contract 0.1 for plugins that were built for it: its functions, which are functions of 0.2 under
//! another name.
//!
//! An adapter. The types of 0.1 are those of 0.2, apart from `tensor-error`, which has a case less,
//! and the record `request` (`worlds::v0_1`).

use bytes::Bytes;
use gristmill_core::Tensor;
use gristmill_imaging::Pixels;
use wasmtime::component::{
    ComponentType, Lift, Linker, LinkerInstance, Lower, Resource, ResourceType,
};

use super::image::wit::{self as image, HostPixels};
use super::log;
use super::methods::link_methods;
use super::tensors::link_create;
use super::tensors::wit::{self as tensors, HostTensor};
use super::types::wit::HostBlob;
use crate::call::CallState;

const LOG: &str = "gristmill:plugin/log@0.1.0";
const TYPES: &str = "gristmill:plugin/types@0.1.0";
const TENSORS: &str = "gristmill:plugin/tensors@0.1.0";
const IMAGE: &str = "gristmill:plugin/image@0.1.0";
const PREPARE: &str = "gristmill:plugin/prepare@0.1.0";

/// The interfaces that it links.
pub(crate) const INTERFACES: &[&str] = &[TYPES, TENSORS, IMAGE, LOG, PREPARE];

/// The variant `tensor-error` of 0.1.
#[derive(ComponentType, Lift, Lower)]
#[component(variant)]
enum TensorError {
    #[component(name = "length-mismatch")]
    LengthMismatch(tensors::LengthMismatch),
    #[component(name = "too-large")]
    TooLarge(String),
    #[component(name = "invalid-element")]
    InvalidElement(String),
}

impl From<tensors::TensorError> for TensorError {
    fn from(error: tensors::TensorError) -> Self {
        match error {
            tensors::TensorError::LengthMismatch(lengths) => Self::LengthMismatch(lengths),
            tensors::TensorError::TooLarge(text) => Self::TooLarge(text),
            tensors::TensorError::InvalidElement(text)
            | tensors::TensorError::InvalidArgument(text) => Self::InvalidElement(text),
        }
    }
}

pub(crate) fn link<S>(linker: &mut Linker<CallState<S>>) -> wasmtime::Result<()>
where
    S: AsMut<log::State> + Send + 'static,
{
    log::link_as(LOG, linker)?;
    // It has no functions.
    linker.instance(PREPARE)?;
    let mut types = linker.instance(TYPES)?;
    resource::<S, Bytes>(&mut types, "blob")?;
    link_methods! { types,
        sync "[method]blob.len" = HostBlob::len, (blob: Resource<Bytes>);
        async "[method]blob.read" = CallState::lend_blob,
            (blob: Resource<Bytes>, offset: u64, length: u64);
    }
    let mut instance = linker.instance(TENSORS)?;
    resource::<S, Tensor>(&mut instance, "tensor")?;
    link_create::<S, TensorError>(&mut instance)?;
    link_methods! { instance,
        sync "[method]tensor.dtype" = HostTensor::dtype, (tensor: Resource<Tensor>);
        sync "[method]tensor.shape" = HostTensor::shape, (tensor: Resource<Tensor>);
        async "[method]tensor.data" = CallState::lend_tensor, (tensor: Resource<Tensor>);
        async "[method]tensor.read" = CallState::lend_part,
            (tensor: Resource<Tensor>, offset: u64, length: u64);
        async "[method]tensor.argmax" = HostTensor::argmax, (tensor: Resource<Tensor>);
        async "[method]tensor.top-k" = HostTensor::top_k,
            (tensor: Resource<Tensor>, row: u32, k: u32);
        async "[method]tensor.softmax" = HostTensor::softmax, (tensor: Resource<Tensor>);
    }
    let mut instance = linker.instance(IMAGE)?;
    resource::<S, Pixels>(&mut instance, "pixels")?;
    link_methods! { instance,
        async "[static]pixels.decode" = HostPixels::decode,
            (data: Resource<Bytes>, options: image::DecodeOptions);
        async "[static]pixels.decode-leniently" = HostPixels::decode_leniently,
            (data: Resource<Bytes>, options: image::DecodeOptions);
        sync "[method]pixels.width" = HostPixels::width, (pixels: Resource<Pixels>);
        sync "[method]pixels.height" = HostPixels::height, (pixels: Resource<Pixels>);
        sync "[method]pixels.color" = HostPixels::color, (pixels: Resource<Pixels>);
        async "[method]pixels.resize" = HostPixels::resize,
            (pixels: Resource<Pixels>, width: u32, height: u32, filter: image::Filter);
        async "[method]pixels.crop" = HostPixels::crop,
            (pixels: Resource<Pixels>, x: u32, y: u32, width: u32, height: u32);
        async "[method]pixels.to-tensor" = HostPixels::to_tensor,
            (pixels: Resource<Pixels>, options: image::TensorOptions);
        async "[method]pixels.data" = CallState::lend_pixels, (pixels: Resource<Pixels>);
    }
    Ok(())
}

/// The resource `name`, whose values are in the call's table.
fn resource<S: Send + 'static, T: Send + 'static>(
    instance: &mut LinkerInstance<'_, CallState<S>>,
    name: &str,
) -> wasmtime::Result<()> {
    instance.resource(name, ResourceType::host::<T>(), |mut store, rep| {
        store.data_mut().table.delete(Resource::<T>::new_own(rep))?;
        Ok(())
    })
}
