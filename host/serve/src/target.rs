//! The targets of a caller: models granted to it, and its own pipelines.

use std::sync::Arc;

use gristmill_core::{ClientError, ErrorCode, Name};
use gristmill_snapshot::{
    ModelState, Pipeline, Route, ServedModel, Snapshot, TensorNotes, loaded_versions,
};

use crate::access::{Caller, NamedTenant};

/// As a model, a tenant's pipeline `p` is called `pipeline:p`. No model's name has a colon. A
/// pipeline with named inputs and outputs is called `p`, too, unless a model `p` is granted.
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
        /// Its versions, and whether they are loaded.
        state: &'a ModelState,
        /// The version that is meant.
        version: u64,
        /// The lane of this version, or why it is not loaded.
        served: &'a Result<ServedModel, String>,
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
    /// Empty if the client names none: then the newest version is meant.
    pub version: &'a str,
}

/// A version of a model that is loaded.
#[derive(Clone, Copy)]
pub struct LoadedModel<'a> {
    /// Its name.
    pub name: &'a Name,
    /// Its version.
    pub version: u64,
    /// The lane of this version.
    pub served: &'a ServedModel,
    /// What is said of its inputs and outputs.
    pub notes: &'a Arc<TensorNotes>,
}

/// A model or pipeline that is served.
pub enum Target<'a> {
    /// A model.
    Model(LoadedModel<'a>),
    /// A pipeline.
    Pipeline {
        /// Its name.
        name: &'a Name,
        /// Its parts, resolved.
        route: &'a Arc<Route>,
    },
}

/// The reason why a target was not found. Of models, it begins with the words of Triton, with which
/// its clients compare it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotFound {
    /// There is no such model, or the caller may not run it.
    #[error("Request for unknown model: '{0}' is not found, or it is not granted to this caller")]
    Model(String),
    /// An earlier version, which is no longer loaded.
    #[error(
        "Request for unknown model: '{name}' version {asked} is not found: it is no longer loaded, \
         {loaded}"
    )]
    Superseded {
        /// The model.
        name: String,
        /// The version that was asked for.
        asked: String,
        /// The versions that are loaded.
        loaded: String,
    },
    /// A version that the model never had.
    #[error("Request for unknown model: '{name}' version {asked} is not found: {loaded}")]
    Version {
        /// The model.
        name: String,
        /// The version that was asked for.
        asked: String,
        /// The versions that are loaded.
        loaded: String,
    },
    /// The model is not loaded.
    #[error("Request for unknown model: '{name}' {}: {reason}", state_of(*version))]
    NotLoaded {
        /// The model.
        name: String,
        /// The version that was asked for, if it is not the newest one.
        version: Option<u64>,
        /// Why it is not loaded.
        reason: String,
    },
    /// The tenant has no pipeline at all.
    #[error("tenant {0:?} has no pipeline")]
    NoPipelines(String),
    /// The request names no pipeline, and the tenant has no default.
    #[error("tenant {tenant:?} has no default pipeline: name one of {pipelines}")]
    NoDefault {
        /// The tenant.
        tenant: String,
        /// The pipelines that it has.
        pipelines: String,
    },
    /// The tenant has no such pipeline.
    #[error("tenant {tenant:?} has no pipeline {pipeline:?}; it has: {pipelines}")]
    Pipeline {
        /// The tenant.
        tenant: String,
        /// The pipeline that was asked for.
        pipeline: String,
        /// The pipelines that it has.
        pipelines: String,
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

/// The state of a model that is not loaded, or of a version of it, as Triton calls it.
fn state_of(version: Option<u64>) -> String {
    match version {
        None => "has no available versions".into(),
        Some(version) => format!("version {version} is not at ready state"),
    }
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
    let pipelines = || {
        let mut names: Vec<_> = tenant.pipelines.keys().map(|name| name.as_str()).collect();
        names.sort_unstable();
        names.join(", ")
    };
    let pipeline = match (pipeline, &tenant.default_pipeline) {
        _ if tenant.pipelines.is_empty() => return Err(NotFound::NoPipelines(name())),
        (Some(pipeline), _) => pipeline,
        (None, Some(default)) => default.as_str(),
        (None, None) => return Err(NotFound::NoDefault { tenant: name(), pipelines: pipelines() }),
    };
    match tenant.pipelines.get(pipeline) {
        Some(Pipeline::Ready(route)) => Ok(route),
        Some(Pipeline::Unavailable(why)) => {
            Err(NotFound::Unavailable { pipeline: pipeline.into(), reason: why.clone() })
        }
        None => {
            let (tenant, pipeline) = (name(), pipeline.into());
            Err(NotFound::Pipeline { tenant, pipeline, pipelines: pipelines() })
        }
    }
}

impl<'a> Caller<'a> {
    /// Every model and pipeline that the caller may see. Models come first, both by name.
    pub fn models(self, snapshot: &'a Snapshot) -> Vec<ModelOrPipeline<'a>> {
        let models = snapshot.models.iter().filter(|(name, _)| self.is_granted(name));
        let models = models.map(|(name, state)| ModelOrPipeline::newest(name, state));
        let mut pipelines: Vec<_> = match self {
            Self::Tenant(own_tenant) => own_tenant.tenant.pipelines.iter().collect(),
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
        found.ok_or_else(|| NotFound::Model(model.name.into()))?.of_version(model.version)
    }

    fn visible(self, snapshot: &'a Snapshot, model: &str) -> Option<ModelOrPipeline<'a>> {
        if let Some(pipeline) = model.strip_prefix(PIPELINE_PREFIX) {
            let (name, pipeline) = self.pipeline(pipeline)?;
            return Some(ModelOrPipeline::Pipeline { name, pipeline });
        }
        let granted =
            snapshot.models.get_key_value(model).filter(|(name, _)| self.is_granted(name));
        if let Some((name, state)) = granted {
            return Some(ModelOrPipeline::newest(name, state));
        }
        let (name, pipeline) = self.pipeline(model)?;
        let has_plain_name = match pipeline {
            Pipeline::Ready(route) => route.signature.is_some(),
            // Its caller learns why.
            Pipeline::Unavailable(_) => true,
        };
        has_plain_name.then_some(ModelOrPipeline::Pipeline { name, pipeline })
    }

    fn pipeline(self, name: &str) -> Option<(&'a Name, &'a Pipeline)> {
        let Self::Tenant(NamedTenant { tenant, .. }) = self else { return None };
        tenant.pipelines.get_key_value(name)
    }

    fn is_granted(self, model: &Name) -> bool {
        match self {
            Self::Tenant(own_tenant) => own_tenant.tenant.models.contains_key(model),
            Self::Operator(_) => true,
        }
    }
}

impl<'a> ModelOrPipeline<'a> {
    /// The newest version of a model.
    fn newest(name: &'a Name, state: &'a ModelState) -> Self {
        Self::Model { name, state, version: state.version, served: &state.served }
    }

    /// All versions that stay loaded, the newest first. A pipeline has one.
    pub fn versions(self) -> impl Iterator<Item = Self> {
        let (model, pipeline) = match self {
            Self::Model { name, state, .. } => (Some((name, state)), None),
            Self::Pipeline { .. } => (None, Some(self)),
        };
        let versions = model.into_iter().flat_map(|(name, state)| {
            let version = move |(version, served)| Self::Model { name, state, version, served };
            state.versions().map(version)
        });
        versions.chain(pipeline)
    }

    /// The versions that are loaded, the newest first.
    pub fn loaded_versions(self) -> impl Iterator<Item = u64> {
        let is_loaded = |version: &Self| version.served().is_ok();
        self.versions().filter(is_loaded).map(Self::version)
    }

    /// The name by which clients call it.
    pub fn name(self) -> String {
        match self {
            Self::Model { name, .. } => name.to_string(),
            Self::Pipeline { name, .. } => format!("{PIPELINE_PREFIX}{name}"),
        }
    }

    /// The version that is meant.
    pub fn version(self) -> u64 {
        match self {
            Self::Model { version, .. } => version,
            Self::Pipeline { .. } => PIPELINE_VERSION,
        }
    }

    /// The target that serves it.
    ///
    /// # Errors
    /// It is not loaded.
    pub fn served(self) -> Result<Target<'a>, NotFound> {
        let why = match self {
            Self::Model { name, state, version, served } => match served {
                Ok(served) => {
                    return Ok(Target::Model(LoadedModel {
                        name,
                        version,
                        served,
                        notes: &state.notes,
                    }));
                }
                Err(why) => why,
            },
            Self::Pipeline { name, pipeline } => match pipeline {
                Pipeline::Ready(route) => return Ok(Target::Pipeline { name, route }),
                Pipeline::Unavailable(why) => why,
            },
        };
        let version = match self {
            Self::Model { state, version, .. } if version != state.version => Some(version),
            _ => None,
        };
        Err(NotFound::NotLoaded { name: self.name(), version, reason: why.clone() })
    }

    /// The version that a client asks for.
    fn of_version(self, asked: &str) -> Result<Self, NotFound> {
        if asked.is_empty() {
            return Ok(self);
        }
        // One spelling for each version: not "+7" or "07".
        let number = asked.parse().ok().filter(|number: &u64| number.to_string() == asked);
        let has = |found: &Self| number == Some(found.version());
        if let Some(found) = self.versions().find(has) {
            return Ok(found);
        }
        let (name, asked) = (self.name(), asked.to_owned());
        let loaded = loaded_versions(self.loaded_versions());
        match (self, number) {
            (Self::Model { state, .. }, Some(number))
                if state.earlier_versions.contains(&number) =>
            {
                Err(NotFound::Superseded { name, asked, loaded })
            }
            _ => Err(NotFound::Version { name, asked, loaded }),
        }
    }
}

#[cfg(test)]
mod tests;
