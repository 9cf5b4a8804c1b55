//! Rows of numbers in, the model's output for each row out.

use gristmill_plugin::{
    Context, Failure, Outputs, Prepared, Processor, Request, Response, Tensor, info,
};
use serde_json::json;

/// The names of the model's input and output.
const INPUT: &str = "input";
const OUTPUT: &str = "output";

struct Plugin;

impl Processor for Plugin {
    fn preprocess(_context: &Context, request: &Request) -> Result<Prepared, Failure> {
        let rows: Vec<Vec<f32>> = request.json()?;
        let width = rows.first().map_or(0, Vec::len);
        if width == 0 {
            return Err(Failure::invalid_input("the body is not a list of rows: [[1, 2], [3, 4]]"));
        }
        if let Some(index) = rows.iter().position(|row| row.len() != width) {
            let numbers = rows[index].len();
            let text = format!("row {index} has {numbers} numbers, but the first one has {width}");
            return Err(Failure::invalid_input(text));
        }
        info!(rows = rows.len(), width, "rows read");
        let input = Tensor::from_slice(&[rows.len(), width], &rows.concat())?;
        Ok(Prepared::new().input(INPUT, input))
    }

    fn postprocess(
        _context: &Context,
        outputs: Outputs,
        _state: Vec<u8>,
    ) -> Result<Response, Failure> {
        let rows = outputs.view::<f32>(OUTPUT, &[None, None])?;
        Response::json(&json!({ "outputs": rows.rows().collect::<Vec<_>>() }))
    }
}

gristmill_plugin::export_processor!(Plugin);

#[cfg(test)]
mod tests;
