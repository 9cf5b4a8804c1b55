//! One hostile request, of any kind.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bytes::{BufMut, Bytes, BytesMut};
use gristmill_benches::corpus::{models, plugins};
use gristmill_benches::server::ADMIN_TOKEN;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::cases::ModelInput;
use crate::stage::{JSON, KEY, MODELS_KEY, OCTETS};

/// A leaving client closes its connection after this time. The server has read the request then.
const LEAVES_AFTER: Duration = Duration::from_millis(30);
/// A rare attack: one of this number of requests is hostile, the others are harmless.
const RARE: u64 = 500;
/// A slow reader reads this many bytes at a time, with this pause in between.
const SLOW_BYTES: usize = 512;
const SLOW_INTERVAL: Duration = Duration::from_secs(1);

/// The client's limits on the head of an answer. No answer exceeds them, so the client refuses
/// none.
const HEAD_BYTES_MAX: usize = 64 << 20;
const HEADERS_MAX: usize = 100_000;

/// The server's addresses.
#[derive(Clone)]
pub(crate) struct Addresses {
    pub(crate) data: String,
    pub(crate) grpc: String,
    pub(crate) admin: String,
}

/// The request that an attacker repeats.
pub(crate) enum Attack {
    Post {
        path: String,
        body: Bytes,
    },
    /// All attackers together send each request, with its path and body, and begin again.
    PostInTurn {
        requests: Vec<(String, Bytes)>,
        /// The number of requests sent.
        sent: AtomicUsize,
    },
    Get {
        path: &'static str,
    },
    /// A stream of the admin plane's events is read until the attack ends.
    Follow,
    /// One request of [`RARE`] goes to `path`, the others to the harmless one.
    RarePost {
        path: String,
        harmless: String,
    },
    /// The client leaves before the answer.
    LeavingPost {
        path: String,
        body: Bytes,
    },
    /// The client reads its answer slowly.
    SlowRead {
        path: String,
    },
    Grpc {
        message: Bytes,
    },
    /// An upload of a plugin.
    Plugin {
        file: Vec<u8>,
        /// Whether all attackers upload the same bytes in a round.
        same: bool,
    },
    /// An upload of an asset, and a request that makes a plugin read it.
    Asset {
        name: &'static str,
        make: fn(u64) -> Vec<u8>,
        path: String,
        body: Bytes,
    },
    /// An upload of a model, and a request that runs it.
    Model {
        onnx: Vec<u8>,
        input: ModelInput,
    },
    /// An upload of a model, and then of its configuration.
    ConfiguredModel {
        onnx: Vec<u8>,
        config: Value,
    },
}

/// One turn of an attacker.
#[derive(Clone, Copy)]
pub(crate) struct Turn {
    pub(crate) attacker: usize,
    /// The number of the turn.
    pub(crate) round: u64,
    /// Slow readers continue until then.
    pub(crate) until: Instant,
}

impl Turn {
    /// A number that no other turn of the attack has.
    fn number(self) -> u64 {
        self.round * 1_000 + self.attacker as u64
    }
}

impl Attack {
    /// Whether the tenant's deadline bounds the time of a request.
    pub(crate) fn has_deadline(&self) -> bool {
        matches!(
            self,
            Self::Post { .. }
                | Self::PostInTurn { .. }
                | Self::Get { .. }
                | Self::RarePost { .. }
                | Self::Grpc { .. }
        )
    }

    /// Attack once. Returns the outcome in a word or two.
    pub(crate) async fn run(&self, to: &Addresses, turn: Turn) -> Result<String> {
        match self {
            Self::Post { path, body } => post(to, path, body.clone()).await,
            Self::PostInTurn { requests, sent } => {
                let turn = sent.fetch_add(1, Ordering::Relaxed) % requests.len();
                let (path, body) = &requests[turn];
                post(to, path, body.clone()).await
            }
            Self::Get { path } => send(&to.data, Request::get(*path).body(Full::default())?).await,
            Self::Follow => follow(&to.admin, turn.until).await,
            Self::RarePost { path, harmless } => {
                let is_harmless = !turn.round.is_multiple_of(RARE);
                post(to, if is_harmless { harmless } else { path }, Bytes::new()).await
            }
            Self::LeavingPost { path, body } => {
                let mut stream = begun(&to.data, path, body).await?;
                stream.flush().await?;
                tokio::time::sleep(LEAVES_AFTER).await;
                Ok("left".into())
            }
            Self::SlowRead { path } => {
                let mut stream = begun(&to.data, path, &[]).await?;
                let mut buffer = [0; SLOW_BYTES];
                let read = stream.read(&mut buffer).await?;
                let answer = first_line(&buffer[..read]);
                while Instant::now() < turn.until && stream.read(&mut buffer).await? > 0 {
                    tokio::time::sleep(SLOW_INTERVAL).await;
                }
                Ok(answer)
            }
            Self::Grpc { message } => call(&to.grpc, message).await,
            Self::Plugin { file, same } => {
                let number = if *same { turn.round * 1_000 } else { turn.number() };
                let file = plugins::distinct(file, number);
                let path = format!("tenants/evil/plugins/upload-{}", turn.attacker);
                put(&to.admin, &path, OCTETS, file).await
            }
            Self::Asset { name, make, path, body } => {
                let file = make(turn.number());
                let uploaded =
                    put(&to.admin, &format!("tenants/evil/assets/{name}"), OCTETS, file).await?;
                if uploaded != "200" {
                    return Ok(format!("upload {uploaded}"));
                }
                Ok(format!("read {}", post(to, path, body.clone()).await?))
            }
            Self::Model { onnx, input } => upload_and_run(to, onnx, *input, turn).await,
            Self::ConfiguredModel { onnx, config } => {
                let path = match upload(to, onnx, turn).await? {
                    (path, uploaded) if uploaded == "200" => path,
                    (_, refused) => return Ok(format!("upload {refused}")),
                };
                let config = config.to_string().into_bytes();
                let configured = put(&to.admin, &format!("{path}/config"), JSON, config).await?;
                Ok(format!("configure {configured}"))
            }
        }
    }
}

async fn post(to: &Addresses, path: &str, body: Bytes) -> Result<String> {
    let request = Request::post(path).header(AUTHORIZATION, format!("Bearer {KEY}"));
    send(&to.data, request.body(Full::from(body))?).await
}

/// Send a request on a new connection, whose answer is still to be read.
async fn begun(address: &str, path: &str, body: &[u8]) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {KEY}\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body].concat()).await?;
    Ok(stream)
}

fn first_line(answer: &[u8]) -> String {
    let text = String::from_utf8_lossy(answer);
    text.lines().next().unwrap_or_default().trim_start_matches("HTTP/1.1 ").to_owned()
}

async fn send(address: &str, mut request: Request<Full<Bytes>>) -> Result<String> {
    request.headers_mut().insert(HOST, hyper::header::HeaderValue::from_static("localhost"));
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .handshake(TokioIo::new(stream))
        .await?;
    tokio::spawn(connection);
    ended(sender.send_request(request).await?).await
}

/// The status, and the code where the answer has one. The body is read and dropped.
async fn ended(answer: Response<Incoming>) -> Result<String> {
    const CODE_WITHIN_BYTES: usize = 16 << 10;
    let (head, mut body) = answer.into_parts();
    let mut begin = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data()
            && begin.len() < CODE_WITHIN_BYTES
        {
            begin.extend_from_slice(&data);
        }
    }
    let document: Value = serde_json::from_slice(&begin).unwrap_or_default();
    let code = document["code"].as_str().map(|code| format!(" {code}")).unwrap_or_default();
    Ok(format!("{}{code}", head.status.as_u16()))
}

/// `ModelInfer` with this message.
async fn call(address: &str, message: &Bytes) -> Result<String> {
    let mut body = BytesMut::with_capacity(5 + message.len());
    body.put_u8(0);
    body.put_u32(message.len() as u32);
    body.extend_from_slice(message);
    let request =
        Request::post(format!("http://{address}/inference.GRPCInferenceService/ModelInfer"))
            .header(CONTENT_TYPE, "application/grpc")
            .header("te", "trailers")
            .header(AUTHORIZATION, format!("Bearer {KEY}"))
            .body(Full::<Bytes>::from(body.freeze()))?;
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let (head, body) = sender.send_request(request).await?.into_parts();
    let body = body.collect().await?;
    let trailers = body.trailers().and_then(|trailers| trailers.get(GRPC_STATUS));
    let status = trailers.or(head.headers.get(GRPC_STATUS)).context("no grpc-status")?;
    Ok(format!("grpc {}", status.to_str()?))
}

const GRPC_STATUS: &str = "grpc-status";

async fn put(address: &str, path: &str, content_type: &str, body: Vec<u8>) -> Result<String> {
    let request = Request::put(format!("/admin/v1/{path}"))
        .header(AUTHORIZATION, format!("Bearer {ADMIN_TOKEN}"))
        .header(CONTENT_TYPE, content_type);
    send(address, request.body(Full::from(Bytes::from(body)))?).await
}

/// Read events until `until`, or until the stream ends.
async fn follow(address: &str, until: Instant) -> Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let head = format!(
        "GET /admin/v1/events HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {ADMIN_TOKEN}\r\n\
         accept: text/event-stream\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    let mut buffer = vec![0; 64 << 10];
    let read = stream.read(&mut buffer).await?;
    let answer = first_line(&buffer[..read]);
    while let Ok(read) = tokio::time::timeout_at(until.into(), stream.read(&mut buffer)).await
        && read? > 0
    {}
    Ok(answer)
}

/// Upload the model. Returns its path and the outcome.
async fn upload(to: &Addresses, onnx: &[u8], turn: Turn) -> Result<(String, String)> {
    let path = format!("models/upload-{}", turn.attacker);
    let uploaded = put(&to.admin, &path, OCTETS, models::distinct(onnx, turn.number())).await?;
    Ok((path, uploaded))
}

/// Upload the model. If the server accepts it, let a tenant run it, and run it.
async fn upload_and_run(
    to: &Addresses,
    onnx: &[u8],
    input: ModelInput,
    turn: Turn,
) -> Result<String> {
    let (path, uploaded) = upload(to, onnx, turn).await?;
    if uploaded != "200" {
        return Ok(format!("upload {uploaded}"));
    }
    let name = path.trim_start_matches("models/");
    let tenant = json!({ "api_keys": [MODELS_KEY], "models": [name] }).to_string().into_bytes();
    put(&to.admin, "tenants/models", JSON, tenant).await?;
    let ModelInput { datatype, value } = input;
    let input = json!({ "name": "x", "datatype": datatype, "shape": [1, 1], "data": [value] });
    let body = json!({ "inputs": [input] }).to_string();
    let request = Request::post(format!("/v2/models/{name}/infer"))
        .header(AUTHORIZATION, format!("Bearer {MODELS_KEY}"));
    Ok(format!("run {}", send(&to.data, request.body(Full::from(body))?).await?))
}
