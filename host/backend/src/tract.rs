//! tract: a backend in pure Rust. It is always available, and several times slower than ONNX
//! Runtime.

use std::sync::Arc;

use gristmill_core::{BufferPool, Dtype, Model, ModelError, ModelInfo, Tensor, TensorInfo};
use tract_onnx::prelude::{
    DatumType, Framework, InferenceModelExt, IntoRunnable, IntoTValue, TValue, TVec, ToDim,
    TypedFact, TypedRunnableModel,
};
use tract_onnx::tract_hir::internal::{DimFact, DimLike, Factoid, InferenceFact, ShapeFactoid};

use crate::element_type::{unsupported, with_element_type};
use crate::error::ProviderError;
use crate::inspect::Inspected;
use crate::loaded::Loaded;
use crate::options::{LoadOptions, TRACT};

/// The newest opset that `cargo xtask conformance` runs. tract itself accepts any opset.
const OPSET_MAX: i64 = 28;

pub(crate) fn load(
    onnx: &[u8],
    options: &LoadOptions,
    pool: &BufferPool,
    Inspected { opset, operators, .. }: &Inspected,
) -> Result<Loaded, ProviderError> {
    if *opset > OPSET_MAX {
        return Err(ProviderError::Opset { opset: *opset, max: OPSET_MAX });
    }
    let known = tract_onnx::onnx().op_register.0;
    // tract knows the operators for classical machine learning without their domain.
    let is_known =
        |name: &str| known.contains_key(name.strip_prefix("ai.onnx.ml.").unwrap_or(name));
    let unknown: Vec<_> = operators.iter().filter(|name| !is_known(name)).cloned().collect();
    if !unknown.is_empty() {
        return Err(ProviderError::Operators(unknown));
    }
    // tract panics on some malformed graphs, which must not end the host. This is not a model's
    // run, which `run_guarded` guards.
    let loading = std::panic::catch_unwind(|| load_plan(onnx));
    let (plan, info) = loading.unwrap_or(Err(ProviderError::Panicked))?;
    let instance = || {
        let (plan, dtypes) =
            (plan.clone(), info.outputs.iter().map(|output| output.dtype).collect());
        Box::new(Instance { plan, output_dtypes: dtypes, pool: pool.clone() }) as Box<dyn Model>
    };
    let instances = (0..options.instances).map(|_| instance()).collect();
    Ok(Loaded { info, instances, session_sizes: Vec::new(), staging: None })
}

type Plan = Arc<TypedRunnableModel>;

fn load_plan(onnx: &[u8]) -> Result<(Plan, ModelInfo), ProviderError> {
    let why = ProviderError::Tract;
    let mut model =
        tract_onnx::onnx().model_for_read(&mut std::io::Cursor::new(onnx)).map_err(why)?;
    for index in 0..model.input_outlets().map_err(why)?.len() {
        let fact = with_symbols(&model, index).map_err(why)?;
        model.set_input_fact(index, fact).map_err(why)?;
    }
    let outlets = model.output_outlets().map_err(why)?.to_vec();
    let output_names: Vec<_> = outlets
        .iter()
        .map(|outlet| match model.outlet_label(*outlet) {
            Some(label) => label.to_owned(),
            None => model.node(outlet.node).name.clone(),
        })
        .collect();
    let inputs = model.input_outlets().map_err(why)?.to_vec();
    let input_names: Vec<_> =
        inputs.iter().map(|outlet| model.node(outlet.node).name.clone()).collect();
    let model = model.into_optimized().map_err(why)?;
    let (inputs, outputs) = (Vec::new(), Vec::new());
    let mut info = ModelInfo { backend: TRACT, inputs, outputs, forms_batches: false };
    for (index, name) in input_names.into_iter().enumerate() {
        info.inputs.push(describe(name, model.input_fact(index).map_err(why)?)?);
    }
    for (index, name) in output_names.into_iter().enumerate() {
        info.outputs.push(describe(name, model.output_fact(index).map_err(why)?)?);
    }
    Ok((model.into_runnable().map_err(why)?, info))
}

/// The input's fact. Each dimension that the file leaves open without a name gets a symbol.
fn with_symbols(
    model: &tract_onnx::prelude::InferenceModel,
    index: usize,
) -> tract_onnx::prelude::TractResult<InferenceFact> {
    let mut fact = model.input_fact(index)?.clone();
    let dims = fact.shape.dims().map(|dim| match dim.concretize() {
        Some(_) => dim.clone(),
        None => DimFact::from(model.symbols.new_with_prefix("open").to_dim()),
    });
    let dims: TVec<DimFact> = dims.collect();
    if !fact.shape.is_open() {
        fact.shape = ShapeFactoid::closed(dims);
    }
    Ok(fact)
}

fn describe(name: String, fact: &TypedFact) -> Result<TensorInfo, ProviderError> {
    let Some(dtype) = from_tract(fact.datum_type) else {
        return Err(ProviderError::ElementType { name, found: format!("{:?}", fact.datum_type) });
    };
    if dtype == Dtype::String {
        return Err(ProviderError::Unsupported { name, dtype });
    }
    let dims = fact.shape.iter().map(|dim| dim.to_usize().ok()).collect();
    Ok(TensorInfo { name: name.into(), dtype, dims })
}

fn from_tract(datum: DatumType) -> Option<Dtype> {
    Some(match datum {
        DatumType::Bool => Dtype::Bool,
        DatumType::U8 => Dtype::Uint8,
        DatumType::I8 => Dtype::Int8,
        DatumType::U16 => Dtype::Uint16,
        DatumType::I16 => Dtype::Int16,
        DatumType::U32 => Dtype::Uint32,
        DatumType::I32 => Dtype::Int32,
        DatumType::U64 => Dtype::Uint64,
        DatumType::I64 => Dtype::Int64,
        DatumType::F16 => Dtype::Float16,
        DatumType::F32 => Dtype::Float32,
        DatumType::F64 => Dtype::Float64,
        DatumType::String => Dtype::String,
        _ => return None,
    })
}

struct Instance {
    plan: Plan,
    output_dtypes: Vec<Dtype>,
    pool: BufferPool,
}

impl Model for Instance {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        let inputs = inputs.iter().map(copy_in).collect::<Result<TVec<_>, _>>()?;
        let outputs =
            self.plan.run(inputs).map_err(|error| ModelError::new(format!("{error:#}")))?;
        let outputs = outputs.iter().zip(&self.output_dtypes);
        outputs.map(|(value, dtype)| copy_out(value, *dtype, &self.pool)).collect()
    }

    fn ran_on_caller(&self) -> bool {
        true
    }
}

fn copy_in(tensor: &Tensor) -> Result<TValue, ModelError> {
    let failed = |error: &dyn std::fmt::Display| ModelError::new(error.to_string());
    with_element_type!(tensor.dtype(), Element => {
        let data: &[Element] = match tensor.as_bytes() {
            // An empty slice may have any alignment, which the cast would refuse.
            [] => &[],
            bytes => bytemuck::checked::try_cast_slice(bytes).map_err(|error| failed(&error))?,
        };
        let copy = tract_onnx::prelude::Tensor::from_shape(tensor.shape(), data)
            .map_err(|error| failed(&error))?;
        Ok(copy.into_tvalue())
    }, other => Err(ModelError::new(unsupported(other))))
}

fn copy_out(value: &TValue, dtype: Dtype, pool: &BufferPool) -> Result<Tensor, ModelError> {
    let failed = |error: &dyn std::fmt::Display| ModelError::new(error.to_string());
    let data = value.try_as_plain_ram().map_err(|error| failed(&error))?;
    let buffer = pool.copy_from(data.as_bytes());
    Tensor::new(dtype, value.shape().into(), buffer).map_err(|error| failed(&error))
}
