//! A difference in power, as it is shown.

use gristmill_core::Name;
use serde::Serialize;
use utoipa::ToSchema;

use crate::schema::NameText;

/// A difference in what a thing may do.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Power {
    /// The kind of thing: `tenant`, `plugin`, `pipeline` or `token`.
    pub kind: &'static str,
    /// The tenant, or the tenant of the thing.
    #[schema(value_type = Option<NameText>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<Name>,
    /// The plugin.
    #[schema(value_type = Option<NameText>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin: Option<Name>,
    /// The pipeline.
    #[schema(value_type = Option<NameText>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<Name>,
    /// The token.
    #[schema(value_type = Option<NameText>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<Name>,
    /// The kind of power.
    pub power: PowerKind,
    /// Whether it grows.
    pub trend: Trend,
    /// What the power is about, such as hosts; empty if it is about nothing else.
    pub names: Vec<String>,
    /// The difference in words.
    pub text: String,
}

/// A kind of power.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PowerKind {
    /// Interfaces of the host that a plugin imports, without their versions.
    Import,
    /// A runtime that a plugin's sources share with others.
    Runtime,
    /// The world of a plugin, which says what the host calls.
    World,
    /// The size of a plugin's file.
    Size,
    /// Models that a tenant may run directly, or that a pipeline runs.
    Model,
    /// Plugins that a pipeline runs.
    Plugin,
    /// Assets that the plugins of a pipeline may open.
    Asset,
    /// Stores whose values plugins may read.
    StoreRead,
    /// Stores whose values plugins may change.
    StoreWrite,
    /// Services to which plugins may send requests.
    Http,
    /// Whether anyone may call a tenant.
    Open,
    /// Whether a tenant has a page on which anyone tries its pipelines.
    TryPage,
    /// Web pages that may call a tenant.
    Cors,
    /// Web pages to which plugins may redirect browsers.
    Redirect,
    /// A limit on a tenant's use over time.
    Quota,
    /// A tenant's share of contended batches.
    Weight,
    /// Who must have signed a tenant's plugins.
    PluginSigner,
    /// Whether rows share batches with those of other tenants.
    BatchWith,
    /// A limit of a pipeline's requests.
    Limit,
    /// The priority level of a pipeline's requests at models.
    Priority,
    /// Whether instances of plugins stay between requests.
    InstanceReuse,
    /// Whether clients see why a plugin failed.
    Debug,
    /// The requests that are kept for people to read.
    Capture,
    /// The role of a token.
    Role,
    /// The tenants that a token may change.
    Tenant,
    /// When a token ends.
    Expires,
}

/// Whether a power grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Trend {
    /// It grows.
    More,
    /// It shrinks.
    Less,
    /// It is not known.
    Unknown,
}
