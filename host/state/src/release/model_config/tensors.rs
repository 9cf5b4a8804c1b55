//! What a model's configuration says of its inputs and outputs: for clients, not for loading it.

use std::collections::BTreeSet;
use std::sync::Arc;

use gristmill_snapshot::{Format, TensorNotes};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use utoipa::ToSchema;

use crate::release::document::{Document, Faults, shown};

/// Maximum labels of an output.
pub const LABELS_MAX: usize = 65_536;

/// Maximum inputs and outputs, and bytes of a name and of a label.
pub(super) const TENSORS_MAX: usize = 1024;
pub(super) const TEXT_BYTES_MAX: usize = 1024;

pub(super) const FORMATS: [(&str, FormatSpec); 3] = [
    ("FORMAT_NONE", FormatSpec::None),
    ("FORMAT_NHWC", FormatSpec::Nhwc),
    ("FORMAT_NCHW", FormatSpec::Nchw),
];

/// What is said of an input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[schema(as = ModelInput)]
#[serde(deny_unknown_fields)]
pub struct InputSpec {
    /// The input.
    pub name: String,
    /// The order of a picture's dimensions.
    #[serde(default)]
    pub format: FormatSpec,
}

/// The order of a picture's dimensions, apart from the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[schema(as = Format)]
pub enum FormatSpec {
    /// It is not a picture, or nothing is said of it.
    #[default]
    #[serde(rename = "FORMAT_NONE")]
    None,
    /// Height, width, channels.
    #[serde(rename = "FORMAT_NHWC")]
    Nhwc,
    /// Channels, height, width.
    #[serde(rename = "FORMAT_NCHW")]
    Nchw,
}

/// What is said of an output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[schema(as = ModelOutput)]
#[serde(deny_unknown_fields)]
pub struct OutputSpec {
    /// The output.
    pub name: String,
    /// The names of the places in a row, for classification.
    #[schema(value_type = Vec<String>, max_items = 65_536)]
    #[serde(default)]
    pub labels: Labels,
}

/// Texts that copies of a configuration share.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Labels(pub Arc<[Box<str>]>);

impl Labels {
    /// The lines of a file of labels.
    pub fn of_lines(text: &str) -> Self {
        Self(text.lines().map(|line| line.trim_end().into()).collect())
    }
}

impl Default for Labels {
    fn default() -> Self {
        Self(Arc::new([]))
    }
}

impl Serialize for Labels {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter())
    }
}

impl<'de> Deserialize<'de> for Labels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<Box<str>>::deserialize(deserializer).map(|labels| Self(labels.into()))
    }
}

/// Read the key `input`.
pub(super) fn read_inputs(read: &mut Document) -> Vec<InputSpec> {
    let input = |input: &mut Document| {
        let (name, format) = (input.text("name"), input.one_of("format", &FORMATS));
        Some(InputSpec { name: input.require("name", name)?, format: format.unwrap_or_default() })
    };
    read.objects("input", input).unwrap_or_default()
}

/// Read the key `output`.
pub(super) fn read_outputs(read: &mut Document) -> Vec<OutputSpec> {
    let label = |item: &Value| match item {
        Value::String(text) => Ok(text.as_str().into()),
        other => Err(format!(" is {}: must be text", shown(other))),
    };
    let output = |output: &mut Document| {
        let (name, labels) = (output.text("name"), output.list("labels", label));
        let labels = Labels(labels.unwrap_or_default().into());
        Some(OutputSpec { name: output.require("name", name)?, labels })
    };
    read.objects("output", output).unwrap_or_default()
}

/// What inputs and outputs say for clients.
pub(super) fn notes(inputs: &[InputSpec], outputs: &[OutputSpec]) -> TensorNotes {
    let format = |input: &InputSpec| {
        let format = match input.format {
            FormatSpec::None => Format::None,
            FormatSpec::Nhwc => Format::Nhwc,
            FormatSpec::Nchw => Format::Nchw,
        };
        (input.name.clone(), format)
    };
    let labels = |output: &OutputSpec| (output.name.clone(), output.labels.0.clone());
    TensorNotes {
        formats: inputs.iter().map(format).collect(),
        labels: outputs.iter().map(labels).collect(),
    }
}

pub(super) fn check(inputs: &[InputSpec], outputs: &[OutputSpec], faults: &mut Faults) {
    check_names("input", inputs.iter().map(|input| &*input.name), faults);
    check_names("output", outputs.iter().map(|output| &*output.name), faults);
    for (index, output) in outputs.iter().enumerate() {
        let (labels, key) = (&output.labels.0, format!("output[{index}].labels"));
        if labels.len() > LABELS_MAX {
            let count = labels.len();
            faults.add(&*key, format!("{key} has {count} labels: the limit is {LABELS_MAX}"));
        }
        if let Some(at) = labels.iter().position(|label| label.len() > TEXT_BYTES_MAX) {
            let len = labels[at].len();
            let text = format!("{key}[{at}] has {len} bytes: the limit is {TEXT_BYTES_MAX}");
            faults.add(format!("{key}[{at}]"), text);
        }
    }
}

fn check_names<'a>(key: &str, names: impl Iterator<Item = &'a str>, faults: &mut Faults) {
    let mut seen = BTreeSet::new();
    for (index, name) in names.enumerate() {
        let at = format!("{key}[{index}].name");
        if index == TENSORS_MAX {
            return faults.add(key, format!("{key} has more than {TENSORS_MAX} entries"));
        }
        if !(1..=TEXT_BYTES_MAX).contains(&name.len()) {
            let len = name.len();
            faults.add(&*at, format!("{at} has {len} bytes: must be 1 to {TEXT_BYTES_MAX}"));
        } else if !seen.insert(name) {
            faults.add(&*at, format!("{at} is {name:?}, which is named twice"));
        }
    }
}
