//! The targets of a caller: models granted to it, and its own pipelines.

use std::sync::Arc;

use gristmill_core::{ClientError, ErrorCode, Name};
use gristmill_snapshot::{ModelState, Pipeline, Route, ServedModel, Snapshot};

use crate::access::{Caller, NamedTenant};

/// As a model, a tenant's pipeline `p` is called `pipeline:p`. No model's name has a colon.
const PIPELINE_PREFIX: &str = "pipeline:";

/// The only version of a pipeline.
pub const PIPELINE_VERSION: u64 = 1;

/// A model or pipeline as clients see it: both are models to them.
#[derive(Clone, Copy)]
pub enum ModelOrPipeline<'a> {
    /// A model.
    Model {
        /// Its name.
        name: &'a Name,
        /// Its versions, and whether it is loaded.
        state: &'a ModelState,
    },
    /// A pipeline.
    Pipeline {
        /// Its name.
        name: &'a Name,
        /// Its route, or why it has none.
        pipeline: &'a Pipeline,
    },
}

/// The model and the version that a client names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedModel<'a> {
    /// The model's name.
    pub name: &'a str,
    /// Empty if the client names none: then the current version is meant.
    pub version: &'a str,
}

/// A model or pipeline that is served.
pub enum Target<'a> {
    /// A model.
    Model {
        /// Its name.
        name: &'a Name,
        /// Its versions.
        state: &'a ModelState,
        /// Its lane.
        served: &'a ServedModel,
    },
    /// A pipeline.
    Pipeline {
        /// Its name.
        name: &'a Name,
        /// Its parts, resolved.
        route: &'a Arc<Route>,
    },
}

/// The reason why a target was not found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotFound {
    /// There is no such model, or the caller may not run it.
    #[error("no model {0:?}, or it is not granted to this caller")]
    Model(String),
    /// An earlier version, which is no longer loaded.
    #[error("version {asked} of model {name:?} is no longer loaded: version {serving} serves")]
    Superseded {
        /// The model.
        name: String,
        /// The version that was asked for.
        asked: String,
        /// The version that serves.
        serving: u64,
    },
    /// A version that the model never had.
    #[error("model {name:?} has no version {asked:?}: version {serving} serves")]
    Version {
        /// The model.
        name: String,
        /// The version that was asked for.
        asked: String,
        /// The version that serves.
        serving: u64,
    },
    /// The model is not loaded.
    #[error("model {name:?} is not loaded: {reason}")]
    NotLoaded {
        /// The model.
        name: String,
        /// Why it is not loaded.
        reason: String,
    },
    /// The tenant has no pipeline at all.
    #[error("tenant {0:?} has no pipeline")]
    NoPipelines(String),
    /// The request names no pipeline, and the tenant has no default.
    #[error("tenant {tenant:?} has no default pipeline: name one of {known}")]
    NoDefault {
        /// The tenant.
        tenant: String,
        /// The pipelines that it has.
        known: String,
    },
    /// The tenant has no such pipeline.
    #[error("tenant {tenant:?} has no pipeline {pipeline:?}; it has: {known}")]
    Pipeline {
        /// The tenant.
        tenant: String,
        /// The pipeline that was asked for.
        pipeline: String,
        /// The pipelines that it has.
        known: String,
    },
    /// The pipeline is there, but cannot serve.
    #[error("pipeline {pipeline:?} is not available: {reason}")]
    Unavailable {
        /// The pipeline.
        pipeline: String,
        /// Why it cannot serve.
        reason: String,
    },
}

impl ClientError for NotFound {
    fn code(&self) -> ErrorCode {
        match self {
            Self::Model(_) | Self::Superseded { .. } | Self::Version { .. } => ErrorCode::NotFound,
            Self::NotLoaded { .. } | Self::Unavailable { .. } => ErrorCode::Unavailable,
            Self::NoPipelines(_) | Self::NoDefault { .. } | Self::Pipeline { .. } => {
                ErrorCode::PipelineNotFound
            }
        }
    }
}

/// The tenant's pipeline of this name. Without a name, the tenant's default pipeline.
///
/// # Errors
/// There is no such pipeline, or it cannot serve.
pub fn find_pipeline<'a>(
    NamedTenant { name, tenant }: NamedTenant<'a>,
    pipeline: Option<&str>,
) -> Result<&'a Arc<Route>, NotFound> {
    let name = || name.to_string();
    let known = || {
        let mut names: Vec<_> = tenant.pipelines.keys().map(|name| name.as_str()).collect();
        names.sort_unstable();
        names.join(", ")
    };
    let pipeline = match (pipeline, &tenant.default_pipeline) {
        (Some(pipeline), _) => pipeline,
        (None, Some(default)) => default.as_str(),
        (None, None) if tenant.pipelines.is_empty() => return Err(NotFound::NoPipelines(name())),
        (None, None) => return Err(NotFound::NoDefault { tenant: name(), known: known() }),
    };
    match tenant.pipelines.get(pipeline) {
        Some(Pipeline::Ready(route)) => Ok(route),
        Some(Pipeline::Unavailable(why)) => {
            Err(NotFound::Unavailable { pipeline: pipeline.into(), reason: why.clone() })
        }
        None => {
            let (tenant, pipeline) = (name(), pipeline.into());
            Err(NotFound::Pipeline { tenant, pipeline, known: known() })
        }
    }
}

impl<'a> Caller<'a> {
    /// Every model and pipeline that the caller may see. Models come first, both by name.
    pub fn models(self, snapshot: &'a Snapshot) -> Vec<ModelOrPipeline<'a>> {
        let models = snapshot.models.iter().filter(|(name, _)| self.is_granted(name));
        let models = models.map(|(name, state)| ModelOrPipeline::Model { name, state });
        let mut pipelines: Vec<_> = match self {
            Self::Tenant(own) => own.tenant.pipelines.iter().collect(),
            Self::Operator(_) => Vec::new(),
        };
        pipelines.sort_unstable_by_key(|(name, _)| *name);
        let pipelines = pipelines.into_iter();
        models
            .chain(pipelines.map(|(name, pipeline)| ModelOrPipeline::Pipeline { name, pipeline }))
            .collect()
    }

    /// The model or pipeline that a client names, if the caller may see it.
    ///
    /// # Errors
    /// There is no such model or version, or the caller may not see it.
    pub fn find(
        self,
        snapshot: &'a Snapshot,
        model: NamedModel<'_>,
    ) -> Result<ModelOrPipeline<'a>, NotFound> {
        let found = self.visible(snapshot, model.name);
        let found = found.ok_or_else(|| NotFound::Model(model.name.into()))?;
        found.check_version(model.version)?;
        Ok(found)
    }

    fn visible(self, snapshot: &'a Snapshot, model: &str) -> Option<ModelOrPipeline<'a>> {
        if let Some(pipeline) = model.strip_prefix(PIPELINE_PREFIX) {
            let Self::Tenant(NamedTenant { tenant, .. }) = self else { return None };
            let (name, pipeline) = tenant.pipelines.get_key_value(pipeline)?;
            return Some(ModelOrPipeline::Pipeline { name, pipeline });
        }
        let (name, state) = snapshot.models.get_key_value(model)?;
        self.is_granted(name).then_some(ModelOrPipeline::Model { name, state })
    }

    fn is_granted(self, model: &Name) -> bool {
        match self {
            Self::Tenant(own) => own.tenant.models.contains(model),
            Self::Operator(_) => true,
        }
    }
}

impl<'a> ModelOrPipeline<'a> {
    /// The name by which clients call it.
    pub fn name(self) -> String {
        match self {
            Self::Model { name, .. } => name.to_string(),
            Self::Pipeline { name, .. } => format!("{PIPELINE_PREFIX}{name}"),
        }
    }

    /// The version that serves.
    pub fn version(self) -> u64 {
        match self {
            Self::Model { state, .. } => state.version,
            Self::Pipeline { .. } => PIPELINE_VERSION,
        }
    }

    /// The target that serves it.
    ///
    /// # Errors
    /// It is not loaded.
    pub fn served(self) -> Result<Target<'a>, NotFound> {
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
        Err(NotFound::NotLoaded { name: self.name(), reason: why.clone() })
    }

    fn check_version(self, asked: &str) -> Result<(), NotFound> {
        let serving = self.version();
        if asked.is_empty() || asked == serving.to_string() {
            return Ok(());
        }
        let (name, asked) = (self.name(), asked.to_owned());
        let earlier = match self {
            Self::Model { state, .. } => &state.earlier_versions[..],
            Self::Pipeline { .. } => &[],
        };
        match earlier.iter().any(|earlier| asked == earlier.to_string()) {
            true => Err(NotFound::Superseded { name, asked, serving }),
            false => Err(NotFound::Version { name, asked, serving }),
        }
    }
}

#[cfg(test)]
mod tests;
