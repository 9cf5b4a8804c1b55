//! What a call brings that loads a model: a configuration in Triton's words, and files.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use gristmill_core::{ErrorCode, Name};
use gristmill_oip::grpc::proto::ModelRepositoryParameter;
use gristmill_oip::grpc::proto::model_repository_parameter::ParameterChoice;
use gristmill_snapshot::TensorNotes;
use gristmill_state::{LabelFiles, Labels, ModelConfig};
use gristmill_transport::Problem;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

const CONFIG: &str = "config";
const FILE: &str = "file:";

/// The name of a model's file, below the number of its version.
const MODEL_FILE: &str = "model.onnx";

/// The most files of a model, as of a package.
const FILES_MAX: usize = 4096;

/// What a call brings.
#[derive(Debug, Default)]
pub(crate) struct Brought {
    config: Option<Map<String, Value>>,
    version: Option<VersionFiles>,
    labels: LabelFiles,
}

/// The files of a version, by their paths below its number.
#[derive(Debug)]
struct VersionFiles {
    number: u64,
    files: BTreeMap<String, Bytes>,
}

/// The file of a model, and the version that it becomes.
#[derive(Debug)]
pub struct ModelFile {
    /// The number of the version.
    pub version: u64,
    /// The file.
    pub content: Bytes,
    /// The files that hold its weights, by their paths beside it. Empty if it holds them itself.
    pub weights: BTreeMap<String, Bytes>,
}

impl Brought {
    /// What the parameters of a call over HTTP bring: files are texts in base64.
    ///
    /// # Errors
    /// A parameter cannot be read, or its file has no use.
    pub(crate) fn of_json(parameters: BTreeMap<String, &RawValue>) -> Result<Self, Problem> {
        let mut brought = Self::default();
        for (name, value) in parameters {
            if name == CONFIG {
                brought.config = Some(config(&text(&name, value)?)?);
            } else if let Some(path) = name.strip_prefix(FILE) {
                let content = STANDARD.decode(text(&name, value)?);
                let wrong = |error| invalid(format!("parameter {name:?} is not base64: {error}"));
                brought.file(path, content.map_err(wrong)?.into())?;
            }
        }
        Ok(brought)
    }

    /// What the parameters of a call over gRPC bring.
    ///
    /// # Errors
    /// A parameter has another type than it needs, or its file has no use.
    pub(crate) fn of_grpc<'a>(
        parameters: impl Iterator<Item = (&'a String, &'a ModelRepositoryParameter)>,
    ) -> Result<Self, Problem> {
        let mut brought = Self::default();
        for (name, parameter) in parameters {
            let value = parameter.parameter_choice.as_ref();
            match (name.strip_prefix(FILE), value) {
                (None, Some(ParameterChoice::StringParam(text))) if name == CONFIG => {
                    brought.config = Some(config(text)?);
                }
                (Some(path), Some(ParameterChoice::BytesParam(content))) => {
                    brought.file(path, content.clone())?;
                }
                (None, _) if name == CONFIG => {
                    return Err(invalid(format!("parameter {name:?} must be a text")));
                }
                (Some(_), _) => {
                    return Err(invalid(format!("parameter {name:?} must be bytes")));
                }
                (None, _) => {}
            }
        }
        Ok(brought)
    }

    /// Take a file: one of the model's, or labels.
    fn file(&mut self, path: &str, content: Bytes) -> Result<(), Problem> {
        let Some((version, file)) = path.split_once('/') else {
            let wrong = |_| invalid(format!("file {path:?} is not a text of labels in UTF-8"));
            let text = std::str::from_utf8(&content).map_err(wrong)?;
            self.labels.insert(path.to_owned(), Labels::of_lines(text));
            return Ok(());
        };
        let number = version.parse().ok().filter(|number: &u64| number.to_string() == version);
        let (Some(number), false) = (number, file.is_empty()) else { return Err(no_use(path)) };
        let new = || VersionFiles { number, files: BTreeMap::new() };
        let version = self.version.get_or_insert_with(new);
        if version.number != number {
            let other = version.number;
            return Err(invalid(format!(
                "versions {other} and {number} are given: a call brings one version"
            )));
        }
        version.files.insert(file.to_owned(), content);
        match version.files.len() > FILES_MAX {
            true => Err(invalid(format!("the call brings over {FILES_MAX} files of the model"))),
            false => Ok(()),
        }
    }

    /// The configuration and the model's file. `notes` are those of the model now.
    ///
    /// # Errors
    /// The configuration has faults or is that of another model than `model`, or a file has no use.
    pub(crate) fn read(
        self,
        model: &Name,
        notes: &TensorNotes,
    ) -> Result<(Option<ModelConfig>, Option<ModelFile>), Problem> {
        let Self { config, version, labels } = self;
        let file = version.map(VersionFiles::into_model).transpose()?;
        let Some(keys) = config else { return Ok((None, file)) };
        if let Some(Value::String(name)) = keys.get("name")
            && !name.is_empty()
            && name != model.as_str()
        {
            let model = model.as_str();
            let detail = format!("config: name is {name:?}, but the call loads model {model:?}");
            return Err(invalid(detail));
        }
        Ok((Some(ModelConfig::read_triton(keys, &labels, notes)?), file))
    }
}

impl VersionFiles {
    /// The model among the files, with the others as its weights.
    fn into_model(self) -> Result<ModelFile, Problem> {
        let Self { number: version, files: mut weights } = self;
        let Some(content) = weights.remove(MODEL_FILE) else {
            let other = weights.keys().next().map_or("", String::as_str);
            return Err(no_use(&format!("{version}/{other}")));
        };
        Ok(ModelFile { version, content, weights })
    }
}

fn no_use(path: &str) -> Problem {
    invalid(format!(
        "file {path:?} has no use: a model is VERSION/{MODEL_FILE}, such as 1/{MODEL_FILE}, with the \
         files of its weights beside it"
    ))
}

fn config(text: &str) -> Result<Map<String, Value>, Problem> {
    let wrong = |error| invalid(format!("parameter {CONFIG:?} is not a JSON object: {error}"));
    serde_json::from_str(text).map_err(wrong)
}

/// The text of a parameter in JSON.
fn text(name: &str, value: &RawValue) -> Result<String, Problem> {
    let wrong = |_| invalid(format!("parameter {name:?} must be a text"));
    serde_json::from_str(value.get()).map_err(wrong)
}

fn invalid(detail: String) -> Problem {
    Problem::new(ErrorCode::InvalidRequest, detail)
}
