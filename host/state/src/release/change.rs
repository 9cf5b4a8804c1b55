//! A release: a numbered list of changes to the desired state.

use std::fmt;

use gristmill_core::{Digest, KeyHash, Name};
use serde::{Deserialize, Serialize};

use crate::fault::Subject;
use crate::release::model_config::ModelConfig;
use crate::release::pipeline::PipelineSpec;
use crate::release::tenant::TenantSpec;
use crate::release::token::TokenSpec;

/// All of its changes take effect together or not at all.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// Its number in the log, from 1 on.
    pub number: u64,
    /// Milliseconds since the Unix epoch.
    pub published_at_ms: u64,
    /// The SHA-256 of the log's document before this one; for the first, of no bytes. None in a
    /// document of format 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Digest>,
    /// Who made it, and why. Empty up to format 4.
    #[serde(default, skip_serializing_if = "ReleaseNote::is_empty")]
    pub note: ReleaseNote,
    /// Its changes, in order.
    pub changes: Vec<Change>,
}

/// Who made a release, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReleaseNote {
    /// The holder of the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The holder's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl ReleaseNote {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// One change to the desired state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[allow(clippy::large_enum_variant, reason = "a release has few changes")]
pub enum Change {
    /// Make a tenant, or change who may call it; its plugins and pipelines stay.
    PutTenant {
        /// The tenant.
        tenant: Name,
        /// Who may call it, and what it may use.
        spec: TenantSpec,
    },
    /// Delete a tenant.
    DeleteTenant {
        /// The tenant.
        tenant: Name,
    },
    /// Add an API key to a tenant, or replace it.
    PutKey {
        /// The tenant.
        tenant: Name,
        /// The key's name.
        key: Name,
        /// The key's hash. Up to format 5 of the log it is the key's digest.
        digest: KeyHash,
    },
    /// Delete an API key of a tenant.
    DeleteKey {
        /// The tenant.
        tenant: Name,
        /// The key's name.
        key: Name,
    },
    /// Make a plugin, or replace its file.
    PutPlugin {
        /// The tenant.
        tenant: Name,
        /// The plugin.
        plugin: Name,
        /// The digest of its file.
        digest: Digest,
    },
    /// Bring back an earlier version of a plugin, beside the newest one. Only going back makes it.
    PutPluginVersion {
        /// The tenant.
        tenant: Name,
        /// The plugin.
        plugin: Name,
        /// The release that brought the version.
        version: u64,
        /// The digest of its file.
        digest: Digest,
    },
    /// Delete a plugin.
    DeletePlugin {
        /// The tenant.
        tenant: Name,
        /// The plugin.
        plugin: Name,
    },
    /// Make an asset, or replace its file.
    PutAsset {
        /// The tenant.
        tenant: Name,
        /// The asset.
        asset: Name,
        /// The digest of its file.
        digest: Digest,
    },
    /// Bring back an earlier version of an asset, beside the newest one. Only going back makes it.
    PutAssetVersion {
        /// The tenant.
        tenant: Name,
        /// The asset.
        asset: Name,
        /// The release that brought the version.
        version: u64,
        /// The digest of its file.
        digest: Digest,
    },
    /// Delete an asset.
    DeleteAsset {
        /// The tenant.
        tenant: Name,
        /// The asset.
        asset: Name,
    },
    /// Make a pipeline, or replace it.
    PutPipeline {
        /// The tenant.
        tenant: Name,
        /// The pipeline.
        pipeline: Name,
        /// Its parts, settings and limits.
        spec: Box<PipelineSpec>,
    },
    /// Delete a pipeline.
    DeletePipeline {
        /// The tenant.
        tenant: Name,
        /// The pipeline.
        pipeline: Name,
    },
    /// New content; the configuration stays, or is the default for a new model.
    PutModel {
        /// The model.
        model: Name,
        /// The digest of its file.
        digest: Digest,
        /// The number of the version. If it is not given: that of the release, or the next one
        /// after the newest version.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        version: Option<u64>,
    },
    /// Bring back an earlier version of a model, beside the newest one. Only going back makes it.
    PutModelVersion {
        /// The model.
        model: Name,
        /// The release that brought the version.
        version: u64,
        /// The digest of its file.
        digest: Digest,
    },
    /// Replace the configuration of a model; its content stays.
    PutModelConfig {
        /// The model.
        model: Name,
        /// The new configuration.
        config: Box<ModelConfig>,
    },
    /// Delete a model.
    DeleteModel {
        /// The model.
        model: Name,
    },
    /// Serve a model that was taken out of service.
    LoadModel {
        /// The model.
        model: Name,
    },
    /// Take a model out of service; its content and configuration stay.
    UnloadModel {
        /// The model.
        model: Name,
    },
    /// Make an admin token, or change it.
    PutToken {
        /// The token's name.
        token: Name,
        /// Its rights, and the hash of its secret.
        spec: TokenSpec,
    },
    /// Delete an admin token.
    DeleteToken {
        /// The token's name.
        token: Name,
    },
}

impl Change {
    /// The thing that it makes, changes or deletes.
    pub fn target(&self) -> Subject {
        match self {
            Self::PutTenant { tenant, .. } | Self::DeleteTenant { tenant } => {
                Subject::Tenant(tenant.clone())
            }
            Self::PutKey { tenant, key, .. } | Self::DeleteKey { tenant, key } => {
                Subject::Key { tenant: tenant.clone(), key: key.clone() }
            }
            Self::PutPlugin { tenant, plugin, .. }
            | Self::PutPluginVersion { tenant, plugin, .. }
            | Self::DeletePlugin { tenant, plugin } => {
                Subject::Plugin { tenant: tenant.clone(), plugin: plugin.clone() }
            }
            Self::PutAsset { tenant, asset, .. }
            | Self::PutAssetVersion { tenant, asset, .. }
            | Self::DeleteAsset { tenant, asset } => {
                Subject::Asset { tenant: tenant.clone(), asset: asset.clone() }
            }
            Self::PutPipeline { tenant, pipeline, .. }
            | Self::DeletePipeline { tenant, pipeline } => {
                Subject::Pipeline { tenant: tenant.clone(), pipeline: pipeline.clone() }
            }
            Self::PutModelConfig { model, .. } => Subject::ModelConfig(model.clone()),
            Self::PutModel { model, .. }
            | Self::PutModelVersion { model, .. }
            | Self::DeleteModel { model }
            | Self::LoadModel { model }
            | Self::UnloadModel { model } => Subject::Model(model.clone()),
            Self::PutToken { token, .. } | Self::DeleteToken { token } => {
                Subject::Token(token.clone())
            }
        }
    }

    /// The tenant that it makes, changes or deletes, or whose part it does.
    pub fn tenant(&self) -> Option<&Name> {
        match self {
            Self::PutTenant { tenant, .. }
            | Self::DeleteTenant { tenant }
            | Self::PutKey { tenant, .. }
            | Self::DeleteKey { tenant, .. }
            | Self::PutPlugin { tenant, .. }
            | Self::PutPluginVersion { tenant, .. }
            | Self::DeletePlugin { tenant, .. }
            | Self::PutAsset { tenant, .. }
            | Self::PutAssetVersion { tenant, .. }
            | Self::DeleteAsset { tenant, .. }
            | Self::PutPipeline { tenant, .. }
            | Self::DeletePipeline { tenant, .. } => Some(tenant),
            Self::PutModel { .. }
            | Self::PutModelVersion { .. }
            | Self::PutModelConfig { .. }
            | Self::DeleteModel { .. }
            | Self::LoadModel { .. }
            | Self::UnloadModel { .. }
            | Self::PutToken { .. }
            | Self::DeleteToken { .. } => None,
        }
    }

    /// Whether its target does not exist, or does not serve, afterwards.
    pub fn takes_away(&self) -> bool {
        match self {
            Self::DeleteTenant { .. }
            | Self::DeleteKey { .. }
            | Self::DeletePlugin { .. }
            | Self::DeleteAsset { .. }
            | Self::DeletePipeline { .. }
            | Self::DeleteModel { .. }
            | Self::UnloadModel { .. }
            | Self::DeleteToken { .. } => true,
            Self::PutTenant { .. }
            | Self::PutKey { .. }
            | Self::PutPlugin { .. }
            | Self::PutPluginVersion { .. }
            | Self::PutAsset { .. }
            | Self::PutAssetVersion { .. }
            | Self::PutPipeline { .. }
            | Self::PutModel { .. }
            | Self::PutModelVersion { .. }
            | Self::PutModelConfig { .. }
            | Self::LoadModel { .. }
            | Self::PutToken { .. } => false,
        }
    }

    /// The uploaded file that it names.
    pub fn blob(&self) -> Option<Digest> {
        match self {
            Self::PutPlugin { digest, .. }
            | Self::PutPluginVersion { digest, .. }
            | Self::PutAsset { digest, .. }
            | Self::PutAssetVersion { digest, .. }
            | Self::PutModel { digest, .. }
            | Self::PutModelVersion { digest, .. } => Some(*digest),
            _ => None,
        }
    }
}

/// For log lines: the kind of the change and its names, without the content.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PutTenant { tenant, .. } => write!(f, "put tenant {tenant}"),
            Self::DeleteTenant { tenant } => write!(f, "delete tenant {tenant}"),
            Self::PutKey { tenant, key, .. } => write!(f, "put key {tenant}/{key}"),
            Self::DeleteKey { tenant, key } => write!(f, "delete key {tenant}/{key}"),
            Self::PutPlugin { tenant, plugin, digest } => {
                write!(f, "put plugin {tenant}/{plugin} {digest}")
            }
            Self::PutPluginVersion { tenant, plugin, version, digest } => {
                write!(f, "put plugin {tenant}/{plugin}@{version} {digest}")
            }
            Self::DeletePlugin { tenant, plugin } => write!(f, "delete plugin {tenant}/{plugin}"),
            Self::PutAsset { tenant, asset, digest } => {
                write!(f, "put asset {tenant}/{asset} {digest}")
            }
            Self::PutAssetVersion { tenant, asset, version, digest } => {
                write!(f, "put asset {tenant}/{asset}@{version} {digest}")
            }
            Self::DeleteAsset { tenant, asset } => write!(f, "delete asset {tenant}/{asset}"),
            Self::PutPipeline { tenant, pipeline, .. } => {
                write!(f, "put pipeline {tenant}/{pipeline}")
            }
            Self::DeletePipeline { tenant, pipeline } => {
                write!(f, "delete pipeline {tenant}/{pipeline}")
            }
            Self::PutModel { model, digest, version: None } => {
                write!(f, "put model {model} {digest}")
            }
            Self::PutModel { model, digest, version: Some(version) } => {
                write!(f, "put model {model} as version {version} {digest}")
            }
            Self::PutModelVersion { model, version, digest } => {
                write!(f, "put model {model}@{version} {digest}")
            }
            Self::PutModelConfig { model, .. } => write!(f, "put config of model {model}"),
            Self::DeleteModel { model } => write!(f, "delete model {model}"),
            Self::LoadModel { model } => write!(f, "load model {model}"),
            Self::UnloadModel { model } => write!(f, "unload model {model}"),
            Self::PutToken { token, spec } => {
                write!(f, "put token {token} ({})", spec.role.as_str())
            }
            Self::DeleteToken { token } => write!(f, "delete token {token}"),
        }
    }
}
