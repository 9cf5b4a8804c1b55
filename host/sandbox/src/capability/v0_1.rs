//! Contract 0.1 for plugins that were built for it: its functions, which are functions of the
//! current contract under other names.
//!
//! An adapter. The types of 0.1 are those of today, apart from `tensor-error`, which has a case
//! less, and the record `request` (`worlds::v0_1`).

use bytes::Bytes;
use gristmill_core::Tensor;
use gristmill_imaging::Pixels;
use wasmtime::component::{ComponentType, Lift, Linker, Lower, Resource};

use super::image::wit::{self as image, HostPixels};
use super::log;
use super::methods::{link_methods, resource};
use super::tensors::link_create;
use super::tensors::wit::{self as tensors, HostTensor};
use super::types::wit::HostBlob;
use crate::call::CallState;

const NAMES: Names = Names {
    types: "gristmill:plugin/types@0.1.0",
    tensors: "gristmill:plugin/tensors@0.1.0",
    image: "gristmill:plugin/image@0.1.0",
    log: "gristmill:plugin/log@0.1.0",
    prepare: "gristmill:plugin/prepare@0.1.0",
};

/// The interfaces that it links.
pub(crate) const INTERFACES: &[&str] = &NAMES.all();

/// The names of the interfaces in one version of the contract.
pub(super) struct Names {
    pub(super) types: &'static str,
    pub(super) tensors: &'static str,
    pub(super) image: &'static str,
    pub(super) log: &'static str,
    pub(super) prepare: &'static str,
}

impl Names {
    pub(super) const fn all(&self) -> [&'static str; 5] {
        [self.types, self.tensors, self.image, self.log, self.prepare]
    }
}

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
    S: AsMut<log::CapabilityState> + Send + 'static,
{
    link_as::<S, TensorError>(linker, &NAMES)
}

/// Link the functions of 0.1 under these names. Errors of tensors are `E`.
pub(super) fn link_as<S, E>(
    linker: &mut Linker<CallState<S>>,
    names: &Names,
) -> wasmtime::Result<()>
where
    S: AsMut<log::CapabilityState> + Send + 'static,
    E: From<tensors::TensorError> + ComponentType + Lower + Send + Sync + 'static,
{
    log::link_as(names.log, linker)?;
    // It has no functions.
    linker.instance(names.prepare)?;
    let mut types = linker.instance(names.types)?;
    resource::<S, Bytes>(&mut types, "blob")?;
    link_methods! { types,
        sync "[method]blob.len" = HostBlob::len, (blob: Resource<Bytes>);
        async "[method]blob.read" = CallState::lend_blob,
            (blob: Resource<Bytes>, offset: u64, length: u64);
    }
    let mut instance = linker.instance(names.tensors)?;
    resource::<S, Tensor>(&mut instance, "tensor")?;
    link_create::<S, E>(&mut instance)?;
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
    let mut instance = linker.instance(names.image)?;
    resource::<S, Pixels>(&mut instance, "pixels")?;
    link_methods! { instance,
        async "[static]pixels.decode" = CallState::decode_before_0_3,
            (data: Resource<Bytes>, options: image::DecodeOptions);
        async "[static]pixels.decode-leniently" = CallState::decode_leniently_before_0_3,
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
