//! Why a thing is not deleted: it has things of its own, or others use it.

use gristmill_core::Name;

use crate::plan::names::list;

/// Why a thing is not deleted. Both can be deleted together with `?cascade=true`.
#[derive(Debug, thiserror::Error)]
pub enum InUse {
    /// A tenant that has pipelines, plugins or assets.
    #[error(
        "tenant {:?} has {}: delete these first, or all of it with ?cascade=true",
        .tenant.as_str(), owned(.pipelines, .plugins, .assets)
    )]
    Owner {
        /// The tenant.
        tenant: Name,
        /// Its pipelines.
        pipelines: Vec<Name>,
        /// Its plugins.
        plugins: Vec<Name>,
        /// Its assets.
        assets: Vec<Name>,
    },
    /// A plugin, asset, pipeline, model or tenant that others use.
    #[error(
        "{kind} {:?} is {}: change these first, or delete them as well with ?cascade=true",
        .name.as_str(), .uses.described()
    )]
    Used {
        /// The kind of thing.
        kind: &'static str,
        /// Its name.
        name: Name,
        /// Its uses.
        uses: Box<Uses>,
    },
}

/// The uses of a thing.
#[derive(Debug, Default)]
pub struct Uses {
    /// The pipelines that name it.
    pub pipelines: Vec<PipelineOf>,
    /// The tenants that the model is granted to.
    pub granted_to: Vec<Name>,
    /// The tenant whose default pipeline it is.
    pub default_of: Option<Name>,
    /// The admin tokens that name the tenant.
    pub tokens: Vec<Name>,
}

/// A pipeline of a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipelineOf {
    /// The tenant.
    pub tenant: Name,
    /// The pipeline's own name.
    pub pipeline: Name,
}

impl Uses {
    /// Whether nothing uses it.
    pub fn is_empty(&self) -> bool {
        self.pipelines.is_empty()
            && self.granted_to.is_empty()
            && self.default_of.is_none()
            && self.tokens.is_empty()
    }

    /// "used by acme/digits, acme/ranker and granted to acme".
    fn described(&self) -> String {
        let path = |of: &PipelineOf| format!("{}/{}", of.tenant, of.pipeline);
        let pipelines: Vec<_> = self.pipelines.iter().map(path).collect();
        let mut uses = Vec::new();
        if !pipelines.is_empty() {
            uses.push(format!("used by {}", pipelines.join(", ")));
        }
        if !self.granted_to.is_empty() {
            uses.push(format!("granted to {}", list(&self.granted_to)));
        }
        if let Some(tenant) = &self.default_of {
            uses.push(format!("the default pipeline of tenant {:?}", tenant.as_str()));
        }
        if !self.tokens.is_empty() {
            uses.push(format!("a tenant of the tokens {}", list(&self.tokens)));
        }
        uses.join(" and ")
    }
}

/// "the pipelines digits, ranker and the plugins digits".
fn owned(pipelines: &[Name], plugins: &[Name], assets: &[Name]) -> String {
    let kinds = [("pipelines", pipelines), ("plugins", plugins), ("assets", assets)];
    let named = kinds.into_iter().filter(|(_, names)| !names.is_empty());
    let parts: Vec<_> = named.map(|(kind, names)| format!("the {kind} {}", list(names))).collect();
    parts.join(" and ")
}
