//! `ZipMap`, with which converters of scikit-learn and LightGBM end classifiers by default. It
//! makes a list of maps of the probabilities, which is no tensor. In its place the output gets the
//! probabilities as they are, under the same name.
//!
//! Source: <https://onnx.ai/onnx/operators/onnx_aionnxml_ZipMap.html>.

use std::collections::HashSet;

use super::wire::{Malformed, fields, put_bytes, put_number};

/// The fields of a model.
const GRAPH: u64 = 7;
const OPSET: u64 = 8;

/// The fields of a graph.
const NODE: u64 = 1;
const OUTPUT: u64 = 12;

/// `TensorProto.DataType.FLOAT`: `ZipMap` takes no other probabilities.
const FLOAT: u64 = 1;

/// A version of the standard operators with `Identity`, for a model that has no others.
const OPSET_VERSION: u64 = 9;

/// Maximum classes that a warning names.
const CLASSES_SHOWN: usize = 10;

/// A model without its last `ZipMap`s.
pub(crate) struct Cut {
    pub(crate) model: Vec<u8>,
    /// One for each of them.
    pub(crate) warnings: Vec<String>,
}

/// A `ZipMap` that makes an output.
struct ZipMap {
    /// The probabilities.
    input: String,
    /// The maps.
    output: String,
    classes: Vec<String>,
}

/// The model without the `ZipMap`s that make its outputs. None if it has none.
///
/// # Errors
/// The file is malformed.
pub(crate) fn cut(model: &[u8]) -> Result<Option<Cut>, Malformed> {
    let mut graph = None;
    let mut has_standard_operators = false;
    let mut start = 0;
    for field in fields(model) {
        let field = field?;
        let end = start + field.raw.len();
        match field.number {
            GRAPH => graph = Some((field.bytes(), start, end)),
            OPSET => has_standard_operators |= text_of(field.bytes(), 1)?.is_empty(),
            _ => {}
        }
        start = end;
    }
    let Some((graph, start, end)) = graph else { return Ok(None) };
    let zip_maps = at_end(graph)?;
    if zip_maps.is_empty() {
        return Ok(None);
    }
    let mut changed = model[..start].to_vec();
    put_bytes(&mut changed, GRAPH, &without(graph, &zip_maps)?);
    changed.extend_from_slice(&model[end..]);
    if !has_standard_operators {
        let mut opset = Vec::new();
        put_number(&mut opset, 2, OPSET_VERSION);
        put_bytes(&mut changed, OPSET, &opset);
    }
    let warnings = zip_maps.iter().map(ZipMap::warning).collect();
    Ok(Some(Cut { model: changed, warnings }))
}

/// The `ZipMap`s of a graph whose maps are outputs, and nothing else.
fn at_end(graph: &[u8]) -> Result<Vec<ZipMap>, Malformed> {
    let (mut zip_maps, mut outputs, mut used) = (Vec::new(), HashSet::new(), HashSet::new());
    for field in fields(graph) {
        let field = field?;
        match field.number {
            NODE => match zip_map(field.bytes())? {
                Some(zip_map) => zip_maps.push(zip_map),
                None => {
                    for input in fields(field.bytes()) {
                        let input = input?;
                        if input.number == 1 {
                            used.insert(input.bytes());
                        }
                    }
                }
            },
            OUTPUT => {
                outputs.insert(text_of(field.bytes(), 1)?);
            }
            _ => {}
        }
    }
    let is_last = |zip_map: &ZipMap| !used.contains(zip_map.output.as_bytes());
    zip_maps.retain(|zip_map| outputs.contains(&zip_map.output) && is_last(zip_map));
    Ok(zip_maps)
}

/// The graph with the probabilities in place of maps.
fn without(graph: &[u8], zip_maps: &[ZipMap]) -> Result<Vec<u8>, Malformed> {
    let mut changed = Vec::with_capacity(graph.len());
    for field in fields(graph) {
        let field = field?;
        let output = match field.number {
            NODE => zip_map(field.bytes())?.map(|node| node.output),
            OUTPUT => Some(text_of(field.bytes(), 1)?),
            _ => None,
        };
        let zip_map =
            output.and_then(|name| zip_maps.iter().find(|zip_map| zip_map.output == name));
        match zip_map {
            Some(zip_map) if field.number == NODE => {
                put_bytes(&mut changed, NODE, &zip_map.identity())
            }
            Some(zip_map) => put_bytes(&mut changed, OUTPUT, &zip_map.value_info()),
            None => changed.extend_from_slice(field.raw),
        }
    }
    Ok(changed)
}

/// The node, if it is a `ZipMap`.
fn zip_map(node: &[u8]) -> Result<Option<ZipMap>, Malformed> {
    let (mut input, mut output, mut classes) = (None, None, Vec::new());
    let (mut operator, mut domain): (&[u8], &[u8]) = (&[], &[]);
    for field in fields(node) {
        let field = field?;
        match field.number {
            1 => input = Some(field.text()),
            2 => output = Some(field.text()),
            4 => operator = field.bytes(),
            5 => classes.push(field.bytes()),
            7 => domain = field.bytes(),
            _ => {}
        }
    }
    let (Some(input), Some(output)) = (input, output) else { return Ok(None) };
    if operator != b"ZipMap" || domain != b"ai.onnx.ml" {
        return Ok(None);
    }
    let mut names = Vec::new();
    for attribute in classes {
        for field in fields(attribute) {
            let field = field?;
            match field.number {
                8 => names.extend(field.numbers()?.iter().map(|class| (*class as i64).to_string())),
                9 => names.push(format!("{:?}", field.text())),
                _ => {}
            }
        }
    }
    Ok(Some(ZipMap { input, output, classes: names }))
}

/// The text in a field of a message. Empty if it is not there.
fn text_of(message: &[u8], number: u64) -> Result<String, Malformed> {
    let mut text = String::new();
    for field in fields(message) {
        let field = field?;
        if field.number == number {
            text = field.text();
        }
    }
    Ok(text)
}

impl ZipMap {
    /// The node in its place.
    fn identity(&self) -> Vec<u8> {
        let mut node = Vec::new();
        put_bytes(&mut node, 1, self.input.as_bytes());
        put_bytes(&mut node, 2, self.output.as_bytes());
        put_bytes(&mut node, 4, b"Identity");
        node
    }

    /// The `ValueInfoProto` of the output: any number of rows, a column for each class.
    fn value_info(&self) -> Vec<u8> {
        let mut columns = Vec::new();
        put_number(&mut columns, 1, self.classes.len() as u64);
        let mut shape = Vec::new();
        put_bytes(&mut shape, 1, &[]);
        put_bytes(&mut shape, 1, &columns);
        let mut tensor = Vec::new();
        put_number(&mut tensor, 1, FLOAT);
        put_bytes(&mut tensor, 2, &shape);
        let mut kind = Vec::new();
        put_bytes(&mut kind, 1, &tensor);
        let mut value_info = Vec::new();
        put_bytes(&mut value_info, 1, self.output.as_bytes());
        put_bytes(&mut value_info, 2, &kind);
        value_info
    }

    fn warning(&self) -> String {
        let Self { output, classes, .. } = self;
        let mut shown = classes[..classes.len().min(CLASSES_SHOWN)].join(", ");
        if classes.len() > CLASSES_SHOWN {
            shown += &format!(" and {} more", classes.len() - CLASSES_SHOWN);
        }
        format!(
            "output {output:?} has a column for each class ({shown}) in place of the maps of its last \
             operator, ZipMap, which are no tensor; options={{id(model): {{'zipmap': False}}}} of the \
             converter leaves ZipMap out"
        )
    }
}

#[cfg(test)]
mod tests;
