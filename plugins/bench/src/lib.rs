//! The guest of the sandbox benchmarks. `?floats=n` makes a tensor of n numbers, `?fill=n` only
//! makes the numbers. Without either the call does nothing.

use std::hint::black_box;

use gristmill_plugin::{Context, Failure, Prepared, Preprocessor, Request, Tensor};

struct Bench;

impl Preprocessor for Bench {
    fn preprocess(_context: &Context, request: &Request) -> Result<Prepared, Failure> {
        if let Some(floats) = request.query_value("floats") {
            let values = values(&floats)?;
            let input = Tensor::from_slice(&[1, values.len()], &values)?;
            return Ok(Prepared::new().input("input", input));
        }
        if let Some(floats) = request.query_value("fill") {
            black_box(values(&floats)?);
        }
        Ok(Prepared::new())
    }
}

fn values(floats: &str) -> Result<Vec<f32>, Failure> {
    let fault = |error| Failure::invalid_input(format!("{floats:?} is not a count: {error}"));
    Ok(vec![0.5_f32; floats.parse().map_err(fault)?])
}

gristmill_plugin::export_preprocessor!(Bench);
