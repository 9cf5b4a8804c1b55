//! What an ONNX file says of itself, read before any backend is asked.

use std::collections::BTreeSet;

use tract_onnx::pb::{GraphProto, ModelProto, tensor_proto::DataLocation};
use tract_onnx::prelude::Framework;

use crate::LoadError;

/// A file that may be a model.
pub(crate) struct Inspected {
    /// Version of the standard operators.
    pub(crate) opset: i64,
    /// Operators used, with their domain where it is not the standard one.
    pub(crate) operators: BTreeSet<String>,
}

/// Refuses what is no ONNX model, and one whose weights lie elsewhere.
pub(crate) fn inspect(onnx: &[u8]) -> Result<Inspected, LoadError> {
    let proto = tract_onnx::onnx().proto_model_for_read(&mut std::io::Cursor::new(onnx));
    let model: ModelProto =
        proto.map_err(|error| LoadError::NoModel(error.root_cause().to_string()))?;
    let Some(graph) = &model.graph else {
        return Err(LoadError::NoModel("it has no graph".into()));
    };
    let mut found = Found::default();
    found.graph(graph);
    if !found.external.is_empty() {
        return Err(LoadError::ExternalData(found.external.into_iter().collect()));
    }
    let standard = model.opset_import.iter().find(|opset| opset.domain.is_empty());
    let opset = standard.map_or(1, |opset| opset.version);
    Ok(Inspected { opset, operators: found.operators })
}

#[derive(Default)]
struct Found {
    operators: BTreeSet<String>,
    external: BTreeSet<String>,
}

impl Found {
    fn graph(&mut self, graph: &GraphProto) {
        for tensor in &graph.initializer {
            if tensor.data_location == Some(DataLocation::External as i32) {
                let location = tensor.external_data.iter().find(|entry| entry.key == "location");
                self.external.insert(location.map_or("?", |entry| &entry.value).to_owned());
            }
        }
        for node in &graph.node {
            let name = match node.domain.as_str() {
                "" | "ai.onnx" => node.op_type.clone(),
                domain => format!("{domain}.{}", node.op_type),
            };
            self.operators.insert(name);
            let subgraphs = node
                .attribute
                .iter()
                .flat_map(|attribute| attribute.g.as_ref().into_iter().chain(&attribute.graphs));
            for subgraph in subgraphs {
                self.graph(subgraph);
            }
        }
    }
}
