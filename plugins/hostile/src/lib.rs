//! Every way a plugin can misbehave, one for each value of `?do=`. A fixture: the tests upload it
//! beside honest plugins and see that only its own requests fail.
//!
//! For the digits model: what is not about the model sends it a blank picture.

use std::hint::black_box;

use gristmill_plugin::image::{self, Pixels};
use gristmill_plugin::log::{self, Level};
use gristmill_plugin::{Failure, Outputs, Prepared, Processor, Request, Response, Tensor};

struct Hostile;

const BLANK: [f32; 784] = [0.0; 784];

fn blank() -> Result<Tensor, Failure> {
    Ok(Tensor::from_slice(&[1, 1, 28, 28], &BLANK)?)
}

impl Processor for Hostile {
    fn preprocess(request: Request) -> Result<Prepared, Failure> {
        // Without a query, as over the Open Inference Protocol, the body may say it.
        let body = String::from_utf8_lossy(&request.body_bytes()).into_owned();
        let told = body.strip_prefix("do=").unwrap_or_default();
        let deed = request.query_value("do").unwrap_or(told);
        // What `postprocess` is to do goes with the state.
        let prepared = Prepared::new().state(deed.as_bytes().to_vec());
        match deed {
            "trap" => unreachable_trap(),
            "panic" => panic!("as told"),
            "loop" => loop {
                black_box(0);
            },
            "recurse" => Err(Failure::internal(format!("{}", recurse(0)))),
            "eat-memory" => eat_memory(),
            "eat-handles" => eat_handles(),
            "eat-host-memory" => eat_host_memory(),
            "huge-tensor" => huge_tensor(),
            "flood-log" => {
                (0..100_000).for_each(|_| log::write(Level::Info, &"x".repeat(1000), &[]));
                Ok(prepared.input("input", blank()?))
            }
            "log-fields" => {
                let fields = [("texts", "1"), ("tenant", "a \"forged\" one")];
                log::write(Level::Warn, "hashed\n\"it\"", &fields);
                Ok(prepared.input("input", blank()?))
            }
            "long-error" => Err(Failure::invalid_input("e".repeat(1 << 20))),
            "internal-error" => Err(Failure::internal("a secret of the plugin")),
            "wrong-name" => Ok(prepared.input("inptu", blank()?)),
            "wrong-dtype" => {
                let tensor = Tensor::from_slice(&[1, 1, 28, 28], &[0_i64; 784])?;
                Ok(prepared.input("input", tensor))
            }
            "wrong-shape" => {
                let tensor = Tensor::from_slice(&[1, 784], &BLANK)?;
                Ok(prepared.input("input", tensor))
            }
            "wrong-length" => {
                let tensor = Tensor::from_slice(&[1, 1, 28, 29], &BLANK)?;
                Ok(prepared.input("input", tensor))
            }
            "no-rows" => {
                let tensor = Tensor::from_slice::<f32>(&[0, 1, 28, 28], &[])?;
                Ok(prepared.input("input", tensor))
            }
            "no-inputs" => Ok(prepared),
            "bomb" => {
                // A BMP header of 65,535 x 65,535 pixels.
                Pixels::decode(&request.body, image::RGB)?;
                Ok(prepared.input("input", blank()?))
            }
            _ => Ok(prepared.input("input", blank()?)),
        }
    }

    fn postprocess(_outputs: Outputs, state: Vec<u8>) -> Result<Response, Failure> {
        match &state[..] {
            b"post-trap" => unreachable_trap(),
            b"post-loop" => loop {
                black_box(0);
            },
            b"huge-response" => Ok(Response::new("text/plain", vec![b'x'; 20 << 20])),
            b"bad-status" => Ok(Response { status: 99, ..Response::new("text/plain", "") }),
            b"bad-header" => Ok(Response::new("text/plain", "").header("x-plugin-a", "b\r\nx-c: d")),
            b"headers-for-proxies" => Ok(headers_for_proxies()),
            b"many-headers" => Ok(many_headers()),
            b"large-headers" => {
                let large = |name| (name, "v".repeat(7 << 10));
                let headers = ["x-plugin-a", "x-plugin-b", "x-plugin-c"].map(large);
                Ok(with_headers(headers))
            }
            b"large-type" => Ok(Response::new(&format!("text/{}", "x".repeat(1 << 20)), "")),
            b"remember" => Ok(Response::new("text/plain", remember())),
            _ => Ok(Response::new("text/plain", "harmless")),
        }
    }
}

fn with_headers<'a>(headers: impl IntoIterator<Item = (&'a str, String)>) -> Response {
    let answer = Response::new("text/plain", "harmless");
    headers.into_iter().fold(answer, |answer, (name, value)| answer.header(name, &value))
}

/// Headers that proxies obey, and one that is the plugin's own.
fn headers_for_proxies() -> Response {
    let names = [
        "x-accel-redirect",
        "x-sendfile",
        "x-frame-options",
        "x-accel-buffering",
        "x-request-id",
        "set-cookie",
        "x-plugin-own",
    ];
    with_headers(names.map(|name| (name, "/etc/passwd".to_owned())))
}

/// More of different names than a table of headers holds.
fn many_headers() -> Response {
    let names: Vec<_> = (0..40_000).map(|index| format!("x-plugin-{index}")).collect();
    with_headers(names.iter().map(|name| (name.as_str(), String::new())))
}

fn unreachable_trap() -> ! {
    #[cfg(target_arch = "wasm32")]
    core::arch::wasm32::unreachable();
    #[cfg(not(target_arch = "wasm32"))]
    panic!("a trap, on WebAssembly");
}

fn recurse(depth: u64) -> u64 {
    let frame = black_box([depth; 64]);
    if depth == u64::MAX { 0 } else { recurse(depth + 1) + frame[63] }
}

fn eat_memory() -> ! {
    let mut held = Vec::new();
    loop {
        held.push(black_box(vec![1_u8; 1 << 20]));
    }
}

fn eat_handles() -> ! {
    let mut held = Vec::new();
    loop {
        held.push(black_box(Tensor::from_slice(&[1], &[0_u8])));
    }
}

/// Makes tensors and lets go of each at once: never many at a time, but without end.
fn eat_host_memory() -> ! {
    let chunk = vec![0_u8; 1 << 20];
    loop {
        drop(black_box(Tensor::from_slice(&[chunk.len()], &chunk)));
    }
}

/// Says in the shape that it is huge, so that the product overflows.
fn huge_tensor() -> Result<Prepared, Failure> {
    let most = u32::MAX as usize;
    let tensor = Tensor::from_slice(&[most, most, most], &BLANK)?;
    Ok(Prepared::new().input("input", tensor))
}

/// How often this instance was called: 1, or one request can see another.
fn remember() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static CALLS: AtomicU32 = AtomicU32::new(0);
    (CALLS.fetch_add(1, Ordering::Relaxed) + 1).to_string()
}

gristmill_plugin::export_processor!(Hostile);
