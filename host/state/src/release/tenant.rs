//! A tenant in a release, and the tenant that people write.

mod given_key;

use std::collections::{BTreeMap, BTreeSet};

use gristmill_core::{Destination, KeyHash, KeyHashes, Name, Origins};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use crate::release::cors::CorsSpec;
use crate::release::http_grants::HttpGrantDocument;
use crate::release::plugin_signers::Signer;
use crate::release::quota::QuotaSpec;
use crate::release::store_grants::{StoreGrant, StoreGrants};
use crate::release::version_policy::VersionPolicy;
use crate::schema::{ModelNameText, NameText};

/// The most keys of a tenant. Each request's key is compared with all of them.
pub const KEYS_MAX: usize = 256;

/// The callers of a tenant's pipelines, and the tenant's share of contended models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TenantSpec {
    /// Whether anyone may call them without a key.
    pub open: bool,
    /// Hashes of the keys, by their names. Up to format 5 of the log they are digests. Up to format
    /// 3 they are a list without names: there the first is `key-1`, and so on.
    #[serde(deserialize_with = "keys")]
    pub keys: BTreeMap<Name, KeyHash>,
    /// The pipeline that `/v1/{tenant}/infer` runs. If it is not given: the tenant's only pipeline.
    pub default_pipeline: Option<Name>,
    /// The tenant's share of contended batches, relative to the weights of others; 1 to 1000.
    pub weight: u32,
    /// Whose rows may share a batch with its rows. Any tenant's up to format 8 of the log.
    #[serde(skip_serializing_if = "BatchWith::is_default")]
    pub batch_with: BatchWith,
    /// The models it may run directly, over the Open Inference Protocol.
    pub models: BTreeSet<Name>,
    /// The limits on its use over time. None has any up to format 5 of the log.
    #[serde(skip_serializing_if = "QuotaSpec::is_empty")]
    pub quota: QuotaSpec,
    /// The versions of its plugins that stay loaded beside the newest ones.
    #[serde(skip_serializing_if = "VersionPolicy::is_default")]
    pub plugin_version_policy: VersionPolicy,
    /// The stores that its plugins may use. There are none up to format 9 of the log.
    #[serde(skip_serializing_if = "StoreGrants::is_empty")]
    pub stores: StoreGrants,
    /// The services to which its plugins may send HTTP requests. There are none up to format 10 of
    /// the log.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub http: Vec<Destination>,
    /// Which web pages may call it. If it is not given, the server says it. It never is up to
    /// format 10 of the log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cors: Option<CorsSpec>,
    /// The origins of the pages to which its plugins may redirect browsers. There are none up to
    /// format 10 of the log.
    #[serde(skip_serializing_if = "Origins::is_empty")]
    pub redirects: Origins,
    /// The keys of which one must have signed each plugin that is put. If there are none, no plugin
    /// needs a signature. There are none up to format 10 of the log.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plugin_signers: Vec<Signer>,
    /// Whether it has a page on which anyone tries its pipelines. No tenant has up to format 10 of
    /// the log. It counts for open tenants alone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub try_page: bool,
}

/// The tenants whose rows may share a batch with a tenant's rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum BatchWith {
    /// All of them.
    #[default]
    Any,
    /// Only the tenant itself.
    Tenant,
}

impl BatchWith {
    /// Its names in documents.
    pub const NAMES: [(&'static str, Self); 2] = [("any", Self::Any), ("tenant", Self::Tenant)];

    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A tenant as people put it: either open, or with API keys.
// The keys that it keeps are known only when its release is made.
#[derive(Clone, Debug, PartialEq, ToSchema)]
#[schema(as = Tenant)]
pub struct TenantDocument {
    /// Whether anyone may call its pipelines without a key.
    #[schema(value_type = Option<bool>)]
    pub open: bool,
    /// All of its keys. A key that is not listed is deleted.
    #[schema(value_type = Option<Vec<GivenKey>>, max_items = 256)]
    pub api_keys: Vec<GivenKey>,
    /// The pipeline that `/v1/{tenant}/infer` runs. If it is not given: the tenant's only pipeline.
    #[schema(value_type = Option<NameText>)]
    pub default_pipeline: Option<Name>,
    /// The tenant's share of contended batches, relative to the weights of others.
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1000)]
    pub weight: u32,
    /// Whose rows may share a batch with its rows.
    #[schema(value_type = Option<BatchWith>)]
    pub batch_with: BatchWith,
    /// The models it may run directly, over the Open Inference Protocol.
    #[schema(value_type = Option<Vec<ModelNameText>>, max_items = 1024)]
    pub models: BTreeSet<Name>,
    /// The limits on its use over time.
    #[schema(value_type = Option<QuotaSpec>)]
    pub quota: QuotaSpec,
    /// The versions of its plugins that stay loaded beside the newest ones.
    #[schema(value_type = Option<VersionPolicy>)]
    pub plugin_version_policy: VersionPolicy,
    /// The stores that its plugins may use, by their names on the server.
    #[schema(value_type = Option<BTreeMap<String, StoreGrant>>)]
    pub stores: StoreGrants,
    /// The services to which its plugins may send HTTP requests.
    #[schema(value_type = Option<Vec<HttpGrantDocument>>, max_items = 64)]
    pub http: Vec<Destination>,
    /// Which web pages may call it. If it is not given: those of the server's `cors_origins`.
    pub cors: Option<CorsSpec>,
    /// The origins of the pages to which its plugins may redirect browsers, with status 303.
    #[schema(value_type = Option<Vec<String>>, max_items = 64)]
    pub redirects: Origins,
    /// The public keys of which one must have signed each plugin that is put, in PEM: of ECDSA
    /// P-256, as `cosign generate-key-pair` makes it, or of Ed25519. Without them, no plugin needs
    /// a signature.
    #[schema(value_type = Option<Vec<String>>, max_items = 8)]
    pub plugin_signers: Vec<Signer>,
    /// Whether `/v1/{tenant}/try` is a page on which anyone tries its pipelines. Only an open
    /// tenant can have it.
    #[schema(value_type = Option<bool>)]
    pub try_page: bool,
}

/// A key that a client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentKey {
    /// Its hashes.
    pub hashes: KeyHashes,
    /// Whether it is an admin token, which no tenant may have as a key.
    pub is_token: bool,
}

/// A key in a tenant's document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GivenKey {
    /// A key without a name. It keeps the name that it has, or gets the first free one of `key-1`,
    /// `key-2` and so on.
    Unnamed(SentKey),
    /// A key and its name.
    Named(Name, SentKey),
    /// The tenant's key of this name, which stays.
    Kept(Name),
}

impl Default for TenantSpec {
    fn default() -> Self {
        Self {
            open: false,
            keys: BTreeMap::new(),
            default_pipeline: None,
            weight: 1,
            batch_with: BatchWith::Any,
            models: BTreeSet::new(),
            quota: QuotaSpec::default(),
            plugin_version_policy: VersionPolicy::default(),
            stores: StoreGrants::new(),
            http: Vec::new(),
            cors: None,
            redirects: Origins::default(),
            plugin_signers: Vec::new(),
            try_page: false,
        }
    }
}

/// The name of a key that was given without one.
pub fn numbered_name(number: usize) -> Option<Name> {
    format!("key-{number}").parse().ok()
}

fn keys<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<Name, KeyHash>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Keys {
        Named(BTreeMap<Name, KeyHash>),
        List(Vec<KeyHash>),
    }
    match Keys::deserialize(deserializer)? {
        Keys::Named(keys) => Ok(keys),
        Keys::List(keys) => {
            let named = (1..).zip(keys).map(|(number, key)| Some((numbered_name(number)?, key)));
            named.collect::<Option<_>>().ok_or_else(|| D::Error::custom("too many keys"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{digest, name};

    #[test]
    fn keys_of_older_logs_have_names_by_their_places() {
        let list = serde_json::json!({ "keys": [digest(9), digest(3)] });
        let spec: TenantSpec = serde_json::from_value(list).unwrap();
        let expected = [("key-1", 9), ("key-2", 3)]
            .map(|(key, byte)| (name(key), KeyHash::Plain(digest(byte))));
        assert_eq!(spec.keys, BTreeMap::from(expected));
        let again = serde_json::to_value(&spec).unwrap();
        assert_eq!(serde_json::from_value::<TenantSpec>(again).unwrap(), spec);
        let none: TenantSpec = serde_json::from_str("{}").unwrap();
        assert_eq!(none, TenantSpec::default());
    }
}
