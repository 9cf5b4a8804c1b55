//! Contract 0.2 for plugins that were built for it: its functions, which are functions of the
//! current contract under other names.
//!
//! An adapter. The types of 0.2 are those of 0.3. One function differs: `resize-shorter` of 0.2
//! rounds the longer side to the nearest.

use gristmill_core::Tensor;
use gristmill_imaging::Pixels;
use wasmtime::component::{Linker, Resource};

use super::image::wit::{self as image, HostPixels};
use super::log;
use super::methods::{link_methods, resource};
use super::tensors::wit::{self as tensors, HostTensor};
use super::types::wit::{HostContext, HostRequest};
use super::v0_1::{self, Names};
use crate::call::CallState;
use crate::request::{Request, SharedContext};

const NAMES: Names = Names {
    types: "gristmill:plugin/types@0.2.0",
    tensors: "gristmill:plugin/tensors@0.2.0",
    image: "gristmill:plugin/image@0.2.0",
    log: LOG,
    prepare: "gristmill:plugin/prepare@0.2.0",
};

/// The interface `log`, which `init` may call.
pub(crate) const LOG: &str = "gristmill:plugin/log@0.2.0";

/// The interfaces that it links.
pub(crate) const INTERFACES: &[&str] = &NAMES.all();

pub(crate) fn link<S>(linker: &mut Linker<CallState<S>>) -> wasmtime::Result<()>
where
    S: AsMut<log::CapabilityState> + Send + 'static,
{
    v0_1::link_as::<S, tensors::TensorError>(linker, &NAMES)?;
    link_types(linker)?;
    let mut instance = linker.instance(NAMES.tensors)?;
    link_methods! { instance,
        async "[static]tensor.concat" = HostTensor::concat,
            (tensors: Vec<Resource<Tensor>>, axis: u32);
        async "[static]tensor.stack" = HostTensor::stack,
            (tensors: Vec<Resource<Tensor>>, axis: u32);
        async "[method]tensor.slice" = HostTensor::slice,
            (tensor: Resource<Tensor>, axis: u32, start: u32, end: u32);
        async "[method]tensor.cast" = HostTensor::cast,
            (tensor: Resource<Tensor>, dtype: tensors::Dtype);
    }
    let mut instance = linker.instance(NAMES.image)?;
    link_methods! { instance,
        async "[static]pixels.from-bytes" = HostPixels::from_bytes,
            (width: u32, height: u32, color: image::Color, data: Vec<u8>);
        async "[method]pixels.resize-shorter" = CallState::resize_shorter_rounded,
            (pixels: Resource<Pixels>, size: u32, filter: image::Filter);
        async "[method]pixels.pad" = HostPixels::pad,
            (pixels: Resource<Pixels>, border: image::Border, fill: Vec<u8>);
        async "[method]pixels.letterbox" = HostPixels::letterbox,
            (pixels: Resource<Pixels>, width: u32, height: u32, filter: image::Filter,
             fill: Vec<u8>);
        async "[method]pixels.statistics" = HostPixels::statistics, (pixels: Resource<Pixels>);
    }
    Ok(())
}

fn link_types<S: Send + 'static>(linker: &mut Linker<CallState<S>>) -> wasmtime::Result<()> {
    let mut instance = linker.instance(NAMES.types)?;
    resource::<S, SharedContext>(&mut instance, "context")?;
    resource::<S, Request>(&mut instance, "request")?;
    link_methods! { instance,
        sync "[method]context.tenant" = HostContext::tenant, (context: Resource<SharedContext>);
        sync "[method]context.pipeline" = HostContext::pipeline,
            (context: Resource<SharedContext>);
        sync "[method]context.model" = HostContext::model, (context: Resource<SharedContext>);
        sync "[method]context.request-id" = HostContext::request_id,
            (context: Resource<SharedContext>);
        async "[method]context.settings" = HostContext::settings,
            (context: Resource<SharedContext>);
        sync "[method]context.time-left" = HostContext::time_left,
            (context: Resource<SharedContext>);
        sync "[method]request.content-type" = HostRequest::content_type,
            (request: Resource<Request>);
        async "[method]request.headers" = HostRequest::headers, (request: Resource<Request>);
        async "[method]request.query" = HostRequest::query, (request: Resource<Request>);
        sync "[method]request.body" = HostRequest::body, (request: Resource<Request>);
        async "[method]request.parts" = HostRequest::parts, (request: Resource<Request>);
    }
    Ok(())
}
