//! The models that `--model` names: one for a plugin with `preprocess` and `postprocess`, or those
//! of a handler by the names that its code has for them.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use gristmill_core::Name;

use super::component_file;
use crate::admin;

/// A model of the command line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Given<T> {
    /// The name that a handler has for it. None if the command line gives none.
    pub(super) name: Option<Name>,
    pub(super) model: T,
}

impl<T> Given<T> {
    /// The same with what `read` makes of the model.
    pub(super) fn map<U>(self, read: impl FnOnce(T) -> Result<U>) -> Result<Given<U>> {
        Ok(Given { name: self.name, model: read(self.model)? })
    }

    /// `text`, which tells about the model, for people.
    pub(super) fn line(&self, text: &str) -> String {
        match &self.name {
            Some(name) => format!("{name}: {text}"),
            None => text.to_owned(),
        }
    }
}

/// A value of `--model`: `MODEL` or `NAME=MODEL`.
///
/// # Errors
/// The name is not one, or no model follows.
pub(super) fn read(value: &str) -> Result<Given<&str>> {
    match value.split_once('=') {
        Some((name, model)) if !name.contains('/') && !Path::new(value).exists() => {
            let name = admin::name("--model", name)?;
            ensure!(!model.is_empty(), "--model {value} names no model: give --model {name}=MODEL");
            Ok(Given { name: Some(name), model })
        }
        _ => Ok(Given { name: None, model: value }),
    }
}

/// The name of a handler's model that the command line gives without one: that of its file.
///
/// # Errors
/// The file has no name that is one for the handler's code.
pub(super) fn of_file(model: &str) -> Result<Name> {
    let of_file = component_file::name_of(Path::new(model)).to_lowercase();
    let unnamed = || format!("--model {model}: name it as the handler's code does: NAME={model}");
    of_file.parse::<Name>().with_context(unnamed)
}

/// A handler's models. One without a name has its own.
///
/// # Errors
/// Two have the same name, or `own_name` finds none.
pub(super) fn by_name<T>(
    models: &[Given<T>],
    own_name: impl Fn(&T) -> Result<Name>,
) -> Result<BTreeMap<Name, &T>> {
    let mut named = BTreeMap::new();
    for Given { name, model } in models {
        let name = match name {
            Some(name) => name.clone(),
            None => own_name(model)?,
        };
        ensure!(
            !named.contains_key(&name),
            "--model: two models have the name {name}: name each as the handler's code does, as in \
             --model detect=MODEL"
        );
        named.insert(name, model);
    }
    Ok(named)
}

/// The model of a plugin that is not a handler. `plugin` is its file and its world, for people.
///
/// # Errors
/// There are several, or it has a name.
pub(super) fn only<'a, T>(models: &'a [Given<T>], plugin: &str) -> Result<&'a T> {
    match models {
        [Given { name: None, model }] => Ok(model),
        [Given { name: Some(name), .. }] => bail!(
            "{plugin}: it has one model, and only a handler has names for models: give --model \
             MODEL without {name}="
        ),
        _ => bail!("{plugin}: it has one model: give --model once"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    fn all<'a>(values: &[&'a str]) -> Vec<Given<&'a str>> {
        values.iter().map(|value| read(value).unwrap()).collect()
    }

    fn named(values: &[&str]) -> Result<Vec<(String, String)>, String> {
        let own_name =
            |model: &&str| -> Result<Name> { Ok(model.trim_end_matches(".onnx").parse::<Name>()?) };
        let models = all(values);
        let named = by_name(&models, own_name).map_err(|error| error.to_string())?;
        Ok(named.into_iter().map(|(name, model)| (name.to_string(), model.to_string())).collect())
    }

    #[test]
    fn a_handlers_models_have_names() {
        let pair = |name: &str, model: &str| (name.to_owned(), model.to_owned());
        let expected = vec![pair("detect", "det.onnx"), pair("read", "a=b.onnx")];
        assert_eq!(named(&["read=a=b.onnx", "detect=det.onnx"]), Ok(expected));
        assert_eq!(named(&["det.onnx"]), Ok(vec![pair("det", "det.onnx")]));
        let error = named(&["det.onnx", "det=other.onnx"]).unwrap_err();
        assert!(error.starts_with("--model: two models have the name det: name each"), "{error}");
        assert_eq!(all(&["./lr=1/m.onnx"])[0].name, None);
        let error = |value| read(value).unwrap_err().to_string();
        assert!(error("Detect=m").starts_with("--model: \"Detect\" is not a valid name"));
        assert_eq!(error("detect="), "--model detect= names no model: give --model detect=MODEL");
    }

    #[test]
    fn another_plugin_has_one_model_without_a_name() {
        let plugin = "p.wasm is a processor";
        assert_eq!(*only(&all(&["m.onnx"]), plugin).unwrap(), "m.onnx");
        let error = |values: &[&str]| only(&all(values), plugin).unwrap_err().to_string();
        assert!(error(&["a=m.onnx"]).ends_with("give --model MODEL without a="));
        assert_eq!(error(&["a", "b"]), format!("{plugin}: it has one model: give --model once"));
    }
}
