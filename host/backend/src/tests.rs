//! Runs the same goldens on every available backend.

use std::sync::{Arc, OnceLock};

use gristmill_core::{BufferPool, Dtype, Tensor};
use prost::Message;
use serde_json::Value;
use tract_onnx::pb::ModelProto;

use crate::{Backends, LibrarySearch, LoadOptions, ProviderKind, RowProof};

pub(crate) fn models() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models")
}

/// One for all tests, because a process has only one.
pub(crate) fn backends() -> &'static Backends {
    static BACKENDS: OnceLock<Arc<Backends>> = OnceLock::new();
    BACKENDS.get_or_init(|| {
        Backends::open(&LibrarySearch::default(), BufferPool::new(1 << 20), usize::MAX).unwrap()
    })
}

pub(crate) fn options(provider: ProviderKind) -> LoadOptions {
    LoadOptions { providers: vec![provider], ..LoadOptions::default() }
}

fn tensor(pool: &BufferPool, json: &Value) -> Tensor {
    let shape = json["shape"].as_array().unwrap().iter().map(|dim| dim.as_u64().unwrap() as usize);
    let data: Vec<f32> = json["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|value| value.as_f64().unwrap() as f32)
        .collect();
    let buffer = pool.copy_from(bytemuck::cast_slice(&data));
    Tensor::new(Dtype::Float32, shape.collect(), buffer).unwrap()
}

fn goldens_pass(provider: ProviderKind, name: &str, tolerance: f32) {
    let pool = BufferPool::new(1 << 20);
    let onnx = std::fs::read(models().join(format!("{name}/{name}.onnx"))).unwrap();
    let mut model = backends().load(&onnx, &options(provider), &RowProof::default()).unwrap();
    assert_eq!(model.info.inputs[0].name.as_ref(), "input");
    assert_eq!(model.info.outputs[0].name.as_ref(), "output");
    assert!(model.info.has_open_rows());
    let golden = std::fs::read(models().join(format!("{name}/golden.json"))).unwrap();
    let golden: Value = serde_json::from_slice(&golden).unwrap();
    for case in golden["cases"].as_array().unwrap() {
        let input = tensor(&pool, &case["inputs"][0]);
        let expected = tensor(&pool, &case["outputs"][0]);
        let output = model.instances[0].run(&[input]).unwrap().remove(0);
        assert_eq!(output.shape(), expected.shape());
        for (value, expected) in output.as_f32().unwrap().iter().zip(expected.as_f32().unwrap()) {
            assert!((value - expected).abs() <= tolerance, "{value} is not {expected}");
        }
    }
}

#[test]
fn goldens_on_onnxruntime() {
    goldens_pass(ProviderKind::Cpu, "digits", 1e-3);
    goldens_pass(ProviderKind::Cpu, "ranker", 1e-5);
}

#[test]
fn goldens_on_tract() {
    goldens_pass(ProviderKind::Tract, "digits", 1e-3);
    goldens_pass(ProviderKind::Tract, "ranker", 1e-5);
}

#[test]
fn what_is_no_model_is_refused() {
    let error = backends()
        .load(b"not an onnx file", &LoadOptions::default(), &RowProof::default())
        .err()
        .unwrap();
    assert!(error.to_string().starts_with("the file is not an ONNX model"), "{error}");
}

#[test]
fn a_model_of_an_opset_that_nobody_knows_is_refused_by_each_backend() {
    let onnx = std::fs::read(models().join("digits/digits.onnx")).unwrap();
    let mut model = ModelProto::decode(&onnx[..]).unwrap();
    model.opset_import[0].version = 99;
    let error = backends()
        .load(&model.encode_to_vec(), &LoadOptions::default(), &RowProof::default())
        .err()
        .unwrap();
    let text = error.to_string();
    for named in ["(opset 99)", "onnxruntime: ", "tract: opset 99 is newer"] {
        assert!(text.contains(named), "{text}");
    }
}

#[test]
fn a_provider_behind_the_first_stands_by() {
    let onnx = std::fs::read(models().join("digits/digits.onnx")).unwrap();
    let providers = vec![ProviderKind::Cuda, ProviderKind::Cpu, ProviderKind::Tract];
    let options = LoadOptions { providers, instances: 2, ..LoadOptions::default() };
    let model = backends().load(&onnx, &options, &RowProof::default()).unwrap();
    // This library has no CUDA, so the next provider serves.
    let names: Vec<_> = model.providers.iter().map(|provider| provider.name).collect();
    assert_eq!(names, ["cpu", "tract"]);
    assert_eq!(model.instances.len(), 2);
}

#[test]
fn a_configured_library_that_is_not_there_is_an_error() {
    let search = LibrarySearch {
        configured: Some("/nonexistent/libonnxruntime.so".into()),
        data_directory: None,
    };
    let error = Backends::open(&search, BufferPool::new(0), usize::MAX).err().unwrap().to_string();
    assert!(error.contains("/nonexistent/libonnxruntime.so"), "{error}");
}
