//! `input`, `output` and `model_warmup`. Names, datatypes and dimensions are read from the model
//! itself, so only what the model does not say is kept.

use std::collections::BTreeSet;

use serde_json::json;

use super::reading::{NO_COUNTERPART, Reading};
use super::text_format::{Field, Message};

/// The orders of a picture's dimensions, which have the same names here.
const FORMATS: [(&str, &str); 3] = [
    ("FORMAT_NONE", "FORMAT_NONE"),
    ("FORMAT_NHWC", "FORMAT_NHWC"),
    ("FORMAT_NCHW", "FORMAT_NCHW"),
];

/// Maximum outputs with labels: those that a configuration may have.
const LABEL_FILES_MAX: usize = 1024;

/// A file with the labels of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LabelFile {
    pub(super) line: usize,
    pub(super) output: String,
    /// Its path in the model's folder.
    pub(super) file: String,
}

/// Read one field `input`.
pub(super) fn read_input(read: &mut Reading, field: &Field) {
    let (at, tensor) = ("input.", field);
    let Some(input) = read.message("", field) else { return };
    let mut format = None;
    for field in &input.fields {
        match &*field.name {
            "name" => read_name(read, at, tensor, field),
            "data_type" | "dims" | "optional" => {}
            "format" => format = read.one_of(at, field, &FORMATS),
            _ => read_shape(read, at, field),
        }
    }
    if let Some(format) = format.filter(|format| *format != "FORMAT_NONE")
        && let Some(name) = name_of(read, field, input)
    {
        read.push("input", field.line, json!({ "name": name, "format": format }));
    }
}

/// Read one field `output`. Returns the file of its labels.
pub(super) fn read_output(read: &mut Reading, field: &Field) -> Option<LabelFile> {
    let (at, tensor) = ("output.", field);
    let output = read.message("", field)?;
    let mut file = None;
    for field in &output.fields {
        match &*field.name {
            "name" => read_name(read, at, tensor, field),
            "data_type" | "dims" => {}
            "label_filename" => {
                let text = read.text(at, field).filter(|text| !text.is_empty());
                file = text.map(|text| (field.line, text.to_owned()));
            }
            _ => read_shape(read, at, field),
        }
    }
    let (line, file) = file?;
    let output = name_of(read, field, output)?.to_owned();
    Some(LabelFile { line, output, file })
}

/// Take one more file of labels, if it is not too many.
pub(super) fn add_labels(files: &mut Vec<LabelFile>, read: &mut Reading, field: &Field) {
    if let Some(file) = read_output(read, field) {
        match files.len() < LABEL_FILES_MAX {
            true => files.push(file),
            false => {
                let why = format!(": more than {LABEL_FILES_MAX} outputs have labels");
                read.fault("", field, why);
            }
        }
    }
}

/// The name of an input or an output, whose field is `tensor`.
fn read_name(read: &mut Reading, at: &str, tensor: &Field, field: &Field) {
    if let Some(name) = read.text(at, field) {
        read.tensor(tensor, name);
    }
}

/// A field of an input or an output that says how Triton changes what clients send or get.
fn read_shape(read: &mut Reading, at: &str, field: &Field) {
    match &*field.name {
        "reshape" => read.ignore(at, field, "clients send and get the model's own shapes"),
        "allow_ragged_batch" => {
            read.ignore_if_on(at, field, "only requests of equal shapes share a batch");
        }
        "is_shape_tensor" | "is_non_linear_format_io" => {
            read.ignore_if_on(at, field, NO_COUNTERPART);
        }
        _ => read.ignore_unknown(at, field),
    }
}

/// The name of an input or an output, whose field is `field`.
fn name_of<'a>(read: &mut Reading, field: &Field, tensor: &'a Message) -> Option<&'a str> {
    match tensor.fields.iter().rev().find(|field| &*field.name == "name") {
        Some(name) => read.text(&format!("{}.", field.name), name),
        None => {
            read.fault("", field, " has no name".to_owned());
            None
        }
    }
}

/// The sizes of the batches that are run before a model serves.
#[derive(Debug, Default)]
pub(super) struct WarmUp {
    line: usize,
    sizes: BTreeSet<u64>,
}

impl WarmUp {
    /// Read one field `model_warmup`.
    pub(super) fn read(&mut self, read: &mut Reading, field: &Field) {
        let at = "model_warmup.";
        if self.line == 0 {
            self.line = field.line;
        }
        let mut size = 1;
        for field in read.message("", field).into_iter().flat_map(|sample| &sample.fields) {
            match &*field.name {
                "name" => {}
                "batch_size" => size = read.whole(at, field).unwrap_or(1).max(1),
                "count" => read.ignore(at, field, "each instance runs each size once"),
                "inputs" => {
                    let (_, value) = read.entry(at, field);
                    let value = value.and_then(|value| read.message("model_warmup.inputs.", value));
                    let is_data =
                        |field: &&Field| matches!(&*field.name, "random_data" | "input_data_file");
                    let mut fields = value.into_iter().flat_map(|value| &value.fields);
                    if let Some(data) = fields.find(is_data) {
                        read.ignore("model_warmup.inputs.", data, "zeros are run");
                    }
                }
                _ => read.ignore_unknown(at, field),
            }
        }
        self.sizes.insert(size);
    }

    /// Set the key.
    pub(super) fn finish(self, read: &mut Reading) {
        if !self.sizes.is_empty() {
            let sizes: Vec<_> = self.sizes.into_iter().collect();
            read.set("warm_up", self.line, sizes);
        }
    }
}
