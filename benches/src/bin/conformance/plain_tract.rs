//! tract without the `backend` crate, as the reference for it. A model is loaded for the shapes of
//! one test.

use std::io::Cursor;

use anyhow::{Context, Result, anyhow};
use gristmill_core::{BufferPool, Dtype, NamedTensor, Tensor};
use tract_onnx::prelude::{
    DatumType, Framework, InferenceFact, InferenceModelExt, IntoRunnable, IntoTValue, TVec,
    TypedModel,
};

/// A model for one set of input shapes.
pub(crate) struct PlainTract {
    model: TypedModel,
    /// For each of the model's inputs its index in the test's inputs.
    order: Vec<usize>,
    outputs: Vec<String>,
}

impl PlainTract {
    pub(crate) fn load(onnx: &[u8], inputs: &[NamedTensor]) -> Result<Self> {
        let mut model = tract_onnx::onnx().model_for_read(&mut Cursor::new(onnx))?;
        let outlets = model.input_outlets()?.to_vec();
        let mut order = Vec::new();
        for (index, outlet) in outlets.iter().enumerate() {
            let name = &model.node(outlet.node).name;
            let at = inputs.iter().position(|input| *input.name == **name);
            let at = at.with_context(|| format!("the test has no input {name:?}"))?;
            let tensor = &inputs[at].tensor;
            let fact = InferenceFact::dt_shape(datum_type(tensor.dtype())?, tensor.shape());
            model.set_input_fact(index, fact)?;
            order.push(at);
        }
        let named =
            model.output_outlets()?.iter().map(|outlet| match model.outlet_label(*outlet) {
                Some(label) => label.to_owned(),
                None => model.node(outlet.node).name.clone(),
            });
        let outputs = named.collect();
        Ok(Self { model: model.into_optimized()?, order, outputs })
    }

    pub(crate) fn run(self, inputs: &[NamedTensor], pool: &BufferPool) -> Result<Vec<NamedTensor>> {
        let given_inputs = self.order.iter().map(|at| {
            let tensor = &inputs[*at].tensor;
            let (datum, bytes) = (datum_type(tensor.dtype())?, tensor.as_bytes());
            let mut copy = tract_onnx::prelude::Tensor::zero_dt(datum, tensor.shape())?;
            copy.try_as_plain_ram_mut()?.as_bytes_mut().copy_from_slice(bytes);
            Ok(copy.into_tvalue())
        });
        let given_inputs = given_inputs.collect::<Result<TVec<_>>>()?;
        let values = self.model.into_runnable()?.run(given_inputs)?;
        let outputs = values.iter().zip(self.outputs).map(|(value, name)| {
            let dtype = dtype(value.datum_type())?;
            let buffer = pool.copy_from(value.try_as_plain_ram()?.as_bytes());
            let tensor = Tensor::new(dtype, value.shape().into(), buffer)?;
            Ok(NamedTensor { name: name.into(), tensor })
        });
        outputs.collect()
    }
}

const DTYPES: [(Dtype, DatumType); 12] = [
    (Dtype::Bool, DatumType::Bool),
    (Dtype::Uint8, DatumType::U8),
    (Dtype::Int8, DatumType::I8),
    (Dtype::Uint16, DatumType::U16),
    (Dtype::Int16, DatumType::I16),
    (Dtype::Uint32, DatumType::U32),
    (Dtype::Int32, DatumType::I32),
    (Dtype::Uint64, DatumType::U64),
    (Dtype::Int64, DatumType::I64),
    (Dtype::Float16, DatumType::F16),
    (Dtype::Float32, DatumType::F32),
    (Dtype::Float64, DatumType::F64),
];

fn datum_type(dtype: Dtype) -> Result<DatumType> {
    let found =
        DTYPES.iter().find(|(known_dtype, _)| *known_dtype == dtype).map(|(_, datum)| *datum);
    found.with_context(|| format!("tract does not take {dtype}"))
}

fn dtype(datum: DatumType) -> Result<Dtype> {
    let found =
        DTYPES.iter().find(|(_, known_datum)| *known_datum == datum).map(|(dtype, _)| *dtype);
    found.ok_or_else(|| anyhow!("an output is {datum:?}"))
}
