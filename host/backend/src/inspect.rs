//! Reads an ONNX file before any backend does: its opset, its operators, and whether its weights
//! lie in other files.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use gristmill_core::{EqualDims, TensorInfo};
use prost::Message;
use tract_onnx::pb::tensor_proto::DataLocation;
use tract_onnx::pb::tensor_shape_proto::dimension::Value as Size;
use tract_onnx::pb::type_proto::Value;
use tract_onnx::pb::{
    AttributeProto, GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto,
    ValueInfoProto,
};
use tract_onnx::prelude::Framework;

use crate::error::{LoadError, NotOnnx};
use crate::source::ModelSource;

/// A file that may be a model.
#[derive(Default)]
pub(crate) struct Inspected {
    /// Version of the standard operators.
    pub(crate) opset: i64,
    /// Operators used, with their domain if it is not the standard one.
    pub(crate) operators: BTreeSet<String>,
    /// The names of the inputs' open dimensions; each has an input's name and a dimension.
    pub(crate) symbols: BTreeMap<String, Vec<(String, usize)>>,
}

/// Standard operators whose work depends on their inputs' values, not only on the sizes.
const UNSTEADY: [&str; 24] = [
    "AffineGrid",
    "BlackmanWindow",
    "CenterCropPad",
    "Col2Im",
    "ConstantOfShape",
    "DFT",
    "Expand",
    "HammingWindow",
    "HannWindow",
    "ImageDecoder",
    "Loop",
    "MaxUnpool",
    "MelWeightMatrix",
    "OneHot",
    "Pad",
    "RandomNormal",
    "RandomUniform",
    "Range",
    "Resize",
    "STFT",
    "Scan",
    "SequenceMap",
    "Tile",
    "Upsample",
];

impl Inspected {
    /// Whether the sizes of its inputs determine the work of a run, judged by its operators.
    pub(crate) fn is_steady(&self) -> bool {
        let steady = |name: &String| {
            let name = name.strip_prefix("ai.onnx.ml.").unwrap_or(name);
            !name.contains('.') && !UNSTEADY.contains(&name)
        };
        self.operators.iter().all(steady)
    }

    /// The dimensions of `inputs` to which the model gives one name.
    pub(crate) fn equal_dims(&self, inputs: &[TensorInfo]) -> Vec<EqualDims> {
        let indices: HashMap<&str, usize> =
            inputs.iter().enumerate().map(|(index, input)| (&*input.name, index)).collect();
        let place = |(name, dim): &(String, usize)| {
            let input = *indices.get(&name[..])?;
            let is_open = inputs[input].dims.get(*dim)?.is_none();
            is_open.then_some((input, *dim))
        };
        let all = self.symbols.iter().map(|(symbol, places)| EqualDims {
            symbol: symbol.as_str().into(),
            places: places.iter().filter_map(place).collect(),
        });
        all.filter(|dims| dims.places.len() > 1).collect()
    }

    /// Whether it has convolutions, also ONNX Runtime's own and quantized ones.
    pub(crate) fn has_convolutions(&self) -> bool {
        self.operators.iter().any(|name| name.contains("Conv"))
    }
}

/// Decode a file.
pub(crate) fn decode(onnx: &[u8]) -> Result<ModelProto, LoadError> {
    let proto = tract_onnx::onnx().proto_model_for_read(&mut std::io::Cursor::new(onnx));
    proto.map_err(|error| LoadError::NoModel(NotOnnx::Undecodable(error)))
}

/// Read a file.
///
/// # Errors
/// [`LoadError::NoModel`]; [`LoadError::ExternalData`] if its weights lie in other files than that
/// of the source, which a runtime would read from the host; [`LoadError::Trains`].
pub(crate) fn inspect(
    ModelSource { onnx, weights, .. }: &ModelSource<'_>,
) -> Result<Inspected, LoadError> {
    let onnx = &onnx[..];
    let model = decode(onnx)?;
    let Some(graph) = &model.graph else {
        return Err(LoadError::NoModel(NotOnnx::NoGraph));
    };
    let mut contents = Found::default();
    contents.graph(graph);
    let trainings = model.training_info.iter();
    for training in trainings.flat_map(|info| [&info.initialization, &info.algorithm]).flatten() {
        contents.graph(training);
    }
    for function in &model.functions {
        contents.nodes(&function.node);
    }
    let defaults = FunctionDefaults::decode(onnx);
    let defaults = defaults.map_err(|error| LoadError::NoModel(error.into()))?;
    for function in &defaults.functions {
        contents.attributes(&function.attributes);
    }
    if let Some(weights) = weights {
        contents.external.remove(weights.name);
    }
    if !contents.external.is_empty() {
        return Err(LoadError::ExternalData(contents.external.into_iter().collect()));
    }
    if contents.trains {
        return Err(LoadError::Trains);
    }
    let standard = model.opset_import.iter().find(|opset| opset.domain.is_empty());
    let opset = standard.map_or(1, |opset| opset.version);
    let symbols = symbols(&graph.input);
    Ok(Inspected { opset, operators: contents.operators, symbols })
}

/// Whether this is a name of open dimensions: those of one name are equal. Exporters of
/// PaddlePaddle write "?" for each dimension without a name.
pub(crate) fn is_symbol(name: &str) -> bool {
    !matches!(name, "" | "?")
}

fn symbols(inputs: &[ValueInfoProto]) -> BTreeMap<String, Vec<(String, usize)>> {
    let mut symbols = BTreeMap::<String, Vec<(String, usize)>>::new();
    for input in inputs {
        let value = input.r#type.as_ref().and_then(|kind| kind.value.as_ref());
        let Some(Value::TensorType(tensor)) = value else { continue };
        let dims = tensor.shape.iter().flat_map(|shape| &shape.dim).enumerate();
        for (at, dim) in dims {
            if let Some(Size::DimParam(symbol)) = &dim.value
                && is_symbol(symbol)
            {
                symbols.entry(symbol.clone()).or_default().push((input.name.clone(), at));
            }
        }
    }
    symbols
}

/// The defaults of a model's functions' attributes, which tract does not read.
#[derive(Clone, PartialEq, Message)]
struct FunctionDefaults {
    #[prost(message, repeated, tag = "25")]
    functions: Vec<Defaults>,
}

#[derive(Clone, PartialEq, Message)]
struct Defaults {
    #[prost(message, repeated, tag = "11")]
    attributes: Vec<AttributeProto>,
}

#[derive(Default)]
struct Found {
    operators: BTreeSet<String>,
    external: BTreeSet<String>,
    /// Whether an operator is in training mode. ONNX Runtime writes its statistics into the
    /// weights, which all requests use.
    trains: bool,
}

impl Found {
    fn graph(&mut self, graph: &GraphProto) {
        graph.initializer.iter().for_each(|tensor| self.tensor(tensor));
        graph.sparse_initializer.iter().for_each(|tensor| self.sparse_tensor(tensor));
        self.nodes(&graph.node);
    }

    fn nodes(&mut self, nodes: &[NodeProto]) {
        for node in nodes {
            let name = match node.domain.as_str() {
                "" | "ai.onnx" => node.op_type.clone(),
                domain => format!("{domain}.{}", node.op_type),
            };
            self.trains |= name == "BatchNormalization" && node.attribute.iter().any(trains);
            self.operators.insert(name);
            self.attributes(&node.attribute);
        }
    }

    fn attributes(&mut self, attributes: &[AttributeProto]) {
        for attribute in attributes {
            attribute.t.iter().chain(&attribute.tensors).for_each(|tensor| self.tensor(tensor));
            let sparse = attribute.sparse_tensor.iter().chain(&attribute.sparse_tensors);
            sparse.for_each(|tensor| self.sparse_tensor(tensor));
            attribute.g.iter().chain(&attribute.graphs).for_each(|graph| self.graph(graph));
        }
    }

    fn sparse_tensor(&mut self, tensor: &SparseTensorProto) {
        tensor.values.iter().chain(&tensor.indices).for_each(|tensor| self.tensor(tensor));
    }

    fn tensor(&mut self, tensor: &TensorProto) {
        if tensor.data_location == Some(DataLocation::External as i32) {
            let location = tensor.external_data.iter().find(|entry| entry.key == "location");
            self.external.insert(location.map_or("?", |entry| &entry.value).to_owned());
        }
    }
}

/// Whether this attribute turns training on, or a function may turn it on by it.
fn trains(attribute: &AttributeProto) -> bool {
    attribute.name == "training_mode" && (attribute.i != 0 || !attribute.ref_attr_name.is_empty())
}

#[cfg(test)]
mod tests {
    use tract_onnx::pb::{FunctionProto, StringStringEntryProto};

    use super::*;

    fn external() -> TensorProto {
        let location = StringStringEntryProto { key: "location".into(), value: "w.bin".into() };
        let mut tensor = TensorProto { external_data: vec![location], ..Default::default() };
        tensor.data_location = Some(DataLocation::External as i32);
        tensor
    }

    fn attribute() -> AttributeProto {
        AttributeProto { t: Some(external()), ..Default::default() }
    }

    fn node(attribute: AttributeProto) -> NodeProto {
        NodeProto { attribute: vec![attribute], ..Default::default() }
    }

    fn model(graph: GraphProto) -> ModelProto {
        ModelProto { graph: Some(graph), ..Default::default() }
    }

    #[test]
    fn models_that_learn_are_refused_wherever_they_do() {
        let training = |i: i64, referred: &str| {
            let mut attribute = AttributeProto { i, ..Default::default() };
            (attribute.name, attribute.ref_attr_name) = ("training_mode".into(), referred.into());
            let op_type = "BatchNormalization".into();
            NodeProto { op_type, attribute: vec![attribute], ..Default::default() }
        };
        let graph = |node| GraphProto { node: vec![node], ..GraphProto::default() };
        let inner = AttributeProto { g: Some(graph(training(1, ""))), ..Default::default() };
        let function = FunctionProto { node: vec![training(0, "mode")], ..Default::default() };
        let empty = model(GraphProto::default());
        for learns in [
            model(graph(training(1, ""))),
            model(graph(node(inner))),
            ModelProto { functions: vec![function], ..empty },
        ] {
            let onnx = learns.encode_to_vec();
            let refused = inspect(&ModelSource::open((&onnx).into()).unwrap()).err();
            assert!(matches!(refused, Some(LoadError::Trains)), "{refused:?}");
        }
        let onnx = model(graph(training(0, ""))).encode_to_vec();
        assert!(inspect(&ModelSource::open((&onnx).into()).unwrap()).is_ok());
    }

    /// The runtimes would read any file of the host that a model names.
    #[test]
    fn weights_in_other_files_are_found_wherever_a_model_names_them() {
        let empty = GraphProto::default;
        let inner = GraphProto { initializer: vec![external()], ..empty() };
        let subgraph = AttributeProto { graphs: vec![inner.clone()], ..Default::default() };
        let sparse = SparseTensorProto { values: Some(external()), ..Default::default() };
        let function = FunctionProto { node: vec![node(attribute())], ..Default::default() };
        let mut with_default = model(empty()).encode_to_vec();
        let default = Defaults { attributes: vec![attribute()] };
        FunctionDefaults { functions: vec![default] }.encode(&mut with_default).unwrap();
        let models = [
            model(inner).encode_to_vec(),
            model(GraphProto { sparse_initializer: vec![sparse], ..empty() }).encode_to_vec(),
            model(GraphProto { node: vec![node(attribute())], ..empty() }).encode_to_vec(),
            model(GraphProto { node: vec![node(subgraph)], ..empty() }).encode_to_vec(),
            ModelProto { functions: vec![function], ..model(empty()) }.encode_to_vec(),
            with_default,
        ];
        for onnx in models {
            let refused =
                ModelSource::open((&onnx).into()).and_then(|source| inspect(&source)).err();
            let Some(LoadError::ExternalData(files)) = refused else { panic!("{refused:?}") };
            assert_eq!(files, ["w.bin"]);
        }
        let plain = model(empty()).encode_to_vec();
        assert!(inspect(&ModelSource::open((&plain).into()).unwrap()).is_ok());
    }
}
