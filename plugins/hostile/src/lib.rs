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
        let deed = request.query_value("do").unwrap_or_default();
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
            b"bad-header" => Ok(Response::new("text/plain", "").header("x-a", "b\r\nx-c: d")),
            b"remember" => Ok(Response::new("text/plain", remember())),
            _ => Ok(Response::new("text/plain", "harmless")),
        }
    }
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
