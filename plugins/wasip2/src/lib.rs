//! What Rust's standard library does in a plugin that cargo alone has built, for `wasm32-wasip2`.
//! `?do=` names the deed.
//!
//! `plugins/fixtures/wasip2/wasip2-std.wasm` is this crate, built by
//!
//! ```text
//! rustup target add wasm32-wasip2
//! cargo build --release --target wasm32-wasip2 --package wasip2-std
//! ```
//!
//! It is for the model `digits`, which gets a blank picture.

use std::collections::HashMap;
use std::net::TcpStream;
use std::time::{Duration, Instant, SystemTime};

use gristmill_plugin::{Context, Failure, Outputs, Prepared, Processor, Request, Response, Tensor};

struct Std;

impl Processor for Std {
    fn preprocess(_context: &Context, request: &Request) -> Result<Prepared, Failure> {
        let name = request.query_value("do").unwrap_or_default();
        let answer =
            deed(&name).ok_or_else(|| Failure::invalid_input(format!("no deed {name}")))?;
        let input = Tensor::from_slice(&[1, 1, 28, 28], &[0.0_f32; 784])?;
        Ok(Prepared::new().input("input", input).state(answer.into_bytes()))
    }

    fn postprocess(_: &Context, _: Outputs, state: Vec<u8>) -> Result<Response, Failure> {
        Ok(Response::new("text/plain", state))
    }
}

fn deed(name: &str) -> Option<String> {
    Some(match name {
        "lines" => {
            println!("a line of std");
            eprintln!("a warning of std");
            String::new()
        }
        "clocks" => {
            let begun = Instant::now();
            std::thread::sleep(Duration::from_millis(20));
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            let is_later = begun.elapsed() >= Duration::from_millis(20);
            format!("{is_later} {}", now.is_ok_and(|now| now.as_secs() > 1_700_000_000))
        }
        // Its hasher takes random numbers.
        "map" => HashMap::from([("a", 1)])["a"].to_string(),
        "looks" => {
            let arguments = std::env::args().count();
            let variables = std::env::vars().count();
            let file = std::fs::read("/etc/hostname").is_ok();
            let folder = std::fs::read_dir("/").is_ok();
            let socket = TcpStream::connect("127.0.0.1:80").is_ok();
            let thread = std::thread::Builder::new().spawn(|| ()).is_ok();
            format!("{arguments} {variables} {file} {folder} {socket} {thread}")
        }
        "panic" => panic!("order 42 is bad"),
        "exit" => std::process::exit(3),
        _ => return None,
    })
}

gristmill_plugin::export_processor!(Std);
