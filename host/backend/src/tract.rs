//! tract: a backend in pure Rust. It is always available, and several times slower than ONNX
//! Runtime.

use std::collections::HashSet;
use std::io::Cursor;
use std::sync::Arc;

use gristmill_core::{
    BufferPool, Dtype, Model, ModelError, ModelInfo, NamedTensor, Tensor, TensorInfo,
};
use prost::Message;
use tract_onnx::Onnx;
use tract_onnx::pb::{ModelProto, TensorProto};
use tract_onnx::prelude::{
    DatumType, Framework, InferenceModel, InferenceModelExt, IntoRunnable, IntoTValue, TValue,
    TVec, ToDim, TractResult, TypedFact, TypedRunnableModel,
};
use tract_onnx::tensor::load_tensor;
use tract_onnx::tract_hir::internal::{
    DimFact, DimLike, Factoid, InferenceFact, ShapeFactoid, bail,
};

use crate::element_type::{unsupported, with_element_type};
use crate::error::ProviderError;
use crate::inspect::Inspected;
use crate::loaded::Loaded;
use crate::memory::SessionMemory;
use crate::options::{LoadOptions, TRACT};
use crate::source::ModelSource;

/// The newest opset that `cargo xtask conformance` runs. tract itself accepts any opset.
const OPSET_MAX: i64 = 28;

/// The first version of the format in which an input's default can be replaced, as ONNX Runtime has
/// it.
const DEFAULTS_VERSION: i64 = 4;

/// Maximum bytes of defaults that can be replaced: more are weights, and the model is planned a
/// second time for them.
const DEFAULTS_BYTES_MAX: usize = 16 << 20;

pub(crate) fn load(
    source: &ModelSource<'_>,
    options: &LoadOptions,
    pool: &BufferPool,
    Inspected { opset, operators, .. }: &Inspected,
) -> Result<Loaded, ProviderError> {
    if *opset > OPSET_MAX {
        return Err(ProviderError::Opset { opset: *opset, max: OPSET_MAX });
    }
    let registered = tract_onnx::onnx().op_register.0;
    // tract knows the operators for classical machine learning without their domain.
    let is_known =
        |name: &str| registered.contains_key(name.strip_prefix("ai.onnx.ml.").unwrap_or(name));
    let unknown: Vec<_> = operators.iter().filter(|name| !is_known(name)).cloned().collect();
    if !unknown.is_empty() {
        return Err(ProviderError::Operators(unknown));
    }
    // tract panics on some malformed graphs, which must not end the host. This is not a model's
    // run, which `run_guarded` guards.
    let loading = std::panic::catch_unwind(|| load_plan(source));
    let (plan, info, open) = loading.unwrap_or(Err(ProviderError::Panicked))?;
    // All instances have the same plan.
    let memory = SessionMemory::new(usize::MAX, false);
    // Weights in a file are read from there into memory.
    memory.loaded(source.onnx.len() + source.weights.map_or(0, |weights| weights.bytes()));
    let instance = || {
        let (plan, open, output_dtypes) =
            (plan.clone(), open.clone(), info.outputs.iter().map(|output| output.dtype).collect());
        let (pool, _memory) = (pool.clone(), memory.clone());
        Box::new(Instance { plan, open, output_dtypes, pool, _memory }) as Box<dyn Model>
    };
    let instances = (0..options.instances).map(|_| instance()).collect();
    let memory = vec![Arc::downgrade(&memory)];
    Ok(Loaded { info, instances, session_sizes: Vec::new(), staging: None, memory })
}

type Plan = Arc<TypedRunnableModel>;

fn load_plan(
    source: &ModelSource<'_>,
) -> Result<(Plan, ModelInfo, Option<Arc<OpenPlan>>), ProviderError> {
    let why = ProviderError::Tract;
    let onnx = tract_onnx::onnx();
    let mut proto = onnx.proto_model_for_read(&mut Cursor::new(&source.onnx[..])).map_err(why)?;
    let folder = source.weights.map(|weights| weights.folder);
    let (plan, mut info) = planned(read(&onnx, &proto, folder).map_err(why)?)?;
    // A model that cannot be planned for other values keeps its defaults.
    let open = OpenPlan::of(&onnx, &mut proto, folder, &info).ok().flatten();
    let Some((open, optional)) = open else { return Ok((plan, info, None)) };
    info.optional = optional;
    Ok((plan, info, Some(Arc::new(open))))
}

fn planned(mut model: InferenceModel) -> Result<(Plan, ModelInfo), ProviderError> {
    let why = ProviderError::Tract;
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
    let (inputs, outputs, optional) = (Vec::new(), Vec::new(), Vec::new());
    let forms_batches = false;
    let mut info = ModelInfo {
        backend: TRACT,
        inputs,
        outputs,
        forms_batches,
        optional,
        equal_dims: Vec::new(),
    };
    for (index, name) in input_names.into_iter().enumerate() {
        info.inputs.push(describe(name, model.input_fact(index).map_err(why)?)?);
    }
    for (index, name) in output_names.into_iter().enumerate() {
        info.outputs.push(describe(name, model.output_fact(index).map_err(why)?)?);
    }
    Ok((model.into_runnable().map_err(why)?, info))
}

fn read(onnx: &Onnx, proto: &ModelProto, folder: Option<&str>) -> TractResult<InferenceModel> {
    let read = onnx.parse(proto, folder)?;
    match read.unresolved_inputs.is_empty() {
        true => Ok(read.model),
        false => bail!("could not resolve inputs {:?}", read.unresolved_inputs),
    }
}

/// The plan of a model for requests that give inputs with defaults. In the usual plan these are
/// constants.
struct OpenPlan {
    plan: Plan,
    inputs: Vec<OpenInput>,
}

/// An input of an open plan.
enum OpenInput {
    /// The place among the inputs that every request gives.
    Required(usize),
    Optional {
        name: Arc<str>,
        default: TValue,
    },
}

impl OpenPlan {
    /// The plan, and its inputs that have defaults. None if there are none, or if they are so large
    /// that they are weights.
    fn of(
        onnx: &Onnx,
        proto: &mut ModelProto,
        folder: Option<&str>,
        info: &ModelInfo,
    ) -> Result<Option<(Self, Vec<TensorInfo>)>, ProviderError> {
        let why = ProviderError::Tract;
        let Some(graph) = proto.graph.as_mut().filter(|_| proto.ir_version >= DEFAULTS_VERSION)
        else {
            return Ok(None);
        };
        let names: HashSet<_> = graph.input.iter().map(|input| &*input.name).collect();
        let is_default = |tensor: &mut TensorProto| names.contains(&*tensor.name);
        let defaults: Vec<_> = graph.initializer.extract_if(.., is_default).collect();
        let bytes: usize = defaults.iter().map(Message::encoded_len).sum();
        if defaults.is_empty() || bytes > DEFAULTS_BYTES_MAX {
            return Ok(None);
        }
        let (plan, open) = planned(read(onnx, proto, folder).map_err(why)?)?;
        let (mut inputs, mut optional) = (Vec::new(), Vec::new());
        for input in open.inputs {
            if let Some(at) = info.inputs.iter().position(|declared| declared.name == input.name) {
                inputs.push(OpenInput::Required(at));
                continue;
            }
            let Some(default) = defaults.iter().find(|default| *default.name == *input.name) else {
                return Ok(None);
            };
            let default = load_tensor(&*onnx.provider, default, folder).map_err(why)?.into_tvalue();
            inputs.push(OpenInput::Optional { name: input.name.clone(), default });
            optional.push(input);
        }
        Ok(Some((Self { plan, inputs }, optional)))
    }

    fn run(&self, inputs: &[Tensor], optional: &[NamedTensor]) -> Result<Outputs, ModelError> {
        let value = |input: &OpenInput| match input {
            OpenInput::Required(at) => copy_in(&inputs[*at]),
            OpenInput::Optional { name, default } => {
                match optional.iter().find(|input| input.name == *name) {
                    Some(input) => copy_in(&input.tensor),
                    None => Ok(default.clone()),
                }
            }
        };
        let values = self.inputs.iter().map(value).collect::<Result<TVec<_>, _>>()?;
        run(&self.plan, values)
    }
}

type Outputs = TVec<TValue>;

fn run(plan: &Plan, inputs: TVec<TValue>) -> Result<Outputs, ModelError> {
    plan.run(inputs).map_err(|error| ModelError::new(format!("{error:#}")))
}

/// The input's fact. Each dimension that the file leaves open without a name gets a symbol.
fn with_symbols(model: &InferenceModel, index: usize) -> TractResult<InferenceFact> {
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
        return Err(ProviderError::ElementType { name, actual: format!("{:?}", fact.datum_type) });
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
    open: Option<Arc<OpenPlan>>,
    output_dtypes: Vec<Dtype>,
    pool: BufferPool,
    _memory: Arc<SessionMemory>,
}

impl Model for Instance {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        let inputs = inputs.iter().map(copy_in).collect::<Result<TVec<_>, _>>()?;
        self.copy_all_out(&run(&self.plan, inputs)?)
    }

    fn run_with(
        &mut self,
        inputs: &[Tensor],
        optional: &[NamedTensor],
    ) -> Result<Vec<Tensor>, ModelError> {
        match &self.open {
            Some(open) => self.copy_all_out(&open.run(inputs, optional)?),
            None => Err(ModelError::new("its inputs with defaults cannot be given")),
        }
    }

    fn ran_on_caller(&self) -> bool {
        true
    }
}

impl Instance {
    fn copy_all_out(&self, outputs: &Outputs) -> Result<Vec<Tensor>, ModelError> {
        let outputs = outputs.iter().zip(&self.output_dtypes);
        outputs.map(|(value, dtype)| copy_out(value, *dtype, &self.pool)).collect()
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
