//! A handler that misbehaves with its runs of models. The text of the body names the deed. Tests
//! check that only its own requests fail.
//!
//! Its pipeline names the model `digits`, and no other one.

use std::hint::black_box;

use gristmill_plugin::models::{self, Run};
use gristmill_plugin::{
    Context, Failure, HandleError, Handler, InferError, Outputs, Request, Response, Tensor,
};

use crate::bindings::wasi::nn::graph::load_by_name;

mod bindings {
    #![allow(clippy::all)]

    wit_bindgen::generate!({ path: "../../../host/sandbox/wit/wasi-nn.wit", world: "ml" });
}

const MODEL: &str = "digits";
/// A model that its pipeline does not name.
const SECRET: &str = "secret";
/// The number of runs that one call asks for at a time.
const RUNS: usize = 1_000;
/// As many as it may ask for at a time.
const WAVE: usize = 256;

/// What the handler does before it answers. A deed without an end returns only with an error.
type Deed = fn() -> Result<Response, HandleError>;

const DEEDS: &[(&str, Deed)] = &[
    ("", || text(&format!("{} outputs", run()?.names().len()))),
    ("infer-forever", infer_forever),
    ("infer-many", infer_many),
    ("infer-waves", infer_waves),
    ("not-granted", || outputs_of(models::infer(SECRET, &[("input", &blank()?)])?)),
    ("not-granted-caught", not_granted_caught),
    ("wrong-input", || outputs_of(models::infer(MODEL, &[("inptu", &blank()?)])?)),
    ("wrong-shape", wrong_shape),
    ("long-name", || outputs_of(models::infer(&"\u{7f}".repeat(16 << 20), &[])?)),
    ("long-names", long_names),
    ("keep-tensors", keep_tensors),
    ("keep-graphs", keep_graphs),
    ("spin", spin),
    ("trap", trap),
    ("same", same),
    ("infer-100", infer_100),
    ("forged", || Err(InferError::Overloaded("as told".into()).into())),
];

struct Hostile;

impl Handler for Hostile {
    fn handle(_context: &Context, request: &Request) -> Result<Response, HandleError> {
        let name = request.text()?;
        match DEEDS.iter().find(|(own, _)| *own == name) {
            Some((_, deed)) => deed(),
            None => Err(Failure::invalid_input(format!("there is no deed {name:?}")).into()),
        }
    }
}

/// Runs the model without end, and drops the outputs before the next run.
fn infer_forever() -> Result<Response, HandleError> {
    let blank = blank()?;
    loop {
        drop(black_box(models::infer(MODEL, &[("input", &blank)])?));
    }
}

/// Asks for all runs in one call.
fn infer_many() -> Result<Response, HandleError> {
    let blank = blank()?;
    let runs: Vec<_> = (0..RUNS).map(|_| Run::new(MODEL).input("input", &blank)).collect();
    let outcomes = models::infer_all(&runs);
    let answered = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    text(&format!("{answered} of {RUNS} runs gave outputs"))
}

/// Asks for as many runs as it may in one call, again and again.
fn infer_waves() -> Result<Response, HandleError> {
    let blank = blank()?;
    let runs: Vec<_> = (0..WAVE).map(|_| Run::new(MODEL).input("input", &blank)).collect();
    loop {
        drop(black_box(models::infer_all(&runs)));
    }
}

/// Asks for models whose names take long to print.
fn long_names() -> Result<Response, HandleError> {
    let name = "\u{7f}".repeat(64 << 10);
    let runs: Vec<_> = (0..250).map(|_| Run::new(&name)).collect();
    let refused = models::infer_all(&runs).iter().filter(|outcome| outcome.is_err()).count();
    text(&refused.to_string())
}

/// Keeps models of `wasi:nn`, and what runs them, without end.
fn keep_graphs() -> Result<Response, HandleError> {
    let mut kept = Vec::new();
    loop {
        let graph = load_by_name(MODEL).map_err(|error| Failure::internal(error.data()))?;
        kept.push((graph.init_execution_context().ok(), graph));
    }
}

/// Answers with the error of a model that it may not run.
fn not_granted_caught() -> Result<Response, HandleError> {
    match models::infer(SECRET, &[("input", &blank()?)]) {
        Ok(outputs) => outputs_of(outputs),
        Err(error) => text(error.text()),
    }
}

fn wrong_shape() -> Result<Response, HandleError> {
    let flat = Tensor::from_slice(&[1, 784], &BLANK)?;
    outputs_of(models::infer(MODEL, &[("input", &flat)])?)
}

/// Keeps the outputs of all runs until the call is ended.
fn keep_tensors() -> Result<Response, HandleError> {
    let blank = blank()?;
    let mut kept = Vec::new();
    loop {
        kept.push(black_box(models::infer(MODEL, &[("input", &blank)])?));
    }
}

/// Uses CPU time without end after a run.
fn spin() -> Result<Response, HandleError> {
    let outputs = run()?;
    loop {
        black_box(&outputs);
    }
}

fn trap() -> Result<Response, HandleError> {
    let outputs = run()?;
    panic!("as told, with {} outputs", outputs.names().len());
}

/// Gives one tensor to four runs at the same time. Not hostile: all must have the same outputs.
fn same() -> Result<Response, HandleError> {
    let blank = blank()?;
    let runs = [(); 4].map(|()| Run::new(MODEL).input("input", &blank));
    let outcomes = models::infer_all(&runs);
    let outputs = outcomes.into_iter().collect::<Result<Vec<_>, _>>()?;
    let logits = outputs.iter().map(|outputs| Ok(outputs.get("output")?.data()));
    let logits = logits.collect::<Result<Vec<_>, Failure>>()?;
    assert!(logits.iter().all(|other| *other == logits[0]), "the outputs differ");
    text(&outputs.len().to_string())
}

/// Runs the model a hundred times, one after the other. Not hostile: a benchmark measures it.
fn infer_100() -> Result<Response, HandleError> {
    let blank = blank()?;
    for _ in 0..100 {
        drop(black_box(models::infer(MODEL, &[("input", &blank)])?));
    }
    text("100")
}

/// One run of the model as it wants it.
fn run() -> Result<Outputs, HandleError> {
    Ok(models::infer(MODEL, &[("input", &blank()?)])?)
}

/// An answer that only a fault of the host can let happen.
fn outputs_of(outputs: Outputs) -> Result<Response, HandleError> {
    text(&format!("the host gave {} outputs", outputs.names().len()))
}

fn text(text: &str) -> Result<Response, HandleError> {
    Ok(Response::new("text/plain", text))
}

fn blank() -> Result<Tensor, Failure> {
    Ok(Tensor::from_slice(&[1, 1, 28, 28], &BLANK)?)
}

const BLANK: [f32; 784] = [0.0; 784];

gristmill_plugin::export_handler!(Hostile);

#[cfg(test)]
mod tests {
    use gristmill_plugin::testing;

    use super::*;

    fn told(deed: &str) -> Result<Response, HandleError> {
        let request = testing::request().body(deed).build();
        Hostile::handle(&testing::context().build(), &request)
    }

    #[test]
    fn deeds_that_end_do_what_their_names_say() {
        let _digits = testing::model(MODEL, |inputs| match inputs {
            [("input", input)] if input.dims() == [1, 1, 28, 28] => {
                let logits = Tensor::from_slice(&[1, 10], &[0.0_f32; 10]).unwrap();
                Ok(testing::outputs([("output", logits)]))
            }
            _ => Err(InferError::InvalidInput("as told".into())),
        });
        assert_eq!(told("").unwrap().body, b"1 outputs");
        assert_eq!(told("same").unwrap().body, b"4");
        assert_eq!(told("infer-100").unwrap().body, b"100");
        assert_eq!(told("infer-many").unwrap().body, b"1000 of 1000 runs gave outputs");
        for deed in ["wrong-input", "wrong-shape"] {
            let error = told(deed).unwrap_err();
            let refused = InferError::InvalidInput("as told".into());
            assert_eq!(error, HandleError::Infer(refused), "{deed}");
        }
        let error = told("not-granted").unwrap_err();
        assert!(matches!(error, HandleError::Infer(InferError::NotGranted(_))), "{error:?}");
        let caught = told("not-granted-caught").unwrap();
        assert!(caught.body.starts_with(b"this test has no model \"secret\""));
        let forged = told("forged").unwrap_err();
        assert_eq!(forged, HandleError::Infer(InferError::Overloaded("as told".into())));
        assert!(matches!(told("nothing"), Err(HandleError::Failure(Failure::InvalidInput(_)))));
    }
}
