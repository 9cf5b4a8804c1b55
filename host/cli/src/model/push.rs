//! `gristmill model push`: upload a model, with its configuration. It is live when the command
//! returns.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::{ArgMatches, Command, value_parser};
use gristmill_core::Name;
use serde_json::{Map, Value, json};

use crate::admin::{self, Admin};
use crate::args::{self, option, required, word};
use crate::file_upload::HashedFile;
use crate::output::{self, Output};
use crate::progress::Progress;
use crate::{change, release_flags};

pub(crate) fn command() -> Command {
    Command::new("push")
        .about("Upload a model, which serves when the command returns")
        .after_help(
            "Examples:\n  \
             gristmill model push models/digits/digits.onnx --name digits\n  \
             gristmill model push cnn.onnx --name cnn --config cnn.toml --message \"new weights\"\n  \
             gristmill model push exported/ --name ViT-B-16\n\n\
             FILE is an ONNX file, a folder, or a tar, tar.gz or zip archive. Files that the model \
             names, such as model.onnx.data, are taken from beside it; others are left out. What the \
             server has is not uploaded again, and an upload that was cut goes on where it ended. \
             File and configuration are one release; if neither is new, there is none. Without \
             --config the configuration stays. \
             Give the token in GRISTMILL_ADMIN_TOKEN or a context rather than with --token.",
        )
        .args([
            word("file", "FILE").help("The model's ONNX file, or a folder or an archive with it"),
            option("name", "NAME").required(true).help("The model's name"),
            option("config", "FILE").help("Its configuration, in TOML or JSON"),
            option("version", "N").value_parser(value_parser!(u64).range(1..)).help(
                "The number of the version: the newest one, whose content it replaces, or a higher \
                 one [default: that of the release, or the next one]",
            ),
            change::message(),
            release_flags::force(),
            release_flags::skip_samples(),
            release_flags::wait_all(),
        ])
        .args(admin::changing())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    // All flags are checked before anything is sent.
    let admin = Admin::to_change(matches)?;
    let name = admin::model_name("--name", required(matches, "name")?)?;
    let config = args::text(matches, "config").map(|file| config(Path::new(file))).transpose()?;
    let file = HashedFile::read_model(Path::new(required(matches, "file")?))?;
    let failed = || format!("cannot push {} as model {name}", file.path.display());
    file.upload(&admin).with_context(failed)?;
    let mut put = json!({ "kind": "put_model", "model": name, "digest": file.digest });
    if let Some(version) = matches.get_one::<u64>("version") {
        put["version"] = (*version).into();
    }
    let mut changes = vec![put];
    if let Some(config) = config {
        let put = json!({ "kind": "put_model_config", "model": name, "document": config });
        changes.push(put);
    }
    let pushed = Pushed::release(&admin, matches, &name, changes).with_context(failed)?;
    let text = || output::escaped(&(pushed.text(&name) + "\n"));
    Output::of(matches).print(pushed.document(), text);
    Ok(())
}

/// What a release with a model has led to.
pub(super) struct Pushed {
    release: Value,
    is_new: bool,
    /// The model's entry in the status.
    pub(super) model: Value,
}

impl Pushed {
    /// Make the release with these changes of a model, whose files the server has.
    pub(super) fn release(
        admin: &Admin,
        matches: &ArgMatches,
        name: &Name,
        changes: Vec<Value>,
    ) -> Result<Self> {
        let mut document = json!({ "changes": changes });
        if let Some(message) = args::text(matches, "message") {
            document["message"] = message.into();
        }
        let waiting = Progress::wait("the server tries the model");
        let path = format!("releases?{}dry_run=false", release_flags::query(matches));
        let made = admin.post(&path, &document)?;
        let status = admin.get("status")?;
        drop(waiting);
        let is_new = made["differences"].as_array().is_some_and(|all| !all.is_empty());
        let (release, model) = (&made["release"], &status["models"][name.as_str()]);
        Ok(Self { release: release.clone(), is_new, model: model.clone() })
    }

    /// The answer for programs.
    pub(super) fn document(&self) -> Value {
        let mut answer = json!({ "release": self.release, "changed": self.is_new });
        for key in ["digest", "state", "reason", "provider", "inputs", "outputs", "warnings"] {
            answer[key] = self.model[key].clone();
        }
        answer
    }

    /// The answer for people.
    pub(super) fn text(&self, name: &Name) -> String {
        text(name.as_str(), &self.release, self.is_new, &self.model)
    }
}

/// What is said about a model as it serves now.
fn text(name: &str, release: &Value, is_new: bool, model: &Value) -> String {
    let mut text = match (is_new, model["provider"].as_str()) {
        (false, _) => format!("nothing to change: the server has this model as {name}"),
        (true, Some(provider)) => format!("{name} is live in release {release}, run by {provider}"),
        (true, None) => format!("{name} is in release {release}"),
    };
    if let Some(signature) = signature(model) {
        text += &format!("\n{signature}");
    }
    if model["state"] != "ready" {
        text += &format!("; it is {}", output::state_and_reason(model));
    }
    for warning in model["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        text += &format!("\nwarning: {warning}");
    }
    text
}

/// A model's inputs and outputs, from its entry in the status.
pub(crate) fn signature(model: &Value) -> Option<String> {
    Some(format!("{} -> {}", tensors(&model["inputs"])?, tensors(&model["outputs"])?))
}

/// Tensors with their names, types and shapes.
fn tensors(list: &Value) -> Option<String> {
    let tensor = |tensor: &Value| {
        let (name, datatype) = (tensor["name"].as_str()?, tensor["datatype"].as_str()?);
        Some(format!("{name} {datatype} {}", tensor["shape"]))
    };
    let tensors: Option<Vec<_>> = list.as_array()?.iter().map(tensor).collect();
    Some(tensors?.join(", "))
}

/// The configuration in a file.
fn config(path: &Path) -> Result<Map<String, Value>> {
    let failed = || path.display().to_string();
    let text = fs::read_to_string(path).with_context(failed)?;
    // No TOML begins like an object.
    let is_json = path.extension().is_some_and(|ending| ending == "json")
        || text.trim_start().starts_with('{');
    let value: Value = match is_json {
        true => serde_json::from_str(&text).with_context(failed)?,
        false => toml::from_str(&text).with_context(failed)?,
    };
    match value {
        Value::Object(keys) => Ok(keys),
        _ => bail!("{} is not a JSON object", path.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_serves_is_told() {
        let ready = json!({ "provider": "cpu", "state": "ready", "warnings": ["slow"] });
        let state_text = |is_new, model: &Value| text("m", &json!(7), is_new, model);
        assert_eq!(state_text(true, &ready), "m is live in release 7, run by cpu\nwarning: slow");
        let failed = json!({ "state": "failed", "reason": "no room" });
        assert_eq!(state_text(true, &failed), "m is in release 7; it is failed: no room");
        let same = "nothing to change: the server has this model as m; it is failed: no room";
        assert_eq!(state_text(false, &failed), same);
        let tensor =
            |name: &str, shape| json!({ "name": name, "datatype": "FP32", "shape": shape });
        let (x, y) = (tensor("x", json!([-1, 13])), tensor("y", json!([-1])));
        let loaded =
            json!({ "provider": "cpu", "state": "ready", "inputs": [x], "outputs": [y, y] });
        let expected =
            "m is live in release 7, run by cpu\nx FP32 [-1,13] -> y FP32 [-1], y FP32 [-1]";
        assert_eq!(state_text(true, &loaded), expected);
    }

    #[test]
    fn a_configuration_is_toml_or_json() {
        let directory = tempfile::tempdir().unwrap();
        let read = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::write(&path, text).unwrap();
            config(&path).map(Value::from)
        };
        let expected = json!({ "max_batch_size": 8, "priority_queue_policies": { "2": {} } });
        let toml = "max_batch_size = 8\n[priority_queue_policies.2]";
        assert_eq!(read("a.toml", toml).unwrap(), expected);
        assert_eq!(read("a.json", &expected.to_string()).unwrap(), expected);
        assert_eq!(read("a.conf", &format!("\n{expected}")).unwrap(), expected);
        assert!(format!("{:#}", read("b.json", "[]").unwrap_err()).contains("b.json is not"));
        assert!(format!("{:#}", read("b.toml", "[").unwrap_err()).contains("b.toml: "));
    }
}
