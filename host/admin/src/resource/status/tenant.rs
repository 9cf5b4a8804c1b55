//! A tenant in the status.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use gristmill_core::{Digest, Name};
use gristmill_sandbox::Plugin;
use gristmill_snapshot::{Access, Pipeline, PluginState, QuotaLimits, Tenant};
use gristmill_state::{DigestText, ModelNameText, NameText, RuntimeDescription};
use serde::Serialize;
use utoipa::ToSchema;

use crate::observe::plugin_file_bytes;

/// A tenant.
#[derive(Serialize, ToSchema)]
#[schema(as = TenantStatus)]
pub(super) struct TenantDocument<'a> {
    open: bool,
    /// The models that it may run directly.
    #[schema(value_type = Vec<ModelNameText>)]
    models: Vec<&'a Name>,
    /// The bytes of its requests and answers under way, with their tensors and plugin instances.
    bytes_under_way: usize,
    /// The compiled files of its plugins, which are mapped into the server's memory.
    plugin_files_bytes: u64,
    /// Its assets and the files that its plugins bring, which lie in the server's memory.
    asset_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    quota: Option<QuotaDocument>,
    #[schema(value_type = Option<NameText>)]
    default_pipeline: Option<&'a Name>,
    /// By name.
    #[schema(value_type = BTreeMap<String, PluginDocument>)]
    plugins: BTreeMap<&'a Name, PluginDocument<'a>>,
    /// By name.
    #[schema(value_type = BTreeMap<String, PipelineDocument>)]
    pipelines: BTreeMap<&'a Name, PipelineDocument<'a>>,
}

impl<'a> TenantDocument<'a> {
    pub(super) fn of(tenant: &'a Tenant) -> Self {
        let plugins = tenant.plugins.iter();
        let pipelines = tenant.pipelines.iter();
        Self {
            open: tenant.access == Access::Open,
            models: tenant.models.keys().collect(),
            bytes_under_way: tenant.quota.bytes.held(),
            plugin_files_bytes: plugin_file_bytes(tenant),
            asset_bytes: tenant.asset_bytes(),
            quota: QuotaDocument::of(tenant),
            default_pipeline: tenant.default_pipeline.as_ref(),
            plugins: plugins.map(|(name, plugin)| (name, PluginDocument::of(plugin))).collect(),
            pipelines: pipelines
                .map(|(name, pipeline)| (name, PipelineDocument::of(pipeline)))
                .collect(),
        }
    }
}

/// The use of a tenant's quota.
#[derive(Serialize, ToSchema)]
#[schema(as = QuotaStatus)]
struct QuotaDocument {
    /// Requests that were refused because of it.
    refused: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows_in_flight: Option<usize>,
}

impl QuotaDocument {
    /// None if the tenant has no quota.
    fn of(tenant: &Tenant) -> Option<Self> {
        let Tenant { quota, limits, .. } = tenant;
        (*limits != QuotaLimits::default()).then(|| Self {
            refused: quota.refused.load(Ordering::Relaxed),
            rows_in_flight: limits.rows.map(|_| quota.rows.held()),
        })
    }
}

/// A pipeline.
#[derive(Serialize, ToSchema)]
#[schema(as = PipelineStatus)]
struct PipelineDocument<'a> {
    /// `ready` or `unavailable`.
    state: &'static str,
    /// Why it does not serve.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    /// Whether its clients see why a plugin call failed.
    #[schema(value_type = Option<bool>)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    debug: bool,
}

impl<'a> PipelineDocument<'a> {
    fn of(pipeline: &'a Pipeline) -> Self {
        match pipeline {
            Pipeline::Ready(route) => Self { state: "ready", reason: None, debug: route.debug },
            Pipeline::Unavailable(why) => {
                Self { state: "unavailable", reason: Some(why), debug: false }
            }
        }
    }
}

/// A plugin.
#[derive(Serialize, ToSchema)]
#[schema(as = PluginStatus)]
struct PluginDocument<'a> {
    #[schema(value_type = DigestText)]
    digest: Digest,
    /// The release that brought the file.
    version: u64,
    /// `ready` or `failed`.
    state: &'static str,
    /// Why it does not serve.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    /// The world that it is of, by its exports.
    #[serde(skip_serializing_if = "Option::is_none")]
    world: Option<&'static str>,
    /// The runtime that runs it, if it was uploaded as sources.
    #[schema(value_type = Option<RuntimeDescription>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    runtime: Option<RuntimeDescription>,
    /// The interfaces that it imports, without those of WASI that give no plugin anything outside
    /// of its instance.
    #[schema(value_type = Option<Vec<String>>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    imports: Option<Vec<&'a str>>,
    /// The earlier versions that stay loaded, by their numbers.
    #[schema(value_type = Option<BTreeMap<String, Object>>)]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    kept_versions: BTreeMap<u64, Self>,
}

impl<'a> PluginDocument<'a> {
    fn of(state: &'a PluginState) -> Self {
        let kept = state.kept.iter().map(|(version, kept)| {
            (*version, Self::of_version(*version, kept.digest, &kept.loaded))
        });
        Self {
            kept_versions: kept.collect(),
            ..Self::of_version(state.version, state.digest, &state.newest)
        }
    }

    fn of_version(version: u64, digest: Digest, plugin: &'a Result<Arc<Plugin>, String>) -> Self {
        let loaded = plugin.as_ref().ok();
        Self {
            digest,
            version,
            state: if loaded.is_some() { "ready" } else { "failed" },
            reason: plugin.as_ref().err().map(String::as_str),
            world: loaded.map(|plugin| plugin.roles().world()),
            runtime: loaded.and_then(|plugin| plugin.runtime()).map(Into::into),
            imports: loaded.map(|plugin| plugin.imports_with_power().collect()),
            kept_versions: BTreeMap::new(),
        }
    }
}
