//! The requests of a measurement, from the command line or a file.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use clap::ArgMatches;
use clap::parser::ValueSource;
use gristmill_client::http::StatusCode;
use gristmill_client::{Address, BinaryTensor, Client, HEADER_LENGTH, Tls, block_on, infer_body};
use gristmill_load::{LoadTarget, Url};
use gristmill_oip::grpc::proto::model_infer_request::InferInputTensor;
use gristmill_oip::grpc::proto::{ModelInferRequest, ModelMetadataRequest, ModelMetadataResponse};
use prost::Message;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::admin;
use crate::args::{required, text, texts};
use crate::plugin::within::within;

/// The requests, and what is said of them.
pub(super) struct Requests {
    pub(super) targets: Vec<LoadTarget>,
    pub(super) what: String,
}

/// One request.
#[derive(Clone, Debug)]
pub(super) struct RequestSpec {
    pub(super) url: Url,
    /// Of gRPC it is always POST.
    pub(super) method: String,
    /// Each `name: value`.
    pub(super) headers: Vec<String>,
    /// Of gRPC it is the message, encoded.
    pub(super) body: Vec<u8>,
    /// If the URL needs it.
    pub(super) tls: Option<Tls>,
}

impl RequestSpec {
    /// The same for the load generator.
    pub(super) fn target(&self) -> Result<LoadTarget> {
        let Self { url, method, headers, body, tls } = self;
        let target = LoadTarget::new(url, method, headers, body)?;
        Ok(match tls {
            Some(tls) => target.with_tls(tls),
            None => target,
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TargetsFile {
    target: Vec<TargetEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TargetEntry {
    url: String,
    method: Option<String>,
    #[serde(default)]
    headers: Vec<String>,
    body: Option<PathBuf>,
    json: Option<Value>,
    #[serde(default = "one")]
    weight: u32,
}

fn one() -> u32 {
    1
}

/// The requests that the command line asks for.
pub(super) fn read(matches: &ArgMatches) -> Result<Requests> {
    if let Some(path) = matches.get_one::<PathBuf>("targets") {
        return of_file(path, matches);
    }
    let what = text(matches, "url").unwrap_or_default().to_owned();
    Ok(Requests { targets: vec![request_spec(matches)?.target()?], what })
}

/// The one request that the command line asks for.
pub(super) fn request_spec(matches: &ArgMatches) -> Result<RequestSpec> {
    let url: Url = required(matches, "url")?.parse()?;
    let mut headers = headers(matches);
    headers.extend(key_header(matches));
    let tls = tls(&url, matches)?;
    if let Some(rows) = matches.get_one::<u32>("rows") {
        return match url.scheme.is_grpc() {
            true => grpc_inference(&url, *rows as usize, headers, tls),
            false => inference(&url, *rows as usize, headers, tls),
        };
    }
    let body = match matches.get_one::<PathBuf>("body") {
        Some(path) => read_body(path, &mut headers)?,
        None => Vec::new(),
    };
    let method = text(matches, "method");
    let method = method.unwrap_or(if body.is_empty() { "GET" } else { "POST" }).to_owned();
    Ok(RequestSpec { url, method, headers, body, tls })
}

/// The TLS that the command line says, if the URL needs it.
fn tls(url: &Url, matches: &ArgMatches) -> Result<Option<Tls>> {
    url.scheme.is_tls().then(|| admin::tls(matches)).transpose()
}

/// The headers of each request.
fn headers(matches: &ArgMatches) -> Vec<String> {
    texts(matches, "header").cloned().collect()
}

fn key_header(matches: &ArgMatches) -> Option<String> {
    text(matches, "key").map(|key| format!("authorization: Bearer {key}"))
}

/// The server that receives the key with the requests of a file: that of the URL on the command
/// line, because someone else may have written the URLs in the file. None if no key is sent.
fn receiver_of_key(matches: &ArgMatches) -> Result<Option<Url>> {
    let rule = "with --targets the key goes only to the server of URL, such as http://HOST:8080";
    let url = text(matches, "url");
    match (url, matches.value_source("key")) {
        (Some(url), Some(_)) => Ok(Some(url.parse()?)),
        (Some(_), None) => bail!("URL is given, and no key: {rule}"),
        (None, Some(ValueSource::CommandLine)) => bail!("--key is given, and no URL: {rule}"),
        (None, Some(_)) => {
            eprintln!("warning: the key in GRISTMILL_API_KEY is not sent: {rule}");
            Ok(None)
        }
        (None, None) => Ok(None),
    }
}

/// Whether two URLs have the same scheme, host and port.
fn is_same_server(one: &Url, other: &Url) -> bool {
    one.scheme == other.scheme && one.authority.eq_ignore_ascii_case(&other.authority)
}

fn of_file(path: &Path, matches: &ArgMatches) -> Result<Requests> {
    let shown = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    let file: TargetsFile =
        toml::from_str(&text).with_context(|| format!("{shown} is not valid"))?;
    if file.target.is_empty() {
        bail!("{shown} has no [[target]]");
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    let receiver = receiver_of_key(matches)?;
    let mut targets = Vec::new();
    for (at, entry) in file.target.into_iter().enumerate() {
        let target = target(entry, folder, matches, receiver.as_ref());
        targets.push(target.with_context(|| format!("{shown}: target {}", at + 1))?);
    }
    Ok(Requests { targets, what: shown.to_string() })
}

/// A target of the file in `folder`. Its request has the key if it goes to `receiver`.
fn target(
    entry: TargetEntry,
    folder: &Path,
    matches: &ArgMatches,
    receiver: Option<&Url>,
) -> Result<LoadTarget> {
    let TargetEntry { url, method, headers: entry_headers, body, json, weight } = entry;
    if !(1..=1_000_000).contains(&weight) {
        bail!("weight is {weight}: must be 1 to 1000000");
    }
    let url: Url = url.parse()?;
    let mut headers = [headers(matches), entry_headers].concat();
    if receiver.is_some_and(|receiver| is_same_server(receiver, &url)) {
        headers.extend(key_header(matches));
    }
    let body = match (body, json) {
        (Some(_), Some(_)) => bail!("body and json are both given: one is enough"),
        // Someone else may have written the file.
        (Some(path), None) => read_body(&within(folder, path)?, &mut headers)?,
        (None, Some(json)) => {
            add_content_type(&mut headers, "application/json");
            json.to_string().into_bytes()
        }
        (None, None) => Vec::new(),
    };
    let method = method.unwrap_or_else(|| if body.is_empty() { "GET" } else { "POST" }.to_owned());
    let tls = tls(&url, matches)?;
    Ok(RequestSpec { url, method, headers, body, tls }.target()?.weighted(weight))
}

/// The body in a file. If no header says what it is, its name does.
fn read_body(path: &Path, headers: &mut Vec<String>) -> Result<Vec<u8>> {
    let body = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let content_type = match path.extension().and_then(|extension| extension.to_str()) {
        Some("json") => "application/json",
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("webp") => "image/webp",
        _ => "application/octet-stream",
    };
    add_content_type(headers, content_type);
    Ok(body)
}

fn add_content_type(headers: &mut Vec<String>, content_type: &str) {
    let is_it = |header: &String| header.to_ascii_lowercase().starts_with("content-type:");
    if !headers.iter().any(is_it) {
        headers.push(format!("content-type: {content_type}"));
    }
}

/// The caller may not call a model, or the model is not there, which looks the same.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct NotAllowed(pub(super) String);

/// An inference of so many rows of zeros, of the model at this URL.
pub(super) fn inference(
    url: &Url,
    rows: usize,
    mut headers: Vec<String>,
    tls: Option<Tls>,
) -> Result<RequestSpec> {
    let model = url.path.trim_end_matches('/');
    let model = model.strip_suffix("/infer").unwrap_or(model);
    let scheme = if tls.is_some() { "https" } else { "http" };
    let address: Address = format!("{scheme}://{}", url.authority).parse()?;
    let mut client = Client::new(address);
    if let Some(tls) = &tls {
        client = client.with_tls(tls.clone());
    }
    let key = headers.iter().find_map(|header| header.strip_prefix("authorization: Bearer "));
    if let Some(key) = key {
        client = client.with_token(key)?;
    }
    let answer = block_on(client.get(model))?;
    if !answer.status.is_success() {
        let body = String::from_utf8_lossy(&answer.body).into_owned();
        let refusal = format!("{model} cannot be described: {}: {body}", answer.status);
        return Err(match answer.status {
            StatusCode::FORBIDDEN | StatusCode::NOT_FOUND => NotAllowed(refusal).into(),
            _ => anyhow!(refusal),
        });
    }
    let metadata: Value = serde_json::from_slice(&answer.body)
        .with_context(|| format!("{model} is not a model of the Open Inference Protocol"))?;
    let inputs = metadata["inputs"].as_array().map_or(&[][..], Vec::as_slice);
    if inputs.is_empty() {
        bail!("{model} has no inputs: --rows needs a model of the Open Inference Protocol");
    }
    let described = inputs.iter().map(|input| {
        let shape = input["shape"].as_array().map_or(&[][..], Vec::as_slice);
        let shape: Vec<i64> = shape.iter().map(|size| size.as_i64().unwrap_or(-1)).collect();
        let text = |key: &str| input[key].as_str().unwrap_or_default();
        zeros(text("name"), text("datatype"), &shape, rows)
    });
    let described: Vec<_> = described.collect::<Result<_>>()?;
    let tensors: Vec<_> = described
        .iter()
        .map(|(name, datatype, shape, data)| BinaryTensor { name, datatype, shape, data })
        .collect();
    let body = infer_body(&tensors, json!({ "parameters": { "binary_data_output": true } }));
    headers.push(format!("{HEADER_LENGTH}: {}", body.header_length));
    add_content_type(&mut headers, "application/octet-stream");
    let url = Url { path: format!("{model}/infer"), ..url.clone() };
    Ok(RequestSpec { url, method: "POST".to_owned(), headers, body: body.bytes.into(), tls })
}

/// The same over gRPC: the URL's path is the model's name.
fn grpc_inference(
    url: &Url,
    rows: usize,
    headers: Vec<String>,
    tls: Option<Tls>,
) -> Result<RequestSpec> {
    let model = url.path.trim_matches('/').to_owned();
    let call = |method: &str, message: Vec<u8>| RequestSpec {
        url: Url { path: format!("/inference.GRPCInferenceService/{method}"), ..url.clone() },
        method: "POST".to_owned(),
        headers: headers.clone(),
        body: message,
        tls: tls.clone(),
    };
    let named = ModelMetadataRequest { name: model.clone(), version: String::new() };
    let described = gristmill_load::call(&call("ModelMetadata", named.encode_to_vec()).target()?);
    let described = described.with_context(|| format!("the model {model:?} is not described"))?;
    let metadata = ModelMetadataResponse::decode(&*described)?;
    if metadata.inputs.is_empty() {
        bail!("{model} has no inputs: --rows needs a model of the Open Inference Protocol");
    }
    let mut request = ModelInferRequest { model_name: model, ..Default::default() };
    for input in &metadata.inputs {
        let (name, datatype, shape, data) =
            zeros(&input.name, &input.datatype, &input.shape, rows)?;
        let shape = shape.into_iter().map(|size| size as i64).collect();
        request.inputs.push(InferInputTensor { name, datatype, shape, ..Default::default() });
        request.raw_input_contents.push(data.into());
    }
    Ok(call("ModelInfer", request.encode_to_vec()))
}

/// The name, datatype, shape and bytes of an input of zeros.
type Zeros = (String, String, Vec<usize>, Vec<u8>);

fn zeros(name: &str, datatype: &str, dims: &[i64], rows: usize) -> Result<Zeros> {
    let bytes = match datatype {
        "BOOL" | "INT8" | "UINT8" => 1,
        "INT16" | "UINT16" | "FP16" | "BF16" => 2,
        "INT32" | "UINT32" | "FP32" => 4,
        "INT64" | "UINT64" | "FP64" => 8,
        other => bail!("the input {name:?} is {other}: --rows makes no such zeros, use --body"),
    };
    let size = |(at, size): (usize, &i64)| match *size {
        size if size >= 0 => size as usize,
        // The first open dimension is that of the rows.
        _ if at == 0 => rows,
        _ => 1,
    };
    let shape: Vec<usize> = dims.iter().enumerate().map(size).collect();
    let elements = shape.iter().try_fold(1_usize, |all, size| all.checked_mul(*size));
    let all = elements.and_then(|all| all.checked_mul(bytes)).filter(|all| *all <= 1 << 30);
    let all = all.with_context(|| format!("the input {name:?} of shape {shape:?} is too large"))?;
    Ok((name.to_owned(), datatype.to_owned(), shape, vec![0; all]))
}
