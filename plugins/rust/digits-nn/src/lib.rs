//! The data of a tensor in, the three most probable classes of each of its rows out. It runs the
//! model through `wasi:nn`, with the bindings that wit-bindgen makes. The server has the model, so
//! `load_by_name` stands where a program that brings its model has `load`.
//!
//! The query may name another model than `digits`, another `type` than `FP32`, and other
//! `dimensions` than those of the rows of `digits` (`1,1,28,28`). With `load=true` the body is a
//! model, which no server loads. An error is answered with its code and its data; with
//! `pass-on=true` it is passed on to the server.

use gristmill_plugin::{Context, Failure, HandleError, Handler, InferError, Request, Response};
use serde::Serialize;

use crate::bindings::wasi::nn::errors::{Error, ErrorCode};
use crate::bindings::wasi::nn::graph::{ExecutionTarget, Graph, GraphEncoding, load, load_by_name};
use crate::bindings::wasi::nn::tensor::{Tensor, TensorType};

mod bindings {
    #![allow(clippy::all)]

    wit_bindgen::generate!({ path: "../../../host/sandbox/wit/wasi-nn.wit", world: "ml" });
}

/// The number of values of a row of `digits`.
const ROW: usize = 28 * 28;
const BEST: usize = 3;

/// The types of tensors, with the bytes of an element.
const TYPES: [(&str, TensorType, usize); 7] = [
    ("FP16", TensorType::Fp16, 2),
    ("FP32", TensorType::Fp32, 4),
    ("FP64", TensorType::Fp64, 8),
    ("BF16", TensorType::Bf16, 2),
    ("U8", TensorType::U8, 1),
    ("I32", TensorType::I32, 4),
    ("I64", TensorType::I64, 8),
];

struct Classifier;

#[derive(Serialize)]
struct Class {
    index: usize,
    probability: f32,
}

#[derive(Serialize)]
struct Answer {
    /// The outputs' names, types and dimensions.
    outputs: Vec<(String, &'static str, Vec<u32>)>,
    logits: Vec<f32>,
    best: Vec<Vec<Class>>,
}

#[derive(Serialize)]
struct Told {
    code: String,
    data: String,
}

impl Handler for Classifier {
    fn handle(_context: &Context, request: &Request) -> Result<Response, HandleError> {
        let data = request.body_bytes();
        let model = request.query_value("model").unwrap_or_else(|| "digits".into());
        let graph = match flag(request, "load") {
            true => load(&[data.clone()], GraphEncoding::Onnx, ExecutionTarget::Cpu),
            false => load_by_name(&model),
        };
        let graph = match graph {
            Ok(graph) => graph,
            Err(error) => return refused(request, &error),
        };
        match compute(&graph, ("input", tensor(request, &data)?)) {
            Ok(outputs) => Ok(Response::json(&answer(&outputs)?)?),
            Err(error) => refused(request, &error),
        }
    }
}

fn compute(graph: &Graph, (name, tensor): (&str, Tensor)) -> Result<Vec<(String, Tensor)>, Error> {
    let context = graph.init_execution_context()?;
    context.compute(vec![(name.to_string(), tensor)])
}

fn tensor(request: &Request, data: &[u8]) -> Result<Tensor, Failure> {
    let named = request.query_value("type").unwrap_or_else(|| "FP32".into());
    let found = TYPES.into_iter().find(|(name, ..)| *name == named);
    let (_, ty, size) =
        found.ok_or_else(|| Failure::invalid_input(format!("there is no type {named}")))?;
    let dimensions = match request.query_value("dimensions") {
        Some(listed) => listed.split(',').map(number).collect::<Result<_, _>>()?,
        None => vec![(data.len() / (ROW * size)) as u32, 1, 28, 28],
    };
    Ok(Tensor::new(&dimensions, ty, data))
}

/// The classes of the only output, whose dimensions are rows and classes.
fn answer(outputs: &[(String, Tensor)]) -> Result<Answer, Failure> {
    let [(_, output)] = outputs else {
        return Err(Failure::internal(format!("the model gave {} outputs", outputs.len())));
    };
    let described = |(name, tensor): &(String, Tensor)| {
        let ty = tensor.ty();
        let known = TYPES.into_iter().find(|(_, known, _)| *known == ty);
        (name.clone(), known.map_or("", |(name, ..)| name), tensor.dimensions())
    };
    let bytes = output.data();
    let logits: Vec<_> =
        bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    let classes = output.dimensions().get(1).copied().unwrap_or_default();
    let rows = logits.chunks(usize::max(classes as usize, 1));
    Ok(Answer {
        outputs: outputs.iter().map(described).collect(),
        best: rows.map(best).collect(),
        logits,
    })
}

/// The most probable classes of a row, by softmax.
fn best(logits: &[f32]) -> Vec<Class> {
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: Vec<_> = logits.iter().map(|logit| (logit - max).exp()).collect();
    let sum: f32 = powers.iter().sum();
    let class = |(index, power): (usize, &f32)| Class { index, probability: power / sum };
    let mut classes: Vec<_> = powers.iter().enumerate().map(class).collect();
    classes.sort_by(|one, other| other.probability.total_cmp(&one.probability));
    classes.truncate(BEST);
    classes
}

fn refused(request: &Request, error: &Error) -> Result<Response, HandleError> {
    let (code, data) = (error.code(), error.data());
    if flag(request, "pass-on") {
        return Err(match code {
            ErrorCode::InvalidArgument => InferError::InvalidInput(data).into(),
            ErrorCode::NotFound => InferError::NotGranted(data).into(),
            _ => InferError::Failed(data).into(),
        });
    }
    let told = Told { code: format!("{code:?}"), data };
    Ok(Response { status: 422, ..Response::json(&told)? })
}

fn flag(request: &Request, name: &str) -> bool {
    request.query_value(name).is_some_and(|value| value == "true")
}

fn number(text: &str) -> Result<u32, Failure> {
    text.parse().map_err(|error: std::num::ParseIntError| {
        Failure::invalid_input(format!("{text}: {error}"))
    })
}

gristmill_plugin::export_handler!(Classifier);
