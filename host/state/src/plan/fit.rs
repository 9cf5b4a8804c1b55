//! Checks whether the plugins, the assets and the models of a pipeline exist and can be used by it.
//! Pure.

use std::collections::BTreeMap;

use gristmill_batch::Lane;
use gristmill_core::Name;
use gristmill_sandbox::{Plugin, Roles};
use gristmill_snapshot::{AssetState, ModelState, PluginState, loaded_versions};

use crate::release::assets::{ASSETS, AssetNames};
use crate::release::document::Faults;
use crate::release::named_version::NamedVersion;
use crate::release::program::{ModelKey, ProgramParts};

/// The role of a plugin in a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// It makes the model's inputs.
    Pre,
    /// It makes the response.
    Post,
    /// It answers requests itself.
    Handler,
}

impl Role {
    /// The key of the role in a pipeline's document.
    fn as_str(self) -> &'static str {
        match self {
            Self::Pre => "pre",
            Self::Post => "post",
            Self::Handler => "handler",
        }
    }

    /// The function that a plugin in this role exports.
    fn export(self) -> &'static str {
        match self {
            Self::Pre => "preprocess",
            Self::Post => "postprocess",
            Self::Handler => "handle",
        }
    }

    fn is_among(self, roles: Roles) -> bool {
        match self {
            Self::Pre => roles.pre,
            Self::Post => roles.post,
            Self::Handler => roles.handle,
        }
    }
}

/// The names and limits of a pipeline; none if its document could not be read there.
pub struct Wanted<'a> {
    /// The plugins and models.
    pub parts: &'a ProgramParts,
    /// The assets.
    pub assets: &'a AssetNames,
    /// The priority at the models.
    pub priority: Option<u32>,
    /// The memory of a plugin's call.
    pub memory_bytes: Option<usize>,
}

impl Wanted<'_> {
    /// Add all faults of the pipeline, given the tenant's plugins and assets, and the host's
    /// models.
    pub fn check<'m>(
        &self,
        plugins: &BTreeMap<Name, PluginState>,
        assets: &BTreeMap<Name, AssetState>,
        model: impl Fn(&Name) -> Option<&'m ModelState>,
        faults: &mut Faults,
    ) {
        let ProgramParts { pre, post, handler, .. } = self.parts;
        for (role, named) in [(Role::Pre, pre), (Role::Post, post), (Role::Handler, handler)] {
            let Some(named) = named else { continue };
            let (plugin_name, key) = (named.to_string(), role.as_str());
            let Some(state) = plugins.get(&named.name) else {
                let name = named.name.as_str();
                faults.add(key, format!("{key}: the tenant has no plugin {name:?}"));
                continue;
            };
            match state.of_version(named.version) {
                None => {
                    let text = format!("{key}: plugin {}", no_version(named, state.versions()));
                    faults.add(key, text);
                }
                Some(Err(why)) => faults.add(key, format!("{key}: plugin {plugin_name:?}: {why}")),
                Some(Ok(plugin)) => self.check_plugin(role, &plugin_name, plugin, faults),
            }
        }
        self.check_assets(assets, faults);
        for (key, named) in self.parts.keyed_models() {
            let Some(state) = model(&named.name) else {
                let text = format!("{key}: no model {:?}", named.name.as_str());
                key.add_fault(faults, text);
                continue;
            };
            match state.of_version(named.version) {
                None => {
                    let text = format!("{key}: model {}", no_version(named, state.versions()));
                    key.add_fault(faults, text);
                }
                Some(Err(why)) => {
                    let text = format!("model {:?}: {why}", named.to_string());
                    let text = match key {
                        ModelKey::Model => text,
                        ModelKey::Member(_) => format!("{key}: {text}"),
                    };
                    key.add_fault(faults, text);
                }
                Some(Ok(served)) => self.check_priority(key, &served.lane, faults),
            }
        }
    }

    fn check_assets(&self, assets: &BTreeMap<Name, AssetState>, faults: &mut Faults) {
        for (key, named) in self.assets {
            let state = assets.get(&named.name);
            let fault = match state.map(|state| (state, state.of_version(named.version))) {
                None => format!(
                    "the tenant has no asset {:?}: put the file first, with `gristmill asset push`",
                    named.name.as_str()
                ),
                Some((state, None)) => format!("asset {}", no_version(named, state.versions())),
                Some((_, Some(Err(why)))) => format!("asset {:?}: {why}", named.to_string()),
                Some((_, Some(Ok(_)))) => continue,
            };
            faults.add_member(ASSETS, key, format!("{ASSETS}: {key:?}: {fault}"));
        }
    }

    /// Whether the plugin can have this role, and its initial memory.
    fn check_plugin(&self, role: Role, name: &str, plugin: &Plugin, faults: &mut Faults) {
        let (roles, key) = (plugin.roles(), role.as_str());
        if !role.is_among(roles) {
            let (world, export) = (roles.world(), role.export());
            let cure = match role {
                Role::Handler => ": name it as pre or post, beside a model",
                Role::Pre | Role::Post if roles.handle => ": name it as handler, beside models",
                Role::Pre | Role::Post => "",
            };
            let text =
                format!("{key}: plugin {name:?} is a {world} and exports no `{export}`{cure}");
            faults.add(key, text);
            return;
        }
        let least = plugin.initial_memory_bytes();
        if let Some(most) = self.memory_bytes.filter(|most| least > *most as u64) {
            let limit = "limits.memory_bytes";
            let text = format!("{limit} is {most}: {key}, plugin {name:?}, begins with {least}");
            faults.add(limit, text);
        }
    }

    /// Whether requests can have this priority at the model, which is named by `key`.
    fn check_priority(&self, key: ModelKey<'_>, model: &Lane, faults: &mut Faults) {
        let levels = model.config().levels.len();
        if let Some(priority) = self.priority
            && !(1..=levels).contains(&(priority as usize))
        {
            let of = match key {
                ModelKey::Model => "the model".to_owned(),
                ModelKey::Member(name) => format!("the model {:?}", name.as_str()),
            };
            let text = format!("priority is {priority}: {of} has levels 1 to {levels}");
            faults.add("priority", text);
        }
    }
}

/// "\"cnn\" has no version 12: versions 14 and 16 are loaded".
fn no_version<'a, T: 'a>(
    named: &NamedVersion,
    versions: impl Iterator<Item = (u64, &'a Result<T, String>)>,
) -> String {
    let (name, asked) = (named.name.as_str(), named.version.unwrap_or_default());
    let loaded = versions.filter(|(_, loaded)| loaded.is_ok()).map(|(version, _)| version);
    format!("{name:?} has no version {asked}: {}", loaded_versions(loaded))
}
