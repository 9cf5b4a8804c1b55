//! `gristmill serve` as a process of its own, with one model that everybody may run.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use gristmill_backend::LoadOptions;
use gristmill_core::Tensor;
use http_body_util::Full;
use hyper::Request;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use serde_json::{Value, json};

use super::connection::Connection;

pub(super) const HEADER_LENGTH: &str = "inference-header-content-length";

const ADMIN_TOKEN: &str = "benchmark-admin-token";
const TENANT: &str = "bench";
const MODEL: &str = "resnet50";

/// What may wait in the model's queue: more than all clients together send.
const QUEUE_BYTES_MAX: u64 = 8 << 30;

/// A running server; killed when dropped, and its data removed.
pub struct Server {
    child: Child,
    data_dir: PathBuf,
    /// Host and port.
    pub(super) data_plane: String,
    admin_plane: String,
}

/// What the server counted since the model was loaded.
pub(super) struct Counts {
    pub(super) rows: f64,
    pub(super) batches: f64,
}

impl Server {
    /// Start the binary `gristmill` with an empty data directory, on the library in `ORT_DYLIB_PATH`.
    pub(super) fn start(gristmill: &Path) -> Result<Self> {
        let library = std::env::var_os("ORT_DYLIB_PATH").context("ORT_DYLIB_PATH is not set")?;
        let name = format!("gristmill-bench-{}", std::process::id());
        let data_dir = std::env::temp_dir().join(name);
        // Of a run that was killed, in a container that counts its processes from the same number.
        let _ = std::fs::remove_dir_all(&data_dir);
        let child = Command::new(gristmill)
            .args(["serve", "--log", "warn", "--open-tenant", TENANT])
            .args(["--listen", "127.0.0.1:0", "--grpc-listen", "127.0.0.1:0"])
            .args(["--admin-listen", "127.0.0.1:0"])
            // A batch of 128 pictures is 77 MB; on a processor it may take minutes.
            .args(["--message-bytes-max", "2147483648", "--tenant-bytes-max", "68719476736"])
            .args(["--infer-timeout-s", "600"])
            .arg("--data-dir")
            .arg(&data_dir)
            .env("GRISTMILL_ADMIN_TOKEN", ADMIN_TOKEN)
            .env("GRISTMILL_ONNXRUNTIME_LIBRARY", library)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", gristmill.display()))?;
        let (data_plane, admin_plane) = (String::new(), String::new());
        let mut server = Self { child, data_dir, data_plane, admin_plane };
        server.read_addresses()?;
        Ok(server)
    }

    /// Wait until the server says where it listens.
    fn read_addresses(&mut self) -> Result<()> {
        let stdout = self.child.stdout.take().context("no standard output")?;
        for line in BufReader::new(stdout).lines() {
            let line = line?;
            let Some((plane, address)) = line.split_once(" http://") else { continue };
            match plane.trim_end() {
                "data plane" => self.data_plane = address.to_owned(),
                "admin plane" => {
                    self.admin_plane = address.to_owned();
                    return Ok(());
                }
                _ => {}
            }
        }
        bail!("the server did not start: {}", self.child.wait()?)
    }

    /// Upload the model, and let calls without a key run it.
    pub(super) async fn deploy(&self, onnx: Vec<u8>) -> Result<()> {
        self.put(&format!("models/{MODEL}"), "application/octet-stream", onnx).await?;
        let tenant = json!({ "open": true, "models": [MODEL] });
        self.put_json(&format!("tenants/{TENANT}"), &tenant).await
    }

    /// Load the model again, in the way that the bare session is loaded, for batches of this size. It has
    /// the same providers: none that would stand by unnoticed.
    pub(super) async fn configure(
        &self,
        options: &LoadOptions,
        max_batch_size: usize,
    ) -> Result<()> {
        let providers: Vec<_> = options.providers.iter().map(|kind| kind.as_str()).collect();
        let mut config = json!({
            "max_batch_size": max_batch_size,
            "max_queue_bytes": QUEUE_BYTES_MAX,
            "max_tenant_queue_bytes": QUEUE_BYTES_MAX,
            "providers": providers,
            "instances": options.instances,
            "threads": options.threads,
        });
        if !options.cuda_options.is_empty() {
            config["provider_options"] = json!({ "cuda": options.cuda_options });
        }
        self.put_json(&format!("models/{MODEL}/config"), &config).await
    }

    pub(super) async fn counts(&self) -> Result<Counts> {
        let request = Request::get(format!("/v2/models/{MODEL}/stats")).header(HOST, "localhost");
        let mut connection = Connection::open(&self.data_plane).await?;
        let answer = connection.send(request.body(Full::default())?).await?;
        let statistics: Value = serde_json::from_slice(answer.body())?;
        let count = |name: &str| {
            let count = statistics["model_stats"][0][name].as_f64();
            count.with_context(|| format!("no {name} in {statistics}"))
        };
        Ok(Counts { rows: count("inference_count")?, batches: count("execution_count")? })
    }

    async fn put_json(&self, path: &str, document: &Value) -> Result<()> {
        self.put(path, "application/json", document.to_string().into_bytes()).await
    }

    async fn put(&self, path: &str, content_type: &str, body: Vec<u8>) -> Result<()> {
        let request = Request::put(format!("/admin/v1/{path}"))
            .header(HOST, "localhost")
            .header(AUTHORIZATION, format!("Bearer {ADMIN_TOKEN}"))
            .header(CONTENT_TYPE, content_type)
            .body(Full::from(body))?;
        let mut connection = Connection::open(&self.admin_plane).await?;
        connection.send(request).await.with_context(|| format!("PUT {path}"))?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.data_dir);
    }
}

/// A request for the model with `rows`, each of one row, as its one input; binary both ways.
pub(super) fn infer_request(input: &str, rows: &[Tensor]) -> Request<Full<Bytes>> {
    let data = rows.iter().map(Tensor::as_bytes).collect::<Vec<_>>().concat();
    let mut shape = rows[0].shape().to_vec();
    shape[0] = rows.len();
    let input = json!({
        "name": input,
        "datatype": rows[0].dtype().as_str(),
        "shape": shape,
        "parameters": { "binary_data_size": data.len() },
    });
    let parameters = json!({ "binary_data_output": true });
    let header = json!({ "inputs": [input], "parameters": parameters }).to_string();
    let body = [header.as_bytes(), &data].concat();
    let request = Request::post(format!("/v2/models/{MODEL}/infer"))
        .header(HOST, "localhost")
        .header(CONTENT_TYPE, "application/octet-stream")
        .header(HEADER_LENGTH, header.len())
        .body(Full::from(body));
    match request {
        Ok(request) => request,
        Err(error) => unreachable!("{error}"),
    }
}
