//! A model of a repository on its way to a server: in one release, with all its versions and its
//! configuration.
//!
//! A server adds versions only above its newest one. So a version that is below it stays as it is
//! there, and the configuration names only versions that are there afterwards.

use anyhow::{Context, Result, ensure};
use clap::ArgMatches;
use gristmill_core::Digest;
use serde_json::{Map, Value, json};

use super::reading::TensorName;
use super::repository::Model;
use crate::admin::Admin;
use crate::file_upload::HashedFile;
use crate::model::push::Pushed;
use crate::output::{cut, state_and_reason};
use crate::progress::bytes_text;

/// Maximum characters of a name, and of a list of names, that a text repeats.
const NAME_CHARS: usize = 60;
const NAMES_CHARS: usize = 200;

/// What is said of a model: to people, and to programs.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) text: String,
    pub(super) document: Value,
}

/// What a release brings.
#[derive(Debug, PartialEq)]
struct Plan {
    /// The places of the versions that are pushed.
    pushed: Vec<usize>,
    /// Whether the versions keep their numbers.
    numbered: bool,
    document: Option<Map<String, Value>>,
    /// What is left out.
    left_out: Vec<String>,
}

/// The files of a model's versions, in their order.
///
/// # Errors
/// A file cannot be read, or is an archive: the models of someone else are not unpacked.
pub(super) fn files_of(model: &Model) -> Result<Vec<HashedFile>> {
    model.versions.iter().map(|version| HashedFile::read_plain_model(&version.path)).collect()
}

/// What would be sent.
pub(super) fn preview(model: &Model, files: &[HashedFile]) -> Said {
    let mut text = format!("{}:", model.name);
    let mut versions = Vec::new();
    for (version, file) in model.versions.iter().zip(files) {
        let (number, path) = (version.number, file.path.display());
        text += &format!("\n  version {number}: {path}, {}", bytes_text(file.bytes));
        versions.push(json!({
            "version": number, "file": path.to_string(), "digest": file.digest, "bytes": file.bytes,
        }));
    }
    text += "\n  configuration: ";
    match &model.document {
        Some(document) => text += &json!(document).to_string(),
        None => text += "not sent; that of the server stays, and a new model has the defaults",
    }
    for ignored in &model.ignored {
        text += &format!("\n  ignored: {ignored}");
    }
    let document = json!({
        "model": model.name, "versions": versions, "config": model.document,
        "ignored": model.ignored,
    });
    Said { text, document }
}

/// Upload a model's files, and make the release.
pub(super) fn send(
    admin: &Admin,
    matches: &ArgMatches,
    model: &Model,
    files: &[HashedFile],
) -> Result<Said> {
    let name = &model.name;
    let current = admin.find(&format!("models/{name}"))?.unwrap_or_default();
    let digests: Vec<_> = files.iter().map(|file| file.digest).collect();
    let Plan { pushed: places, numbered, document, left_out } = plan(model, &digests, &current)?;
    let (mut changes, mut numbers) = (Vec::new(), Vec::new());
    for place in places {
        let (version, file) = (&model.versions[place], &files[place]);
        file.upload(admin)?;
        let mut put = json!({ "kind": "put_model", "model": name, "digest": file.digest });
        if numbered {
            put["version"] = version.number.into();
        }
        numbers.push(version.number);
        changes.push(put);
    }
    if let Some(document) = document {
        let put = json!({ "kind": "put_model_config", "model": name, "document": document });
        changes.push(put);
    }
    let pushed = Pushed::release(admin, matches, name, changes)?;

    let mut text = pushed.text(name);
    if let [_, _, ..] = numbers[..] {
        let numbers: Vec<_> = numbers.iter().map(u64::to_string).collect();
        text += &format!("\nversions: {}", numbers.join(", "));
    }
    // They are faults of their own, and keep no release from being made.
    let kept = pushed.model["kept_versions"].as_object().into_iter().flatten();
    for (number, kept) in kept.filter(|(_, kept)| kept["state"] != "ready") {
        text += &format!("\nwarning: version {number} is {}", state_and_reason(kept));
    }
    let unknown = unknown_tensors(model, &pushed.model);
    let ignored = || model.ignored.iter().chain(&left_out).chain(&unknown);
    for ignored in ignored() {
        text += &format!("\nignored: {ignored}");
    }
    let mut document = pushed.document();
    document["model"] = name.as_str().into();
    document["versions"] = numbers.into();
    document["ignored"] = ignored().cloned().collect();
    Ok(Said { text, document })
}

/// The inputs and outputs in the configuration that the model, which serves as in `served`, lacks.
fn unknown_tensors(model: &Model, served: &Value) -> Vec<String> {
    let mut unknown = Vec::new();
    for (place, TensorName { is_input, name, .. }) in &model.tensors {
        let (kind, lists) = match is_input {
            true => ("input", &["inputs", "optional_inputs"][..]),
            false => ("output", &["outputs"][..]),
        };
        let lists = lists.iter().filter_map(|list| served[list].as_array());
        let names: Vec<_> = lists.flatten().filter_map(|tensor| tensor["name"].as_str()).collect();
        // A model that is not loaded has none.
        if !names.is_empty() && !names.contains(&&**name) {
            let (name, names) = (cut(name, NAME_CHARS), cut(&names.join(", "), NAMES_CHARS));
            unknown
                .push(format!("{place}: {kind} {name:?}: the model has no such {kind}: {names}"));
        }
    }
    unknown
}

/// What a release brings, if the server has the model as in `current`, or not at all.
///
/// # Errors
/// The server has a version with a higher number than all of these.
fn plan(model: &Model, digests: &[Digest], current: &Value) -> Result<Plan> {
    let newest = current["version"].as_u64();
    let kept = |number: u64| current["kept_versions"][number.to_string()]["digest"].as_str();
    let is_above = |number: u64| newest.is_none_or(|newest| number >= newest);
    let last = model.versions.len().checked_sub(1).context("the model has no version")?;
    let file = digests.get(last).context("the newest version has no file")?.to_string();
    let mut plan = Plan {
        pushed: (0..=last).filter(|place| is_above(model.versions[*place].number)).collect(),
        numbered: true,
        document: model.document.clone(),
        left_out: Vec::new(),
    };
    if plan.pushed.is_empty() {
        let (newest, number) = (newest.unwrap_or_default(), model.versions[last].number);
        let path = model.versions[last].path.display();
        ensure!(
            current["digest"] == file.as_str(),
            "the server has version {newest} of {}, and {path} is version {number}: give its folder \
             a number above {newest}, or push the file with `gristmill model push {path} --name {}`, \
             which takes the next number",
            model.name,
            model.name
        );
        // It is there under another number.
        plan = Plan { pushed: vec![last], numbered: false, ..plan };
    }
    for (place, version) in model.versions.iter().enumerate() {
        let number = version.number;
        let digest = digests.get(place).map(Digest::to_string);
        let is_there = digest.is_some() && kept(number) == digest.as_deref();
        if !plan.pushed.contains(&place) && !is_there {
            let (newest, path) = (newest.unwrap_or_default(), version.path.display());
            plan.left_out.push(format!(
                "{path}: the server has version {newest}, and takes no earlier one than that"
            ));
        }
    }
    let comes = |number: u64| plan.numbered && is_above(number);
    let stays = |number: u64| newest == Some(number) || kept(number).is_some();
    if let Some(document) = &mut plan.document {
        let policy = document.get_mut("version_policy");
        let versions = policy.and_then(|policy| policy.pointer_mut("/specific/versions"));
        if let Some(versions) = versions.and_then(Value::as_array_mut) {
            versions.retain(|version| {
                version.as_u64().is_some_and(|number| comes(number) || stays(number))
            });
            if versions.is_empty() {
                document.remove("version_policy");
            }
        }
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::super::repository::Version;
    use super::*;

    fn model(numbers: &[u64], policy: Value) -> Model {
        let version = |number: &u64| {
            let path = format!("repository/m/{number}/model.onnx").into();
            Version { number: *number, path }
        };
        let mut document = Map::new();
        document.insert("version_policy".into(), policy);
        Model {
            name: "m".parse().unwrap(),
            versions: numbers.iter().map(version).collect(),
            document: Some(document),
            ignored: Vec::new(),
            tensors: Vec::new(),
        }
    }

    fn digest(byte: u8) -> Digest {
        Digest::from_bytes([byte; 32])
    }

    fn specific(versions: &[u64]) -> Value {
        json!({ "specific": { "versions": versions } })
    }

    #[test]
    fn an_archive_in_place_of_a_model_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.onnx");
        let mut model = model(&[1], Value::Null);
        model.versions[0].path = path.clone();
        let starts: [(&[u8], bool); 3] =
            [(b"\x1f\x8b\x08", true), (b"PK\x03\x04", true), (b"\x08\x07", false)];
        for (start, is_refused) in starts {
            std::fs::write(&path, start).unwrap();
            match files_of(&model) {
                Ok(files) => assert!(!is_refused && files.len() == 1, "{start:?}"),
                Err(error) => {
                    let error = format!("{error:#}");
                    assert!(is_refused && error.contains("unpack it"), "{start:?}: {error}");
                }
            }
        }
    }

    #[test]
    fn only_versions_that_the_server_can_take_are_pushed() {
        let model = model(&[1, 3, 5], specific(&[1, 3, 5]));
        let digests = [1, 3, 5].map(digest);
        let policy = |plan: &Plan| plan.document.as_ref().unwrap().get("version_policy").cloned();
        let new = plan(&model, &digests, &Value::Null).unwrap();
        assert_eq!((&new.pushed[..], new.numbered), (&[0, 1, 2][..], true));
        assert_eq!(policy(&new), Some(specific(&[1, 3, 5])));

        // The first is there, the second is replaced, the third is new.
        let current = json!({ "version": 3, "digest": digest(9),
            "kept_versions": { "1": { "digest": digest(1) } } });
        let next = plan(&model, &digests, &current).unwrap();
        assert_eq!((&next.pushed[..], next.left_out.len()), (&[1, 2][..], 0));
        assert_eq!(policy(&next), Some(specific(&[1, 3, 5])));

        // Earlier ones cannot be added.
        let current = json!({ "version": 5, "digest": digest(5) });
        let late = plan(&model, &digests, &current).unwrap();
        assert_eq!((&late.pushed[..], late.left_out.len()), (&[2][..], 2));
        assert!(late.left_out[0].contains("m/1/model.onnx: the server has version 5"));
        assert_eq!(policy(&late), Some(specific(&[5])));
    }

    #[test]
    fn inputs_and_outputs_that_the_model_has_not_are_named() {
        let mut model = model(&[1], Value::Null);
        let named = [(true, "x"), (true, "k"), (true, "images"), (false, "y"), (false, "x")];
        let place = |(line, (is_input, name)): (usize, (bool, &str))| {
            let name = name.to_owned();
            (format!("config.pbtxt:{line}"), TensorName { line, is_input, name })
        };
        model.tensors = named.into_iter().enumerate().map(place).collect();
        let served = json!({ "inputs": [{ "name": "x" }], "optional_inputs": [{ "name": "k" }],
            "outputs": [{ "name": "y" }] });
        let expected = [
            "config.pbtxt:2: input \"images\": the model has no such input: x, k",
            "config.pbtxt:4: output \"x\": the model has no such output: y",
        ];
        assert_eq!(unknown_tensors(&model, &served), expected);
        assert_eq!(unknown_tensors(&model, &json!({ "state": "failed" })), [""; 0]);
    }

    #[test]
    fn a_file_that_is_there_under_a_higher_number_is_not_new() {
        let model = model(&[1], json!({ "latest": { "num_versions": 2 } }));
        let current = json!({ "version": 40, "digest": digest(1) });
        let same = plan(&model, &[digest(1)], &current).unwrap();
        assert_eq!((&same.pushed[..], same.numbered), (&[0][..], false));
        let error = plan(&model, &[digest(2)], &current).unwrap_err().to_string();
        for named in ["version 40 of m", "m/1/model.onnx is version 1", "gristmill model push"] {
            assert!(error.contains(named), "{named}: {error}");
        }
    }
}
