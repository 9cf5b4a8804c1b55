//! A plugin that misbehaves through WASI, and one that looks for what WASI must not give it. `?do=`
//! names the deed, as for the plugin `hostile`.
//!
//! It is for the model `digits`, which gets a blank picture if the host does not end the deed.

use gristmill_plugin::{Context, Failure, Outputs, Prepared, Processor, Request, Response, Tensor};

use crate::bindings::wasi::cli::{environment, exit, stderr, stdin, stdout};
use crate::bindings::wasi::clocks::monotonic_clock::{now, subscribe_duration};
use crate::bindings::wasi::filesystem::preopens::get_directories;
use crate::bindings::wasi::http::types::{Fields, OutgoingRequest};
use crate::bindings::wasi::io::poll;
use crate::bindings::wasi::io::streams::OutputStream;
use crate::bindings::wasi::nn::errors::Error;
use crate::bindings::wasi::nn::graph::{ExecutionTarget, Graph, GraphEncoding, load, load_by_name};
use crate::bindings::wasi::nn::tensor::{Tensor as NnTensor, TensorType};
use crate::bindings::wasi::random::random::get_random_bytes;
use crate::bindings::wasi::sockets::network::{ErrorCode, IpAddressFamily};
use crate::bindings::wasi::sockets::tcp_create_socket::create_tcp_socket;

mod bindings {
    #![allow(clippy::all)]

    wit_bindgen::generate!({ path: "wit", world: "wasi-deeds", generate_all });
}

/// A deed; its text is the answer.
type Deed = fn() -> String;

const DEEDS: &[(&str, Deed)] = &[
    ("sleep", || sleep(u64::MAX)),
    ("nap", || sleep(20_000_000)),
    ("polls", || polls(1000)),
    ("too-many-polls", || polls(2000)),
    ("poll-nothing", || poll::poll(&[]).len().to_string()),
    ("endless-polls", endless_polls),
    ("pollables", pollables),
    ("headers", headers),
    ("paths", paths),
    ("bodies", bodies),
    ("random", || get_random_bytes(1 << 20).len().to_string()),
    ("much-random", || get_random_bytes(8 << 30).len().to_string()),
    ("endless-random", endless_random),
    ("endless-clock", endless_clock),
    ("lines", lines),
    ("flood", || flood(&stdout::get_stdout(), &[b'x'; 4096])),
    ("flood-of-lines", || flood(&stderr::get_stderr(), &[b'\n'; 4096])),
    ("unasked-write", unasked_write),
    ("zeroes", zeroes),
    ("exit", || {
        exit::exit(Err(()));
        String::new()
    }),
    ("looks", looks),
    ("graph", || refusal(load_by_name("digits"))),
    ("own-graph", || refusal(load(&[vec![0; 1 << 20]], GraphEncoding::Onnx, ExecutionTarget::Gpu))),
    ("graphs", graphs),
    ("long-graph", || refusal(load_by_name(&"\u{7f}".repeat(1 << 20)))),
    ("nn-tensors", nn_tensors),
    ("nn-dimensions", nn_dimensions),
];

struct HostileWasi;

impl Processor for HostileWasi {
    fn preprocess(_context: &Context, request: &Request) -> Result<Prepared, Failure> {
        let name = request.query_value("do").unwrap_or_default();
        let deed = DEEDS.iter().find(|(own, _)| *own == name);
        let no_deed = || Failure::invalid_input(format!("there is no deed {name:?}"));
        let (_, deed) = deed.ok_or_else(no_deed)?;
        let answer = deed();
        let input = Tensor::from_slice(&[1, 1, 28, 28], &[0.0_f32; 784])?;
        Ok(Prepared::new().input("input", input).state(answer.into_bytes()))
    }

    fn postprocess(
        _context: &Context,
        _outputs: Outputs,
        state: Vec<u8>,
    ) -> Result<Response, Failure> {
        Ok(Response::new("text/plain", state))
    }
}

fn sleep(nanoseconds: u64) -> String {
    subscribe_duration(nanoseconds).block();
    "awake".into()
}

/// Wait for so many clocks at a time, of which one ends soon.
fn polls(count: usize) -> String {
    let clocks: Vec<_> = (0..count as u64).map(|at| subscribe_duration((at + 1) << 20)).collect();
    let clocks: Vec<_> = clocks.iter().collect();
    let ready = poll::poll(&clocks);
    (if ready.is_empty() { "nothing is ready" } else { "awake" }).into()
}

/// Poll clocks that are always ready, for ever.
fn endless_polls() -> String {
    let ready: Vec<_> = (0..1000).map(|_| subscribe_duration(0)).collect();
    let ready: Vec<_> = ready.iter().collect();
    loop {
        poll::poll(&ready);
    }
}

fn pollables() -> String {
    let mut kept = Vec::new();
    loop {
        kept.push(subscribe_duration(u64::MAX));
    }
}

/// Keeps headers of requests, each list about as large as it may be: 32 KiB.
fn headers() -> String {
    let mut kept = Vec::new();
    loop {
        let fields = Fields::new();
        for _ in 0..7 {
            let _ = fields.append("x-kept", &[b'x'; 4 << 10]);
        }
        kept.push(fields);
    }
}

/// Keeps requests with long paths.
fn paths() -> String {
    let path = format!("/{}", "x".repeat(60_000));
    let mut kept = Vec::new();
    loop {
        let request = OutgoingRequest::new(Fields::new());
        assert_eq!(request.set_path_with_query(Some(&path)), Ok(()));
        kept.push(request);
    }
}

/// Keeps bodies of requests, each of which may be written to.
fn bodies() -> String {
    let mut kept = Vec::new();
    loop {
        kept.push(OutgoingRequest::new(Fields::new()).body().unwrap());
    }
}

fn endless_random() -> String {
    loop {
        get_random_bytes(8 << 20);
    }
}

fn endless_clock() -> String {
    loop {
        std::hint::black_box(now());
    }
}

/// Write lines to both streams: one in two parts, and one that does not end.
fn lines() -> String {
    let (out, err) = (stdout::get_stdout(), stderr::get_stderr());
    let write = |stream: &OutputStream, text: &str| {
        stream.blocking_write_and_flush(text.as_bytes()).is_ok()
    };
    let is_written = write(&out, "one ") && write(&out, "line\nsecond line\n");
    let is_written = is_written && write(&err, "an unended \"line\"");
    is_written.to_string()
}

fn flood(stream: &OutputStream, bytes: &[u8]) -> String {
    for _ in 0..100_000 {
        if stream.blocking_write_and_flush(bytes).is_err() {
            return "refused".into();
        }
    }
    "written".into()
}

/// Write much more than the stream allows.
fn unasked_write() -> String {
    let written = stdout::get_stdout().write(&vec![b'x'; 4 << 20]);
    written.is_ok().to_string()
}

fn zeroes() -> String {
    stdout::get_stdout().write_zeroes(8 << 30).is_ok().to_string()
}

fn refusal(graph: Result<Graph, Error>) -> String {
    match graph {
        Ok(_) => "the host gave a graph".into(),
        Err(error) => format!("{:?}: {}", error.code(), error.data()),
    }
}

/// Keeps errors.
fn graphs() -> String {
    let mut kept = Vec::new();
    loop {
        kept.push(load_by_name("digits").err());
    }
}

/// Makes tensors without end, and keeps none.
fn nn_tensors() -> String {
    let data = vec![0; 1 << 20];
    loop {
        std::hint::black_box(NnTensor::new(&[1 << 20], TensorType::U8, &data));
    }
}

/// Keeps tensors of many dimensions and no data.
fn nn_dimensions() -> String {
    let dimensions = vec![1; 1 << 18];
    let mut kept = Vec::new();
    loop {
        kept.push(NnTensor::new(&dimensions, TensorType::I64, &[]));
    }
}

/// Look for what the host must not give. The answer names all of it.
fn looks() -> String {
    let mut found = Vec::new();
    if !environment::get_environment().is_empty() {
        found.push("environment");
    }
    if !environment::get_arguments().is_empty() {
        found.push("arguments");
    }
    if environment::initial_cwd().is_some() {
        found.push("working directory");
    }
    if !get_directories().is_empty() {
        found.push("directories");
    }
    if stdin::get_stdin().blocking_read(1).is_ok_and(|read| !read.is_empty()) {
        found.push("standard input");
    }
    let socket = create_tcp_socket(IpAddressFamily::Ipv4);
    if !matches!(socket, Err(ErrorCode::AccessDenied)) {
        found.push("sockets");
    }
    format!("found: {}", found.join(", "))
}

gristmill_plugin::export_processor!(HostileWasi);
