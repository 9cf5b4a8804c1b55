//! The guest of the control benchmark. Its answer has the marks of the two plugins and the model's
//! number: `mark-000007 mark-000007 3`. The benchmark writes another mark into each version's file.

use std::hint::black_box;

use gristmill_plugin::{Context, Failure, Outputs, Prepared, Processor, Request, Response, Tensor};

static MARK: [u8; 11] = *b"mark-000000";

struct Marked;

impl Processor for Marked {
    fn preprocess(_context: &Context, _request: &Request) -> Result<Prepared, Failure> {
        let input = Tensor::from_slice(&[1, 1], &[0_f32])?;
        Ok(Prepared::new().input("x", input).state(black_box(&MARK).to_vec()))
    }

    fn postprocess(
        _context: &Context,
        outputs: Outputs,
        state: Vec<u8>,
    ) -> Result<Response, Failure> {
        let number = outputs.view::<f32>("y", &[Some(1), Some(1)])?.as_slice()[0];
        let (pre, post) =
            (String::from_utf8_lossy(&state), String::from_utf8_lossy(black_box(&MARK)));
        Ok(Response::new("text/plain", format!("{pre} {post} {number}")))
    }
}

gristmill_plugin::export_processor!(Marked);
