//! A plugin and a pipeline of it, pushed in one release.

use anyhow::{Context, Result, bail, ensure};
use clap::ArgMatches;
use gristmill_core::Name;
use gristmill_state::PluginSignature;
use serde_json::{Map, Value, json};

use crate::admin::{self, Admin};
use crate::args::texts;
use crate::file_upload::HashedFile;
use crate::progress::Progress;
use crate::{change, names};

/// The pipeline that the command names.
pub(super) struct Pipeline {
    pub(super) name: Name,
    models: Vec<Model>,
}

/// A value of `--model`.
struct Model {
    /// The name that a handler has for it.
    own_name: Option<Name>,
    /// The model, maybe with a version.
    model: String,
}

/// The plugin.
pub(super) struct Pushed<'a> {
    pub(super) admin: &'a Admin,
    pub(super) tenant: &'a Name,
    pub(super) name: &'a Name,
    pub(super) signature: Option<&'a PluginSignature>,
}

impl Pipeline {
    /// None if the command names none.
    pub(super) fn of(matches: &ArgMatches) -> Result<Option<Self>> {
        let Some(name) = names::optional(matches, "pipeline")? else { return Ok(None) };
        let models = texts(matches, "model");
        let models = models.map(|model| Model::of(model)).collect::<Result<_>>()?;
        Ok(Some(Self { name, models }))
    }

    /// Refuse, before anything is built, a pipeline that is not there and has no model.
    pub(super) fn check(&self, admin: &Admin, tenant: &Name) -> Result<()> {
        names::tenant(admin, tenant)?;
        ensure!(
            !self.models.is_empty() || admin.find(&self.path(tenant))?.is_some(),
            "--model is missing: there is no pipeline {} yet, and a new one has a model (that of a \
             handler has 1 to 16, each as NAME=MODEL)",
            self.name
        );
        Ok(())
    }

    fn path(&self, tenant: &Name) -> String {
        format!("tenants/{tenant}/pipelines/{}", self.name)
    }

    /// The pipeline's document afterwards, or none if it stays as it is. `world` is that of the
    /// plugin.
    fn document(
        &self,
        plugin: &Name,
        world: &str,
        current: Option<Value>,
    ) -> Result<Option<Value>> {
        let is_new = current.is_none();
        let mut document = current.unwrap_or_else(|| json!({}));
        match world {
            _ if !is_new => {
                let keys = ["pre", "post", "handler"];
                ensure!(
                    keys.iter().any(|key| document[*key] == plugin.as_str()),
                    "pipeline {} is there, and does not run the newest version of {plugin}: name it \
                     there with `gristmill pipeline set`, or take another name for a new pipeline",
                    self.name
                );
            }
            "handler" => document["handler"] = plugin.as_str().into(),
            "processor" => {
                document["pre"] = plugin.as_str().into();
                document["post"] = plugin.as_str().into();
            }
            _ => bail!(
                "it does only one call of a pipeline ({world}): push it without --pipeline, and name \
                 it beside the other plugin with `gristmill pipeline set {} pre=PLUGIN model=MODEL \
                 post=PLUGIN`",
                self.name
            ),
        }
        let before = document.clone();
        self.set_models(&mut document)?;
        Ok((is_new || document != before).then_some(document))
    }

    fn set_models(&self, document: &mut Value) -> Result<()> {
        if self.models.is_empty() {
            return Ok(());
        }
        if document["handler"].is_string() {
            let models = self.models.iter().map(|Model { own_name, model }| {
                let own_name = own_name.as_ref().map(Name::as_str);
                // Without a version.
                let usual = model.split('@').next().unwrap_or_default();
                (own_name.unwrap_or(usual).to_owned(), model.as_str().into())
            });
            document["models"] = models.collect::<Map<_, _>>().into();
            return Ok(());
        }
        let [Model { own_name: None, model }] = &self.models[..] else {
            bail!("it has one model: give --model MODEL once; only a handler has names for models")
        };
        document["model"] = model.as_str().into();
        Ok(())
    }
}

impl Model {
    fn of(text: &str) -> Result<Self> {
        let (own_name, model) = match text.split_once('=') {
            Some((own_name, model)) => (Some(admin::name("--model", own_name)?), model),
            None => (None, text),
        };
        ensure!(!model.is_empty(), "--model is {text:?}: it names no model");
        Ok(Self { own_name, model: model.to_owned() })
    }
}

impl Pushed<'_> {
    /// Upload the file, and make a release with it and the pipeline.
    pub(super) fn release(
        &self,
        file: &HashedFile,
        pipeline: &Pipeline,
        matches: &ArgMatches,
    ) -> Result<Value> {
        let Self { admin, tenant, name, signature } = self;
        file.upload(admin)?;
        let mut put = json!({
            "kind": "put_plugin", "tenant": tenant, "plugin": name, "digest": file.digest,
        });
        if let Some(signature) = signature {
            put["signature"] = serde_json::to_value(signature.document())?;
        }
        let waiting = Progress::wait("the server compiles it (up to a minute)");
        let world = self.world(&put)?;
        let made = change::make(admin, matches, || {
            let current = admin.find(&pipeline.path(tenant))?;
            let mut changes = vec![put.clone()];
            if let Some(document) = pipeline.document(name, &world, current)? {
                changes.push(json!({
                    "kind": "put_pipeline", "tenant": tenant, "pipeline": pipeline.name,
                    "document": document,
                }));
            }
            Ok(changes)
        });
        drop(waiting);
        made
    }

    /// What the plugin exports: the name of its world. The server says it, which alone can load an
    /// archive of sources.
    fn world(&self, put: &Value) -> Result<String> {
        let Self { admin, tenant, name, .. } = self;
        let tried =
            admin.post("releases?dry_run=true&skip_samples=true", &json!({ "changes": [put] }))?;
        let mut differences = tried["differences"].as_array().into_iter().flatten();
        if let Some(plugin) = differences.find(|difference| difference["kind"] == "plugin")
            && let Some(world) = plugin["after"]["world"].as_str()
        {
            return Ok(world.to_owned());
        }
        // Nothing differs: it is there already.
        let current = admin.get(&format!("tenants/{tenant}/plugins/{name}"))?;
        let world = current["world"].as_str().map(str::to_owned);
        world.context("the server does not say what the plugin exports")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(models: &[&str], world: &str, current: Option<Value>) -> Result<Option<Value>> {
        let name = |text: &str| text.parse::<Name>().unwrap();
        let models = models.iter().map(|model| Model::of(model).unwrap()).collect();
        Pipeline { name: name("main"), models }.document(&name("p"), world, current)
    }

    #[test]
    fn a_new_pipeline_has_the_plugin_and_its_models() {
        let expected = json!({ "pre": "p", "post": "p", "model": "digits@2" });
        assert_eq!(document(&["digits@2"], "processor", None).unwrap(), Some(expected));
        let models = json!({ "detect": "det@3", "read": "read" });
        let expected = json!({ "handler": "p", "models": models });
        let made = document(&["detect=det@3", "read"], "handler", None).unwrap();
        assert_eq!(made, Some(expected));
        let error = |models: &[&str], world| document(models, world, None).unwrap_err().to_string();
        assert!(error(&["a", "b"], "processor").contains("give --model MODEL once"));
        assert!(error(&["a"], "preprocessor").contains("only one call of a pipeline"));
    }

    #[test]
    fn a_pipeline_that_is_there_changes_only_its_model() {
        let current = || json!({ "pre": "p", "post": "q", "model": "digits", "debug": true });
        assert_eq!(document(&[], "processor", Some(current())).unwrap(), None);
        assert_eq!(document(&["digits"], "processor", Some(current())).unwrap(), None);
        let changed = document(&["other"], "preprocessor", Some(current())).unwrap().unwrap();
        assert_eq!(changed, json!({ "pre": "p", "post": "q", "model": "other", "debug": true }));
        let pinned = json!({ "pre": "p@3", "post": "q", "model": "digits" });
        let error = document(&[], "processor", Some(pinned)).unwrap_err().to_string();
        assert!(error.contains("does not run the newest version of p"), "{error}");
    }
}
