//! A plugin that misbehaves in many ways, called deeds. `?do=` names the deed. Tests and benchmarks
//! upload it beside honest plugins and check that only its own requests fail.
//!
//! It is for the model `digits`. A deed that does not concern the model sends it a blank picture.
//! Deeds about pictures take one from the request's body. Each module has the deeds against one
//! part of the host.

mod answers;
mod arrays;
mod assets;
mod blobs;
mod context;
mod ends;
mod inputs;
mod kept;
mod logs;
mod memory;
mod operations;
mod pictures;
mod reuse;
mod stores;
mod tables;
mod tensors;
mod tokens;

use gristmill_plugin::{Context, Failure, Outputs, Prepared, Processor, Request, Response, Tensor};

/// A deed of `preprocess`. If the host does not stop it, it returns harmless inputs.
type Deed = fn(&Request) -> Result<Prepared, Failure>;

const DEEDS: [&[(&str, Deed)]; 16] = [
    answers::STATES,
    arrays::DEEDS,
    assets::DEEDS,
    blobs::DEEDS,
    ends::DEEDS,
    inputs::DEEDS,
    kept::DEEDS,
    logs::DEEDS,
    memory::DEEDS,
    operations::DEEDS,
    pictures::DEEDS,
    reuse::DEEDS,
    stores::DEEDS,
    tables::DEEDS,
    tensors::DEEDS,
    tokens::DEEDS,
];

struct Hostile;

impl Processor for Hostile {
    fn preprocess(context: &Context, request: &Request) -> Result<Prepared, Failure> {
        // Requests of the Open Inference Protocol have no query. There the body may name the deed.
        let name = request.query_value("do").or_else(|| told(request)).unwrap_or_default();
        if name == context::NAME {
            return context::prepared(context, request);
        }
        let deed = DEEDS.into_iter().flatten().find(|(own, _)| *own == name);
        let mut prepared = match deed {
            Some((_, deed)) => deed(request)?,
            None if name.is_empty() || answers::find(name.as_bytes()).is_some() => harmless()?,
            None => return Err(Failure::invalid_input(format!("there is no deed {name:?}"))),
        };
        if prepared.state.is_empty() {
            // The deed of `postprocess`.
            prepared.state = name.into();
        }
        Ok(prepared)
    }

    fn postprocess(
        context: &Context,
        outputs: Outputs,
        state: Vec<u8>,
    ) -> Result<Response, Failure> {
        if let Some(pixels) = state.strip_prefix(pictures::PIXELS) {
            return Ok(Response::new("application/octet-stream", pixels));
        }
        if let Some(answer) = context::answer(context, &state) {
            return Ok(answer);
        }
        if let Some(answer) = kept::answer(&state) {
            return answer;
        }
        if let Some(answer) = reuse::answer(&state, outputs) {
            return Ok(answer);
        }
        match answers::find(&state) {
            Some(answer) => Ok(answer()),
            None => Ok(Response::new("text/plain", "harmless")),
        }
    }
}

/// The deed that the body names, as `do=..`.
fn told(request: &Request) -> Option<String> {
    request.text().ok()?.strip_prefix("do=").map(str::to_owned)
}

/// Inputs that the model takes.
fn harmless() -> Result<Prepared, Failure> {
    Ok(Prepared::new().input("input", blank()?))
}

fn blank() -> Result<Tensor, Failure> {
    Ok(Tensor::from_slice(&[1, 1, 28, 28], &BLANK)?)
}

const BLANK: [f32; 784] = [0.0; 784];

gristmill_plugin::export_processor!(Hostile);
