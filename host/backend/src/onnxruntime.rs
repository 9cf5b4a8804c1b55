//! ONNX Runtime on the CPU, through `ort`, its library loaded at run time.

use std::path::Path;

use gristmill_core::{BufferPool, Dtype, Model, ModelError, ModelInfo, Tensor, TensorInfo};
use ort::environment::Environment;
use ort::session::{Session, SessionInputValue};
use ort::value::{DynValue, Outlet, TensorElementType, TensorRef, ValueType};

use crate::{LoadOptions, LoadedModel, unsupported, with_element_type};

pub(crate) const NAME: &str = "onnxruntime";

pub(crate) struct Runtime {
    environment: Environment,
}

impl Runtime {
    pub(crate) fn open(library: &Path) -> Result<Self, String> {
        // Absolute, because `ort` would look for a relative path beside the executable first.
        let library = library.canonicalize().map_err(|error| error.to_string())?;
        let environment = ort::init_from(library)
            .map_err(|error| error.to_string())?
            .with_name("gristmill")
            .with_telemetry(false)
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Self { environment })
    }

    pub(crate) fn load(
        &self,
        onnx: &[u8],
        options: &LoadOptions,
        pool: &BufferPool,
    ) -> Result<LoadedModel, String> {
        let first = self.session(onnx, options)?;
        let info = ModelInfo {
            backend: NAME,
            inputs: first.inputs().iter().map(describe).collect::<Result<_, _>>()?,
            outputs: first.outputs().iter().map(describe).collect::<Result<_, _>>()?,
        };
        let output_dtypes: Vec<_> = info.outputs.iter().map(|output| output.dtype).collect();
        let mut instances: Vec<Box<dyn Model>> = Vec::with_capacity(options.instances);
        let mut next = Some(first);
        while instances.len() < options.instances {
            let session = match next.take() {
                Some(session) => session,
                None => self.session(onnx, options)?,
            };
            let (output_dtypes, pool) = (output_dtypes.clone(), pool.clone());
            instances.push(Box::new(Instance { session, output_dtypes, pool }));
        }
        Ok(LoadedModel { info, instances })
    }

    fn session(&self, onnx: &[u8], options: &LoadOptions) -> Result<Session, String> {
        let why = |error: &dyn std::fmt::Display| error.to_string();
        let builder = Session::builder(&self.environment).map_err(|error| why(&error))?;
        let builder = builder.with_intra_threads(options.threads).map_err(|error| why(&error))?;
        // Spinning threads would take the cores that plugins run on.
        let mut builder = builder.with_intra_op_spinning(false).map_err(|error| why(&error))?;
        builder.commit_from_memory(onnx).map_err(|error| why(&error))
    }
}

fn describe(outlet: &Outlet) -> Result<TensorInfo, String> {
    let name = outlet.name().to_owned();
    let ValueType::Tensor { ty, shape, .. } = outlet.dtype() else {
        return Err(format!("{name:?} is a {}, only tensors can be served", outlet.dtype()));
    };
    let dtype = from_ort(*ty).ok_or_else(|| format!("{name:?} has element type {ty}"))?;
    if matches!(dtype, Dtype::String | Dtype::Bfloat16) {
        return Err(format!("{name:?}: {}", unsupported(dtype)));
    }
    let dims = shape.iter().map(|dim| usize::try_from(*dim).ok()).collect();
    Ok(TensorInfo { name: name.into(), dtype, dims })
}

fn from_ort(element: TensorElementType) -> Option<Dtype> {
    Some(match element {
        TensorElementType::Bool => Dtype::Bool,
        TensorElementType::Uint8 => Dtype::Uint8,
        TensorElementType::Int8 => Dtype::Int8,
        TensorElementType::Uint16 => Dtype::Uint16,
        TensorElementType::Int16 => Dtype::Int16,
        TensorElementType::Uint32 => Dtype::Uint32,
        TensorElementType::Int32 => Dtype::Int32,
        TensorElementType::Uint64 => Dtype::Uint64,
        TensorElementType::Int64 => Dtype::Int64,
        TensorElementType::Float16 => Dtype::Float16,
        TensorElementType::Bfloat16 => Dtype::Bfloat16,
        TensorElementType::Float32 => Dtype::Float32,
        TensorElementType::Float64 => Dtype::Float64,
        TensorElementType::String => Dtype::String,
        _ => return None,
    })
}

struct Instance {
    session: Session,
    output_dtypes: Vec<Dtype>,
    pool: BufferPool,
}

impl Model for Instance {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        let failed = |error: ort::Error| ModelError(error.to_string());
        let values = inputs.iter().map(view).collect::<Result<Vec<_>, _>>()?;
        let outputs = self.session.run(&values[..]).map_err(failed)?;
        let outputs = outputs.values().zip(&self.output_dtypes);
        outputs.map(|(value, dtype)| read(&value, *dtype, &self.pool)).collect()
    }
}

/// The tensor as ONNX Runtime sees it, without a copy.
fn view(tensor: &Tensor) -> Result<SessionInputValue<'_>, ModelError> {
    let shape: Vec<i64> = tensor.shape().iter().map(|dim| *dim as i64).collect();
    let failed = |error: &dyn std::fmt::Display| ModelError(error.to_string());
    with_element_type!(tensor.dtype(), Element => {
        let data: &[Element] = bytemuck::checked::try_cast_slice(tensor.as_bytes())
            .map_err(|error| failed(&error))?;
        let view = TensorRef::from_array_view((shape, data)).map_err(|error| failed(&error))?;
        Ok(view.into())
    }, other => Err(ModelError(unsupported(other))))
}

fn read(value: &DynValue, dtype: Dtype, pool: &BufferPool) -> Result<Tensor, ModelError> {
    let failed = |error: &dyn std::fmt::Display| ModelError(error.to_string());
    with_element_type!(dtype, Element => {
        let (shape, data) =
            value.try_extract_tensor::<Element>().map_err(|error| failed(&error))?;
        let shape = shape.iter().map(|dim| *dim as usize).collect();
        let buffer = pool.copy_from(bytemuck::cast_slice(data));
        Tensor::new(dtype, shape, buffer).map_err(|error| failed(&error))
    }, other => Err(ModelError(unsupported(other))))
}
