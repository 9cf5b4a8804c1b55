//! The Open Inference Protocol over HTTP (`/v2`) and gRPC: models and pipelines as the field's own
//! clients call them.
//!
//! In reading order: `access` says who calls and what they may see, `models` what a model says of
//! itself, `inference` runs one, `rest` and `grpc` are the two protocols' edges over these. What is
//! said of models is made once, as gRPC's messages, which serialise to the JSON that HTTP answers.
//!
//! Invariants:
//! - a caller sees the models granted to its tenant and that tenant's pipelines, and nothing that
//!   tells it of others;
//! - only the admin token loads and unloads models, and it runs none.

mod access;
mod codec;
pub(crate) mod grpc;
mod inference;
mod models;
pub(crate) mod names;
pub(crate) mod rest;

/// The protocol's messages and service.
#[expect(clippy::all, unused_qualifications, reason = "generated")]
#[allow(dead_code, reason = "typed contents are read by hand, and made by tests only")]
mod proto {
    tonic::include_proto!("inference");
}

use std::sync::Arc;
use std::time::Duration;

use gristmill_control::Control;
use gristmill_core::{BufferPool, Digest, Name};

use crate::Shutdown;
use crate::offload::Offload;
use crate::request_id::RequestIds;

/// Why a part of the protocol is not offered.
const NO_SHARED_MEMORY: &str = "shared memory is not supported: a region of the host's memory would be open to every tenant, which is unsafe between tenants";

/// Bounds and rights of the Open Inference Protocol.
#[derive(Clone, Debug)]
pub struct InferenceConfig {
    /// The tenant as which calls without a key act.
    pub open_tenant: Option<Name>,
    /// What may load and unload models: the admin token's digest.
    pub admin_token: Digest,
    /// The most bytes of a request, of its body after it was decompressed, and of its tensors where
    /// they are made of JSON or of typed contents.
    pub message_bytes_max: usize,
    /// From a request's arrival to its answer, where the client does not ask for less.
    pub timeout: Duration,
}

/// What both protocols serve from; clones share it.
#[derive(Clone)]
pub struct Inference {
    parts: Arc<Parts>,
}

struct Parts {
    control: Arc<Control>,
    shutdown: Shutdown,
    pool: BufferPool,
    offload: Offload,
    config: InferenceConfig,
    /// For calls over gRPC that bring none.
    request_ids: RequestIds,
}

impl Inference {
    pub fn new(
        control: Arc<Control>,
        shutdown: Shutdown,
        pool: BufferPool,
        config: InferenceConfig,
    ) -> Self {
        let offload = Offload::new();
        let request_ids = RequestIds::default();
        let parts = Parts { control, shutdown, pool, offload, config, request_ids };
        Self { parts: Arc::new(parts) }
    }

    /// Where what clients send has its memory from.
    pub(crate) fn pool(&self) -> &BufferPool {
        &self.parts.pool
    }
}
