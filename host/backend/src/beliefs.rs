//! Compares what the graph's proof believes of constants and sizes with what a runtime computes.
//!
//! A proof by rules is as good as each rule: one wrong belief about one size can hide that rows
//! meet. So the model runs once with outputs for the shape and the small values of each tensor that
//! a node of its graph computes. Graphs in graphs and bodies of functions are not looked into.

use std::borrow::Cow;

use gristmill_core::{Model, ModelInfo, Tensor, run_guarded};
use prost::Message;
use tract_onnx::pb::attribute_proto::AttributeType;
use tract_onnx::pb::tensor_shape_proto::{Dimension, dimension};
use tract_onnx::pb::{
    AttributeProto, ModelProto, NodeProto, TensorShapeProto, TypeProto, ValueInfoProto,
    tensor_proto, type_proto,
};

use crate::backends::Backends;
use crate::inspect::{Inspected, decode};
use crate::options::{LoadOptions, ProviderKind};
use crate::probe;
use crate::rows::{Belief, Beliefs, Number};
use crate::source::ModelSource;

/// The rows of the run.
const ROWS: usize = 3;

/// The sizes that replace open dimensions. The first one that the model takes is used.
const SIZES: [usize; 8] = [5, 12, 16, 32, 64, 128, 224, 1];

/// The beginning of the names of the outputs that are added.
const PREFIX: &str = "gristmill.belief.";

/// A model whose beliefs are compared, on one provider.
pub(crate) struct Compared<'a> {
    pub(crate) backends: &'a Backends,
    pub(crate) kind: ProviderKind,
    pub(crate) source: &'a ModelSource<'a>,
    pub(crate) options: &'a LoadOptions,
    pub(crate) inspected: &'a Inspected,
}

/// An output that is added, and the numbers that it should have.
struct Added<'a> {
    belief: &'a Belief,
    is_shape: bool,
    numbers: &'a [Option<Number>],
}

impl Compared<'_> {
    /// # Errors
    /// The first belief that is wrong, or why they cannot be compared.
    pub(crate) fn check(&self, beliefs: &Beliefs) -> Result<(), String> {
        let added = added(beliefs);
        if added.is_empty() {
            return Ok(());
        }
        let mut model = decode(&self.source.onnx).map_err(|error| error.to_string())?;
        add_outputs(&mut model, &added)?;
        let onnx = model.encode_to_vec();
        drop(model);
        let weights = self.source.weights;
        let source = ModelSource { onnx: Cow::Owned(onnx), weights, warnings: Vec::new() };
        let failed = |why: &dyn std::fmt::Display| {
            format!("its constants cannot be compared with those of a run: {why}")
        };
        let loaded = self.backends.load_on(self.kind, &source, self.options, self.inspected);
        let mut loaded = loaded.map_err(|error| failed(&error))?;
        let model = loaded.instances.first_mut().ok_or_else(|| failed(&"it has no instance"))?;
        let (inputs, outputs) =
            self.run(model.as_mut(), &loaded.info).map_err(|why| failed(&why))?;
        let first = outputs.len().checked_sub(added.len()).ok_or_else(|| failed(&"no outputs"))?;
        for (added, output) in added.iter().zip(&outputs[first..]) {
            compare(added, output, &loaded.info, &inputs)?;
        }
        Ok(())
    }

    /// The inputs and outputs of a run with the first sizes that the model takes.
    fn run(
        &self,
        model: &mut dyn Model,
        info: &ModelInfo,
    ) -> Result<(Vec<Tensor>, Vec<Tensor>), String> {
        let mut last = String::new();
        for size in SIZES {
            let tried = probe::inputs(info, ROWS, size, &self.backends.pool).and_then(|inputs| {
                let outputs = run_guarded(model, &inputs)?;
                Ok((inputs, outputs))
            });
            match tried {
                Ok(run) => return Ok(run),
                Err(error) => last = error.text.to_string(),
            }
        }
        Err(last)
    }
}

fn added(beliefs: &Beliefs) -> Vec<Added<'_>> {
    let mut all = Vec::new();
    for belief in &beliefs.0 {
        if let Some(numbers) = &belief.shape {
            all.push(Added { belief, is_shape: true, numbers });
        }
        if let Some(numbers) = &belief.elements
            && numbers.iter().any(Option::is_some)
        {
            all.push(Added { belief, is_shape: false, numbers });
        }
    }
    all
}

/// Add an output for each: floating point numbers of 64 bits, to which numbers of all types can be
/// cast.
fn add_outputs(model: &mut ModelProto, added: &[Added<'_>]) -> Result<(), String> {
    const DOUBLE: tensor_proto::DataType = tensor_proto::DataType::Double;
    let graph = model.graph.as_mut().ok_or("it has no graph")?;
    let mut add = |operator: &str, input: &str, output: &str, attribute: Option<AttributeProto>| {
        graph.node.push(NodeProto {
            name: output.to_owned(),
            op_type: operator.to_owned(),
            input: vec![input.to_owned()],
            output: vec![output.to_owned()],
            attribute: attribute.into_iter().collect(),
            ..Default::default()
        });
    };
    let mut outputs = Vec::new();
    for (at, Added { belief, is_shape, .. }) in added.iter().enumerate() {
        let name = format!("{PREFIX}{at}");
        let (input, rank) = match (is_shape, &belief.shape) {
            (true, _) => {
                let shape = format!("{name}.shape");
                add("Shape", &belief.tensor, &shape, None);
                (shape, 1)
            }
            (false, Some(shape)) => (belief.tensor.clone(), shape.len()),
            (false, None) => return Err(format!("the rank of `{}` is not known", belief.tensor)),
        };
        let mut to = AttributeProto { name: "to".into(), ..Default::default() };
        (to.i, to.r#type) = (DOUBLE as i64, AttributeType::Int as i32);
        add("Cast", &input, &name, Some(to));
        let dim = |axis: usize| Dimension {
            value: Some(dimension::Value::DimParam(format!("{name}.{axis}"))),
            ..Default::default()
        };
        let shape = TensorShapeProto { dim: (0..rank).map(dim).collect() };
        let tensor = type_proto::Tensor { elem_type: DOUBLE as i32, shape: Some(shape) };
        let value = Some(type_proto::Value::TensorType(tensor));
        let r#type = Some(TypeProto { value, ..Default::default() });
        outputs.push(ValueInfoProto { name, r#type, ..Default::default() });
    }
    graph.output.append(&mut outputs);
    Ok(())
}

fn compare(
    Added { belief, is_shape, numbers }: &Added<'_>,
    output: &Tensor,
    info: &ModelInfo,
    inputs: &[Tensor],
) -> Result<(), String> {
    let what = if *is_shape { "shape" } else { "value" };
    let numbers_of = |bytes: &[u8; 8]| f64::from_ne_bytes(*bytes);
    let computed: Vec<f64> = output.as_bytes().as_chunks().0.iter().map(numbers_of).collect();
    let expected: Vec<Option<f64>> =
        numbers.iter().map(|number| number.as_ref()?.with(info, inputs)).collect();
    let is_same = computed.len() == expected.len()
        && computed
            .iter()
            .zip(&expected)
            .all(|(one, other)| other.is_none_or(|other| other == *one));
    if is_same {
        return Ok(());
    }
    let shown = expected.iter().map(|one| one.map_or("?".into(), |one| one.to_string()));
    let tensor: String = belief.tensor.chars().take(200).collect();
    Err(format!(
        "a run computes another {what} of `{tensor}` than its graph says: {computed:?}, not [{}]",
        shown.collect::<Vec<_>>().join(", ")
    ))
}

impl Number {
    /// The number in a run with these inputs. None for an input that is not there.
    fn with(&self, info: &ModelInfo, inputs: &[Tensor]) -> Option<f64> {
        match self {
            Self::Fixed(value) => Some(*value as f64),
            Self::Size { factor, has_rows, dims } => {
                let rows = if *has_rows { ROWS as f64 } else { 1.0 };
                dims.iter().try_fold(*factor as f64 * rows, |all, place| {
                    let at = info.inputs.iter().position(|input| *input.name == *place.input)?;
                    Some(all * *inputs.get(at)?.shape().get(place.dim)? as f64)
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::inspect;
    use crate::rows::analyse;
    use crate::tests::{backends, models, options};

    /// What a runtime says of the beliefs of the model `digits`, which `change` changes.
    fn verdict(kind: ProviderKind, change: impl Fn(&mut Beliefs)) -> Result<(), String> {
        let onnx = std::fs::read(models().join("digits/digits.onnx")).unwrap();
        let source = ModelSource::open((&onnx).into()).unwrap();
        let (options, inspected) = (options(kind), inspect(&source).unwrap());
        let mut beliefs = analyse(&decode(&onnx).unwrap()).unwrap();
        change(&mut beliefs);
        let (source, options, inspected) = (&source, &options, &inspected);
        Compared { backends: backends(), kind, source, options, inspected }.check(&beliefs)
    }

    #[test]
    fn a_belief_that_a_run_does_not_share_is_found() {
        for kind in [ProviderKind::Cpu, ProviderKind::Tract] {
            assert_eq!(verdict(kind, |_| {}), Ok(()));
            let wrong = verdict(kind, |beliefs| {
                let shapes = beliefs.0.iter_mut().filter_map(|belief| belief.shape.as_mut());
                *shapes.last().unwrap().last_mut().unwrap() = Some(Number::Fixed(11));
            });
            let why = wrong.unwrap_err();
            assert!(why.contains("another shape of") && why.contains("not [3, 11]"), "{why}");
        }
    }
}
