//! Runs exported node tests (`benches/conformance/export.py`) through the `backend` crate, or on
//! tract alone.
//!
//! `conformance <onnxruntime|tract|plain-tract> <folder of cases> [first]` prints the name of each
//! test before it runs, and its verdict afterwards: `name<TAB>verdict<TAB>reason`. If a test ends
//! the process, its name has no verdict; the caller continues with the next one by naming it as
//! `first`.

mod plain_tract;

use std::fmt::Display;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use gristmill_backend::{Backends, LibrarySearch, LoadOptions, ProviderKind, RowProof};
use gristmill_core::{BufferPool, Dtype, NamedTensor, Tensor};
use serde_json::Value;

use plain_tract::PlainTract;

/// The runtime of the tests.
enum Runner {
    Backend { backends: Arc<Backends>, provider: ProviderKind },
    PlainTract,
}

/// The outcome of a test.
enum Verdict {
    Passed,
    Failed(String),
    Unsupported(String),
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [backend, folder, rest @ ..] = &args[..] else {
        bail!("usage: conformance <onnxruntime|tract|plain-tract> <folder of cases> [first]");
    };
    let pool = BufferPool::new(64 << 20);
    let of = |provider| {
        let backends = Backends::open(&LibrarySearch::default(), pool.clone(), usize::MAX)?;
        anyhow::Ok(Runner::Backend { backends, provider })
    };
    let runner = match backend.as_str() {
        "onnxruntime" => of(ProviderKind::Cpu)?,
        "tract" => of(ProviderKind::Tract)?,
        "plain-tract" => Runner::PlainTract,
        other => bail!("no backend {other:?}: there are onnxruntime, tract and plain-tract"),
    };
    let mut cases: Vec<_> =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    cases.sort();
    let first = rest.first().map_or("", String::as_str);
    let mut out = std::io::stdout().lock();
    for case in cases {
        let name = case.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.as_str() < first {
            continue;
        }
        write!(out, "{name}\t")?;
        out.flush()?;
        let (verdict, why) = match run(&case, &runner, &pool) {
            Ok(Verdict::Passed) => ("passed", String::new()),
            Ok(Verdict::Failed(why)) => ("failed", why),
            Ok(Verdict::Unsupported(why)) => ("unsupported", why),
            Err(error) => ("failed", format!("{error:#}")),
        };
        writeln!(out, "{verdict}\t{}", why.replace(['\n', '\t'], " "))?;
    }
    Ok(())
}

fn run(case: &Path, runner: &Runner, pool: &BufferPool) -> Result<Verdict> {
    let document: Value = serde_json::from_slice(&std::fs::read(case.join("case.json"))?)?;
    if let Some(why) = document["unsupported"].as_str() {
        return Ok(Verdict::Unsupported(why.into()));
    }
    let onnx = std::fs::read(case.join("model.onnx"))?;
    let inputs = tensors(case, &document["inputs"], pool)?;
    let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| match runner {
        Runner::Backend { backends, provider } => run_backend(backends, *provider, &onnx, inputs),
        Runner::PlainTract => run_plain(&onnx, &inputs, pool),
    }));
    let outputs = match ran {
        Ok(Ok(outputs)) => outputs,
        Ok(Err(verdict)) => return Ok(verdict),
        Err(_) => return Ok(Verdict::Failed("panicked".into())),
    };
    let (rtol, atol) = (number(&document["rtol"])?, number(&document["atol"])?);
    for expected in tensors(case, &document["outputs"], pool)? {
        let Some(actual) = outputs.iter().find(|output| output.name == expected.name) else {
            return Ok(Verdict::Failed(format!("no output {:?}", expected.name)));
        };
        if let Some(why) = difference(&actual.tensor, &expected.tensor, rtol, atol) {
            return Ok(Verdict::Failed(format!("output {:?}: {why}", expected.name)));
        }
    }
    Ok(Verdict::Passed)
}

fn run_backend(
    backends: &Backends,
    provider: ProviderKind,
    onnx: &[u8],
    mut inputs: Vec<NamedTensor>,
) -> Result<Vec<NamedTensor>, Verdict> {
    let failed = |error: &dyn Display| Verdict::Failed(error.to_string());
    let options = LoadOptions { providers: vec![provider], ..LoadOptions::default() };
    let loaded = backends.load(onnx, &options, &RowProof::default());
    let mut model = loaded.map_err(|error| Verdict::Unsupported(error.to_string()))?;
    model.info.arrange(&mut inputs).map_err(|error| failed(&error))?;
    let inputs: Vec<Tensor> = inputs.into_iter().map(|input| input.tensor).collect();
    let outputs = model.instances[0].run(&inputs).map_err(|error| failed(&error))?;
    let named = model.info.outputs.iter().zip(outputs);
    Ok(named.map(|(info, tensor)| NamedTensor { name: info.name.clone(), tensor }).collect())
}

fn run_plain(
    onnx: &[u8],
    inputs: &[NamedTensor],
    pool: &BufferPool,
) -> Result<Vec<NamedTensor>, Verdict> {
    let loaded = PlainTract::load(onnx, inputs);
    let model = loaded.map_err(|error| Verdict::Unsupported(format!("{error:#}")))?;
    model.run(inputs, pool).map_err(|error| Verdict::Failed(format!("{error:#}")))
}

fn number(value: &Value) -> Result<f64> {
    value.as_f64().context("not a number")
}

fn tensors(case: &Path, list: &Value, pool: &BufferPool) -> Result<Vec<NamedTensor>> {
    let list = list.as_array().context("no list of tensors")?;
    list.iter()
        .map(|tensor| {
            let text = |key: &str| tensor[key].as_str().with_context(|| format!("no {key}"));
            let shape = tensor["shape"].as_array().context("no shape")?;
            let shape = shape.iter().map(|dim| dim.as_u64().map(|dim| dim as usize));
            let bytes = std::fs::read(case.join(text("file")?))?;
            let dtype = Dtype::named(text("datatype")?).context("not a datatype")?;
            let shape = shape.collect::<Option<_>>().context("not a shape")?;
            let tensor = Tensor::new(dtype, shape, pool.copy_from(&bytes))?;
            Ok(NamedTensor { name: text("name")?.into(), tensor })
        })
        .collect()
}

/// The difference between `actual` and `expected`, in words. None if they are the same within
/// tolerance.
fn difference(actual: &Tensor, expected: &Tensor, rtol: f64, atol: f64) -> Option<String> {
    if actual.dtype() != expected.dtype() || actual.shape() != expected.shape() {
        let (dtype, shape) = (actual.dtype(), actual.shape());
        let (wanted, wanted_shape) = (expected.dtype(), expected.shape());
        return Some(format!("{dtype} {shape:?} instead of {wanted} {wanted_shape:?}"));
    }
    if let Some((mut actual, mut expected)) = actual.texts().zip(expected.texts()) {
        return (!actual.by_ref().eq(expected.by_ref())).then(|| "other strings".into());
    }
    let (actual, expected) = (numbers(actual), numbers(expected));
    let same = |a: f64, e: f64| {
        a == e || (a.is_nan() && e.is_nan()) || (a - e).abs() <= atol + rtol * e.abs()
    };
    let at = actual.iter().zip(&expected).position(|(a, e)| !same(*a, *e))?;
    Some(format!("element {at} is {} instead of {}", actual[at], expected[at]))
}

fn numbers(tensor: &Tensor) -> Vec<f64> {
    fn read<const N: usize>(bytes: &[u8], number: impl Fn([u8; N]) -> f64) -> Vec<f64> {
        bytes.as_chunks::<N>().0.iter().map(|chunk| number(*chunk)).collect()
    }
    let bytes = tensor.as_bytes();
    match tensor.dtype() {
        Dtype::Bool | Dtype::Uint8 => read(bytes, |[byte]| byte.into()),
        Dtype::Int8 => read(bytes, |byte| i8::from_le_bytes(byte).into()),
        Dtype::Uint16 => read(bytes, |bytes| u16::from_le_bytes(bytes).into()),
        Dtype::Int16 => read(bytes, |bytes| i16::from_le_bytes(bytes).into()),
        Dtype::Uint32 => read(bytes, |bytes| u32::from_le_bytes(bytes).into()),
        Dtype::Int32 => read(bytes, |bytes| i32::from_le_bytes(bytes).into()),
        Dtype::Uint64 => read(bytes, |bytes| u64::from_le_bytes(bytes) as f64),
        Dtype::Int64 => read(bytes, |bytes| i64::from_le_bytes(bytes) as f64),
        Dtype::Float16 => read(bytes, |bytes| half::f16::from_le_bytes(bytes).into()),
        Dtype::Bfloat16 => read(bytes, |bytes| half::bf16::from_le_bytes(bytes).into()),
        Dtype::Float32 => read(bytes, |bytes| f32::from_le_bytes(bytes).into()),
        Dtype::Float64 => read(bytes, f64::from_le_bytes),
        Dtype::String => Vec::new(),
    }
}
