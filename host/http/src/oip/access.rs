//! Who calls, and the models they may see.

use std::sync::Arc;

use gristmill_core::{ByteBudget, Digest, ErrorCode, Name};
use gristmill_snapshot::{ModelState, Pipeline, Route, ServedModel, Snapshot, Tenant, same_key};

use super::Inference;
use crate::credentials;
use crate::data::{admitted, find_tenant};
use crate::problem::Problem;

/// What a tenant's pipelines are called among its models: no model's own name has a colon.
const PIPELINE_PREFIX: &str = "pipeline:";

/// The only version of a pipeline.
pub(super) const PIPELINE_VERSION: u64 = 1;

/// On whose behalf a call is made.
#[derive(Clone, Copy)]
pub(super) enum Caller<'a> {
    Tenant {
        name: &'a Name,
        tenant: &'a Tenant,
    },
    /// Whoever holds the admin token: sees, loads and unloads every model, runs none.
    Operator,
}

/// A model as clients see it.
#[derive(Clone, Copy)]
pub(super) enum Visible<'a> {
    Model { name: &'a Name, state: &'a ModelState },
    Pipeline { name: &'a Name, pipeline: &'a Pipeline },
}

/// What a model runs on.
pub(super) enum Target<'a> {
    Model { name: &'a Name, state: &'a ModelState, served: &'a ServedModel },
    Pipeline { name: &'a Name, route: &'a Route },
}

impl Inference {
    /// The caller with this bearer token, calling the tenant that the path names, if it does.
    pub(super) fn caller<'a>(
        &self,
        snapshot: &'a Snapshot,
        token: Option<&str>,
        tenant: Option<&str>,
    ) -> Result<Caller<'a>, Problem> {
        let key = token.map(credentials::digest);
        let Some(named) = tenant.filter(|_| !self.is_operator(key)) else {
            return self.caller_with(snapshot, key);
        };
        let (name, tenant) = admitted(snapshot, named, token)?;
        Ok(Caller::Tenant { name, tenant })
    }

    /// The caller whose key has this digest.
    pub(super) fn caller_with<'a>(
        &self,
        snapshot: &'a Snapshot,
        key: Option<Digest>,
    ) -> Result<Caller<'a>, Problem> {
        if self.is_operator(key) {
            return Ok(Caller::Operator);
        }
        let name = match (key, &self.parts.config.open_tenant) {
            (Some(key), _) => {
                let opens_none = || match key == credentials::digest(credentials::NO_TOKEN) {
                    true => needs_key(),
                    false => Problem::new(ErrorCode::Forbidden, "the API key opens no tenant"),
                };
                snapshot.keys.get(&key).ok_or_else(opens_none)?
            }
            (None, Some(open)) => open,
            (None, None) => return Err(needs_key()),
        };
        let (name, tenant) = find_tenant(snapshot, name.as_str())?;
        Ok(Caller::Tenant { name, tenant })
    }

    fn is_operator(&self, key: Option<Digest>) -> bool {
        key.is_some_and(|key| same_key(self.parts.config.admin_token, key))
    }
}

fn needs_key() -> Problem {
    let detail = "an API key is needed: Authorization: Bearer <key>";
    Problem::new(ErrorCode::Unauthenticated, detail)
}

impl<'a> Caller<'a> {
    /// The tenant, which runs models.
    pub(super) fn tenant(self) -> Result<(&'a Name, &'a Tenant), Problem> {
        match self {
            Self::Tenant { name, tenant } => Ok((name, tenant)),
            Self::Operator => {
                let detail = "the admin token runs no models: use a tenant's API key";
                Err(Problem::new(ErrorCode::Forbidden, detail))
            }
        }
    }

    /// Whether it may load and unload models.
    pub(super) fn operates(self) -> Result<(), Problem> {
        match self {
            Self::Operator => Ok(()),
            Self::Tenant { .. } => {
                let detail = "only the admin token loads and unloads models";
                Err(Problem::new(ErrorCode::Forbidden, detail))
            }
        }
    }

    /// The tenant's name, if it is one.
    pub(super) fn name(self) -> Option<&'a Name> {
        self.tenant().ok().map(|(name, _)| name)
    }

    /// What the bytes of its requests count against, if anything.
    pub(super) fn budget(self) -> Option<&'a Arc<ByteBudget>> {
        self.tenant().ok().map(|(_, tenant)| &tenant.quota.bytes)
    }

    /// Every model that the caller may see, in the order of their names; pipelines last.
    pub(super) fn models(self, snapshot: &'a Snapshot) -> Vec<Visible<'a>> {
        let models = snapshot.models.iter().filter(|(name, _)| self.is_granted(name));
        let models = models.map(|(name, state)| Visible::Model { name, state });
        let mut pipelines: Vec<_> = match self {
            Self::Tenant { tenant, .. } => tenant.pipelines.iter().collect(),
            Self::Operator => Vec::new(),
        };
        pipelines.sort_unstable_by_key(|(name, _)| *name);
        let pipelines = pipelines.into_iter();
        models
            .chain(pipelines.map(|(name, pipeline)| Visible::Pipeline { name, pipeline }))
            .collect()
    }

    /// The model of this name and version, where the caller may see it; an empty version is the one that
    /// serves.
    pub(super) fn find(
        self,
        snapshot: &'a Snapshot,
        model: &str,
        version: &str,
    ) -> Result<Visible<'a>, Problem> {
        let visible = self.visible(snapshot, model).ok_or_else(|| {
            let detail = format!("no model {model:?}, or it is not granted to this caller");
            Problem::new(ErrorCode::NotFound, detail)
        })?;
        visible.check_version(version)?;
        Ok(visible)
    }

    fn visible(self, snapshot: &'a Snapshot, model: &str) -> Option<Visible<'a>> {
        if let Some(pipeline) = model.strip_prefix(PIPELINE_PREFIX) {
            let Self::Tenant { tenant, .. } = self else { return None };
            let (name, pipeline) = tenant.pipelines.get_key_value(pipeline)?;
            return Some(Visible::Pipeline { name, pipeline });
        }
        let (name, state) = snapshot.models.get_key_value(model)?;
        self.is_granted(name).then_some(Visible::Model { name, state })
    }

    fn is_granted(self, model: &Name) -> bool {
        match self {
            Self::Tenant { tenant, .. } => tenant.models.contains(model),
            Self::Operator => true,
        }
    }
}

impl<'a> Visible<'a> {
    /// As clients call it.
    pub(super) fn name(self) -> String {
        match self {
            Self::Model { name, .. } => name.to_string(),
            Self::Pipeline { name, .. } => format!("{PIPELINE_PREFIX}{name}"),
        }
    }

    /// The version that serves.
    pub(super) fn version(self) -> u64 {
        match self {
            Self::Model { state, .. } => state.version,
            Self::Pipeline { .. } => PIPELINE_VERSION,
        }
    }

    fn check_version(self, asked: &str) -> Result<(), Problem> {
        let own = self.version();
        if asked.is_empty() || asked == own.to_string() {
            return Ok(());
        }
        let name = self.name();
        let earlier = match self {
            Self::Model { state, .. } => &state.earlier_versions[..],
            Self::Pipeline { .. } => &[],
        };
        let superseded = earlier.iter().any(|earlier| asked == earlier.to_string());
        let detail = if superseded {
            format!("version {asked} of model {name:?} is no longer loaded: version {own} serves")
        } else {
            format!("model {name:?} has no version {asked:?}: version {own} serves")
        };
        Err(Problem::new(ErrorCode::NotFound, detail))
    }

    /// What runs it, where it is loaded.
    pub(super) fn served(self) -> Result<Target<'a>, Problem> {
        let why = match self {
            Self::Model { name, state } => match &state.served {
                Ok(served) => return Ok(Target::Model { name, state, served }),
                Err(why) => why,
            },
            Self::Pipeline { name, pipeline } => match pipeline {
                Pipeline::Ready(route) => return Ok(Target::Pipeline { name, route }),
                Pipeline::Unavailable(why) => why,
            },
        };
        let detail = format!("model {:?} is not loaded: {why}", self.name());
        Err(Problem::new(ErrorCode::Unavailable, detail))
    }
}
