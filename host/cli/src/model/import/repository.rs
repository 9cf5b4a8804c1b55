//! A model repository of Triton on this machine: which models it has, and what can be pushed of
//! each.
//!
//! Invariant: no path is followed out of the model's folder, and no link is followed: it could lead
//! to any file of the person who imports the models of someone else.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use gristmill_core::Name;
use gristmill_state::{LABELS_MAX, ModelConfig, StateError, VERSION_MAX};
use serde_json::{Map, Value, json};

use super::config::TritonConfig;
use super::reading::TensorName;
use super::tensors::LabelFile;
use super::text_format::parse;

/// The configuration of a model, in its folder.
pub(super) const CONFIG: &str = "config.pbtxt";

/// A model's file in the folder of a version, unless its configuration names another.
const MODEL_FILE: &str = "model.onnx";

/// Maximum bytes of a configuration, and of the labels of all outputs of a model. A label takes
/// some bytes beside its text, also if it is empty.
const CONFIG_BYTES_MAX: u64 = 1 << 20;
const LABELS_BYTES_MAX: u64 = 16 << 20;
const LABEL_BYTES: u64 = 16;

const LINK: &str = "is a link: copy the repository with cp -rL, which puts the files in place of \
                    links, and import the copy";

/// The files of models that are not ONNX.
const OTHER_FILES: [(&str, &str); 7] = [
    ("model.plan", "a TensorRT plan"),
    ("model.pt", "TorchScript"),
    ("model.pt2", "a program of PyTorch"),
    ("model.graphdef", "a graph of TensorFlow"),
    ("model.savedmodel", "a model of TensorFlow"),
    ("model.py", "a Python model"),
    ("model.xml", "a model of OpenVINO"),
];

/// The models of a repository.
#[derive(Debug)]
pub(super) struct Repository {
    pub(super) models: Vec<Found>,
    /// Folders that are not models, and links, each with the reason.
    pub(super) skipped: Vec<String>,
}

/// The folder of a model.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) name: String,
    pub(super) model: Result<Model, Faults>,
}

/// What can be pushed.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) name: Name,
    /// At least one, the oldest first.
    pub(super) versions: Vec<Version>,
    /// Gristmill's configuration, if the model has a [`CONFIG`].
    pub(super) document: Option<Map<String, Value>>,
    /// What is ignored, each with its file and its line.
    pub(super) ignored: Vec<String>,
    /// The inputs and the outputs that the [`CONFIG`] names, each with its place.
    pub(super) tensors: Vec<(String, TensorName)>,
}

/// A version of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) number: u64,
    /// A file, or a folder with a file and its weights.
    pub(super) path: PathBuf,
}

/// All that keeps a model from being imported.
#[derive(Debug)]
pub(super) struct Faults(pub(super) Vec<String>);

impl From<String> for Faults {
    fn from(fault: String) -> Self {
        Self(vec![fault])
    }
}

impl Repository {
    /// Read the repository in this folder. If models are `wanted`, only these.
    ///
    /// # Errors
    /// The folder cannot be read, is a model itself, or lacks a model that is wanted. What is wrong
    /// with a model stands in its place.
    pub(super) fn read(folder: &Path, wanted: &[Name]) -> Result<Self> {
        let failed = || folder.display().to_string();
        ensure!(
            !folder.is_file(),
            "{} is a file: FOLDER is a model repository; unpack an archive first",
            folder.display()
        );
        let mut folders = BTreeMap::new();
        for entry in fs::read_dir(folder).with_context(failed)? {
            let entry = entry.with_context(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let about = entry.file_type().with_context(failed)?;
            if !name.starts_with('.') && (about.is_dir() || about.is_symlink()) {
                folders.insert(name, entry.path());
            }
        }
        ensure!(
            !folder.join(CONFIG).exists(),
            "{} has a {CONFIG}, so it is a model: give the folder around it, and --model NAME for \
             this model alone",
            folder.display()
        );
        if let Some(missing) = wanted.iter().find(|name| !folders.contains_key(name.as_str())) {
            let names: Vec<_> = folders.into_keys().collect();
            bail!("--model: {} has no {missing}: it has {}", folder.display(), names.join(", "));
        }
        let mut repository = Self { models: Vec::new(), skipped: Vec::new() };
        for (name, path) in folders {
            let is_wanted = wanted.iter().any(|wanted| wanted.as_str() == name);
            if !wanted.is_empty() && !is_wanted {
                continue;
            }
            let (read, why_not) = match path.is_symlink() {
                true => (Ok(None), format!("it {LINK}")),
                false => {
                    let why_not = format!("it has neither a {CONFIG} nor a folder of a version");
                    (read_model(&path, &name), why_not)
                }
            };
            let model = match read {
                Ok(Some(model)) => Ok(model),
                Ok(None) if is_wanted => Err(why_not.into()),
                Ok(None) => {
                    repository.skipped.push(format!("{name}: {why_not}"));
                    continue;
                }
                Err(faults) => Err(faults),
            };
            repository.models.push(Found { name, model });
        }
        Ok(repository)
    }
}

/// Read the model in this folder, which has this name. None if the folder is not a model.
fn read_model(folder: &Path, name: &str) -> Result<Option<Model>, Faults> {
    let name = match Name::of_model(name) {
        Ok(name) => name,
        Err(_) if !is_like_a_model(folder) => return Ok(None),
        Err(error) => return Err(format!("{error}: rename the folder").into()),
    };
    let (Folders { there, too_high }, config) = (versions_of(folder)?, read_config(folder)?);
    let Some((path, config)) = config else {
        let Some(newest) = there.last() else {
            return too_high.map_or(Ok(None), |note| Err(note.into()));
        };
        let versions = vec![version_at(folder, *newest, MODEL_FILE)?];
        let ignored = Vec::from_iter(too_high);
        return Ok(Some(Model { name, versions, document: None, ignored, tensors: Vec::new() }));
    };
    let TritonConfig { reading, name: given_name, file, versions: policy, versions_line, labels } =
        config;
    let path = path.display();
    if !reading.faults.is_empty() {
        let faults = reading.faults.iter().map(|fault| format!("{path}:{fault}"));
        return Err(Faults(faults.collect()));
    }
    let mut ignored: Vec<_> = reading.ignored.iter().map(|note| format!("{path}:{note}")).collect();
    if let Some((line, given_name)) =
        given_name.filter(|(_, given_name)| given_name != name.as_str())
    {
        let why = "the model gets the name of its folder";
        ignored.push(format!("{path}:{line}: name is {given_name:?}: {why}"));
    }
    let policy_line = versions_line.unwrap_or(1);
    for note in policy.notes(&there) {
        ignored.push(format!("{path}:{policy_line}: version_policy: {note}"));
    }

    let chosen = policy.choose(&there);
    if chosen.is_empty() {
        let folder = folder.display();
        return Err(Faults::from(match there.is_empty() {
            true => too_high.unwrap_or_else(|| {
                format!("{folder} has no version: put the model at {folder}/1/{MODEL_FILE}")
            }),
            false => format!(
                "{path}:{policy_line}: version_policy names none of the versions in {folder}, which \
                 has {}: name one of them",
                listed(&there)
            ),
        }));
    }
    ignored.extend(too_high);
    let file = file.map_or_else(|| MODEL_FILE.to_owned(), |(_, file)| file);
    let versions = chosen.iter().map(|number| version_at(folder, *number, &file));
    let versions = versions.collect::<Result<Vec<_>, _>>()?;

    let mut document = reading.document.clone();
    if let Some(policy) = policy.document(&chosen) {
        document.insert("version_policy".to_owned(), policy);
    }
    let (mut outputs, mut bytes_left) = (Vec::new(), LABELS_BYTES_MAX);
    for LabelFile { line, output, file } in &labels {
        let labels = read_labels(folder, file, &mut bytes_left)
            .map_err(|error| format!("{path}:{line}: {error}"))?;
        outputs.push(json!({ "name": output, "labels": labels }));
    }
    if !outputs.is_empty() {
        document.insert("output".to_owned(), outputs.into());
    }
    if let Err(error) = ModelConfig::read(document.clone()) {
        let line = |key: &str| match key {
            "version_policy" => versions_line,
            "output" => labels.first().map(|labels| labels.line),
            _ => reading.line_of(key),
        };
        return Err(Faults(placed(&error, |key, text| match line(key) {
            Some(line) => format!("{path}:{line}: {text}"),
            None => format!("{path}: {text}"),
        })));
    }
    let placed = |tensor: TensorName| (format!("{path}:{}", tensor.line), tensor);
    let tensors = reading.tensors.into_iter().map(placed).collect();
    Ok(Some(Model { name, versions, document: Some(document), ignored, tensors }))
}

/// The faults of a configuration of Gristmill. `at` adds the place of the key to the text.
fn placed(error: &StateError, at: impl Fn(&str, &str) -> String) -> Vec<String> {
    let StateError::Invalid(faults) = error else { return vec![at("", &error.to_string())] };
    let faults = faults.placed("").into_iter();
    let place = |pointer: &str| pointer.split('/').nth(1).unwrap_or_default().to_owned();
    faults.map(|fault| at(&place(&fault.pointer), &fault.detail)).collect()
}

/// The [`CONFIG`] of a model, and where it is.
fn read_config(folder: &Path) -> Result<Option<(PathBuf, TritonConfig)>, String> {
    let Some(path) = inside(folder, CONFIG)? else { return Ok(None) };
    let bytes = read_file(&path, CONFIG_BYTES_MAX)?;
    match parse(&bytes) {
        Ok(message) => Ok(Some((path, TritonConfig::read(&message)))),
        Err(error) => {
            let cure = "it must be in protobuf's text format";
            Err(format!("{}:{}: {}: {cure}", path.display(), error.line, error.what))
        }
    }
}

/// The folders of a model's versions.
struct Folders {
    there: BTreeSet<u64>,
    /// A note, if there are numbers that the server does not take.
    too_high: Option<String>,
}

/// The numbers of a model's versions. As in Triton, folders with other names do not count, nor do
/// numbers that begin with 0.
fn versions_of(folder: &Path) -> Result<Folders, String> {
    let failed = |error: io::Error| format!("{}: {error}", folder.display());
    let (mut there, mut others) = (BTreeSet::new(), BTreeSet::new());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_number = name.bytes().all(|byte| byte.is_ascii_digit()) && !name.starts_with('0');
        if !is_number || entry.file_type().map_err(failed)?.is_file() {
            continue;
        }
        match name.parse::<u64>() {
            Ok(number) if number <= VERSION_MAX => {
                there.insert(number);
            }
            _ => {
                others.insert(name);
            }
        }
    }
    let too_high = others.first().map(|first| {
        let more = match others.len() - 1 {
            0 => String::new(),
            count => format!(" and {count} more"),
        };
        let folder = folder.display();
        format!("{folder}/{first}{more}: the number of a version is at most {VERSION_MAX}")
    });
    Ok(Folders { there, too_high })
}

/// Whether the folder has what a model has.
fn is_like_a_model(folder: &Path) -> bool {
    let has_versions =
        |Folders { there, too_high }: Folders| !there.is_empty() || too_high.is_some();
    folder.join(CONFIG).symlink_metadata().is_ok() || versions_of(folder).is_ok_and(has_versions)
}

/// The model in the folder of a version.
fn version_at(folder: &Path, number: u64, file: &str) -> Result<Version, String> {
    let base = folder.join(number.to_string());
    let path = inside(folder, &format!("{number}/{file}"))?;
    if let Some(path) = path.filter(|path| path.is_file() || path.is_dir()) {
        return Ok(Version { number, path });
    }
    let missing = base.join(file);
    let missing = missing.display();
    let other = OTHER_FILES.iter().find(|(name, _)| base.join(name).exists());
    Err(match other {
        Some((name, what)) => format!(
            "{missing} is missing, and {name}, {what}, cannot be imported: export the model as ONNX"
        ),
        None => format!("{missing} is missing: put it there, or name it in default_model_filename"),
    })
}

/// The labels in a file of a model. Those of all its files have `bytes_left`.
fn read_labels(folder: &Path, file: &str, bytes_left: &mut u64) -> Result<Vec<String>, String> {
    let Some(path) = inside(folder, file)? else {
        let folder = folder.display();
        return Err(format!(
            "label_filename is {file:?}, which is not in {folder}: put it there, or leave the key out"
        ));
    };
    let text = String::from_utf8(read_file(&path, LABELS_BYTES_MAX)?)
        .map_err(|_| format!("{} is not UTF-8", path.display()))?;
    let lines = text.lines().take(LABELS_MAX + 1);
    let labels: Vec<_> = lines.map(|line| line.trim_end().to_owned()).collect();
    if labels.len() > LABELS_MAX {
        let path = path.display();
        return Err(format!("{path} has more than {LABELS_MAX} labels, which is the limit"));
    }
    let taken = text.len() as u64 + labels.len() as u64 * LABEL_BYTES;
    let left = bytes_left.checked_sub(taken).ok_or_else(|| {
        format!("the labels of all outputs take more than {LABELS_BYTES_MAX} bytes: the limit")
    })?;
    *bytes_left = left;
    Ok(labels)
}

/// The file or the folder at this path in `folder`. None if nothing is there.
fn inside(folder: &Path, path: &str) -> Result<Option<PathBuf>, String> {
    let mut at = folder.to_owned();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => at.push(name),
            Component::CurDir => continue,
            _ => {
                let folder = folder.display();
                return Err(format!("{path:?} is not in {folder}: name a file in this folder"));
            }
        }
        match at.symlink_metadata() {
            Ok(about) if about.is_symlink() => {
                return Err(format!("{} {LINK}", at.display()));
            }
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("{}: {error}", at.display())),
        }
    }
    Ok(Some(at))
}

/// The bytes of a file.
fn read_file(path: &Path, bytes_max: u64) -> Result<Vec<u8>, String> {
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    if !path.is_file() {
        return Err(format!("{} is not a file", path.display()));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(bytes_max + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > bytes_max {
        return Err(format!(
            "{} has more than {bytes_max} bytes, which is the limit",
            path.display()
        ));
    }
    Ok(bytes)
}

/// "1, 2, 3".
fn listed(versions: &BTreeSet<u64>) -> String {
    versions.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
