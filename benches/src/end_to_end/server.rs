//! A server with one model that every client may run.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result};
use bytes::Bytes;
use gristmill_backend::LoadOptions;
use gristmill_client::http::Request;
use gristmill_client::http::header::CONTENT_TYPE;
use gristmill_client::{BinaryTensor, Connection, HEADER_LENGTH, infer_body};
use gristmill_core::Tensor;
use serde_json::{Value, json};

use crate::server;

const TENANT: &str = "bench";
const MODEL: &str = "resnet50";

/// The size of the model's queue: more than all clients together send.
const QUEUE_BYTES_MAX: u64 = 8 << 30;

/// A running server.
pub struct Server(server::Server);

/// The server's counters since the model was loaded.
pub(super) struct Counts {
    pub(super) rows: f64,
    pub(super) batches: f64,
}

impl Server {
    /// Start the binary `gristmill`.
    pub(super) fn start(gristmill: &Path) -> Result<Self> {
        // A batch of 128 pictures is 77 MB; on a processor it may take minutes.
        let flags = [
            ["--log", "warn"],
            ["--open-tenant", TENANT],
            ["--message-bytes-max", "2147483648"],
            ["--tenant-bytes-max", "68719476736"],
            ["--infer-timeout-s", "600"],
        ];
        Ok(Self(server::Server::start(gristmill, flags.as_flattened(), Stdio::inherit())?))
    }

    pub(super) fn data_plane(&self) -> &str {
        &self.0.data_plane
    }

    /// Upload the model, and let calls without a key run it.
    pub(super) async fn deploy(&self, onnx: Vec<u8>) -> Result<()> {
        self.0.admin.put(&format!("models/{MODEL}"), onnx).await?;
        let tenant = json!({ "open": true, "models": [MODEL] });
        self.0.admin.put_json(&format!("tenants/{TENANT}"), &tenant).await?;
        Ok(())
    }

    /// Load the model again with the options of the bare session, for batches of this size. It has
    /// no other providers, so the server cannot fall back to one unnoticed.
    pub(super) async fn configure(
        &self,
        options: &LoadOptions,
        max_batch_size: usize,
    ) -> Result<()> {
        let providers: Vec<_> = options.providers.iter().map(|kind| kind.as_str()).collect();
        let mut config = json!({
            "max_batch_size": max_batch_size,
            "allowed_batch_sizes": options.allowed_batch_sizes,
            "max_queue_bytes": QUEUE_BYTES_MAX,
            "max_tenant_queue_bytes": QUEUE_BYTES_MAX,
            "providers": providers,
            "instances": options.instances,
            "threads": options.threads,
        });
        if !options.cuda_options.is_empty() {
            config["provider_options"] = json!({ "cuda": options.cuda_options });
        }
        self.0.admin.put_json(&format!("models/{MODEL}/config"), &config).await?;
        Ok(())
    }

    pub(super) async fn counts(&self) -> Result<Counts> {
        let request = Request::get(format!("/v2/models/{MODEL}/stats")).body(Bytes::new())?;
        let mut connection = Connection::open(self.data_plane()).await?;
        let answer = connection.send(request).await?.ok()?;
        let statistics: Value = serde_json::from_slice(&answer.body)?;
        let count = |name: &str| {
            let count = statistics["model_stats"][0][name].as_f64();
            count.with_context(|| format!("no {name} in {statistics}"))
        };
        Ok(Counts { rows: count("inference_count")?, batches: count("execution_count")? })
    }
}

/// A request for the model with `rows`, each of one row, as its one input; binary both ways.
pub(super) fn infer_request(input: &str, rows: &[Tensor]) -> Request<Bytes> {
    let data = rows.iter().map(Tensor::as_bytes).collect::<Vec<_>>().concat();
    let mut shape = rows[0].shape().to_vec();
    shape[0] = rows.len();
    let datatype = rows[0].dtype().as_str();
    let input = BinaryTensor { name: input, datatype, shape: &shape, data: &data };
    let body = infer_body(&[input], json!({ "parameters": { "binary_data_output": true } }));
    let request = Request::post(format!("/v2/models/{MODEL}/infer"))
        .header(CONTENT_TYPE, "application/octet-stream")
        .header(HEADER_LENGTH, body.header_length)
        .body(body.bytes);
    match request {
        Ok(request) => request,
        Err(error) => unreachable!("{error}"),
    }
}
