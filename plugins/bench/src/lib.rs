//! The guest of the sandbox benchmarks. `?floats=n` makes a tensor of n numbers. Without it the
//! call does nothing.

use gristmill_plugin::{Context, Failure, Prepared, Preprocessor, Request, Tensor};

struct Bench;

impl Preprocessor for Bench {
    fn preprocess(_context: &Context, request: &Request) -> Result<Prepared, Failure> {
        let Some(floats) = request.query_value("floats") else { return Ok(Prepared::new()) };
        let fault = |error| Failure::invalid_input(format!("floats is {floats:?}: {error}"));
        let floats: usize = floats.parse().map_err(fault)?;
        let values = vec![0.5_f32; floats];
        Ok(Prepared::new().input("input", Tensor::from_slice(&[1, floats], &values)?))
    }
}

gristmill_plugin::export_preprocessor!(Bench);
