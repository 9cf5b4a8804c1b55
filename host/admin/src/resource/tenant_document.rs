//! A tenant's document as clients send it, and that of one of its keys.
//!
//! New keys are in clear text; only their hashes are stored. An item of `api_keys` is a key, or an
//! object: one with `name` and `key` is a key with its name, one with `name` alone is the key that
//! the tenant has under this name. No error repeats a key.

use gristmill_core::Name;
use gristmill_state::{
    BatchWith, CorsSpec, Document, Faults, GivenKey, KEYS_MAX, PLUGIN_VERSIONS_MAX, QuotaSpec,
    SentKey, TenantDocument, VersionPolicy, read_http, read_redirects, read_signers, read_stores,
};
use gristmill_transport::credentials;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::state::AdminState;

const WEIGHT_MAX: u64 = 1000;

/// The lengths of a key, in characters. Shorter keys could be guessed; longer ones are not safer.
const KEY_LEN_MIN: usize = 16;
const KEY_LEN_MAX: usize = 512;

/// The most models that are granted to a tenant.
const GRANTS_MAX: usize = 1024;

/// The key of the versions that stay loaded.
const POLICY: &str = "plugin_version_policy";
/// An API key in clear text.
#[derive(ToSchema)]
#[schema(as = NewKey)]
pub(super) struct KeyDocument {
    /// ASCII without control characters and without blanks at its ends.
    #[schema(min_length = 16, max_length = 512, pattern = "^[!-~]([ -~]*[!-~])?$")]
    key: String,
}

/// An item of `api_keys`.
struct KeyItem {
    name: Option<Name>,
    /// In clear text.
    key: Option<String>,
}

/// What keys are hashed and compared with.
pub(super) trait Secrets {
    fn sent(&self, key: &str) -> SentKey;
}

impl Secrets for AdminState {
    fn sent(&self, key: &str) -> SentKey {
        let hashes = self.tokens.hasher.hashes(key);
        SentKey { hashes, is_token: self.tokens.has(&self.control.desired(), &hashes) }
    }
}

/// Read a tenant from the document with these `keys`. Returns its valid parts and all faults.
pub(super) fn read(keys: Map<String, Value>, secrets: &impl Secrets) -> (TenantDocument, Faults) {
    let mut document = Document::new(keys);
    let open = document.flag("open").unwrap_or_default();
    let api_keys = document.list("api_keys", key_item);
    let default_pipeline = document.name("default_pipeline");
    let weight = document.whole("weight").unwrap_or(1);
    let batch_with = document.one_of("batch_with", &BatchWith::NAMES).unwrap_or_default();
    let models = document.list("models", model).unwrap_or_default();
    let quota = document.nested("quota", QuotaSpec::read);
    let policy = VersionPolicy::read(&mut document, POLICY, PLUGIN_VERSIONS_MAX);
    let stores = read_stores(&mut document);
    let http = read_http(&mut document);
    let cors = CorsSpec::read(&mut document);
    let redirects = read_redirects(&mut document);
    let plugin_signers = read_signers(&mut document);
    let try_page = document.flag("try_page").unwrap_or_default();
    let mut faults = document.finish();
    quota.check(&mut faults);
    policy.check(POLICY, PLUGIN_VERSIONS_MAX, &mut faults);
    faults.within("weight", u64::from(weight), 1..=WEIGHT_MAX);
    if models.len() > GRANTS_MAX {
        let text = format!("models has {} names: the limit is {GRANTS_MAX}", models.len());
        faults.add("models", text);
    }
    let api_keys = api_keys.unwrap_or_default();
    if api_keys.len() > KEYS_MAX {
        let text = format!("api_keys has {} keys: the limit is {KEYS_MAX}", api_keys.len());
        faults.add("api_keys", text);
    } else {
        for (index, KeyItem { name, key }) in api_keys.iter().enumerate() {
            let member = if name.is_some() { ".key" } else { "" };
            if let Some(key) = key {
                check_key(&format!("api_keys[{index}]{member}"), key, &mut faults);
            }
        }
    }
    if open != api_keys.is_empty() && !faults.has("open") && !faults.has("api_keys") {
        let text = "a tenant is either open (\"open\": true) or has api_keys (at least one)";
        faults.add("open", text);
    }
    if try_page && !open && !faults.has("open") {
        let text = "try_page is true: only an open tenant has the page (\"open\": true)";
        faults.add("try_page", text);
    }
    let api_keys = match faults.has("api_keys") {
        true => Vec::new(),
        false => api_keys.into_iter().filter_map(|item| item.into_key(secrets)).collect(),
    };
    let models = models.into_iter().collect();
    let plugin_version_policy = policy;
    let document = TenantDocument {
        open,
        api_keys,
        default_pipeline,
        weight,
        batch_with,
        models,
        quota,
        plugin_version_policy,
        stores,
        http,
        cors,
        redirects,
        plugin_signers,
        try_page,
    };
    (document, faults)
}

/// Read the document of one key. Returns the key.
///
/// # Errors
/// All faults.
pub(super) fn read_key(
    keys: Map<String, Value>,
    secrets: &impl Secrets,
) -> Result<SentKey, Faults> {
    let mut document = Document::new(keys);
    let read = match document.value("key") {
        Some(Value::String(key)) => Some(KeyDocument { key }),
        Some(_) => {
            document.fault("key", " must be text");
            None
        }
        None => document.require("key", None),
    };
    let mut faults = document.finish();
    if let Some(KeyDocument { key }) = &read {
        check_key("key", key, &mut faults);
    }
    read.filter(|_| faults.is_empty()).map(|read| secrets.sent(&read.key)).ok_or(faults)
}

impl KeyItem {
    fn into_key(self, secrets: &impl Secrets) -> Option<GivenKey> {
        let sent = self.key.map(|key| secrets.sent(&key));
        match (self.name, sent) {
            (Some(name), Some(sent)) => Some(GivenKey::Named(name, sent)),
            (Some(name), None) => Some(GivenKey::Kept(name)),
            (None, sent) => sent.map(GivenKey::Unnamed),
        }
    }
}

fn key_item(item: &Value) -> Result<KeyItem, String> {
    let keys = match item {
        Value::String(key) => return Ok(KeyItem { name: None, key: Some(key.clone()) }),
        Value::Object(keys) => keys,
        _ => return Err(" must be text, or an object with name and key".into()),
    };
    if keys.keys().any(|key| !["name", "key"].contains(&key.as_str())) {
        return Err(" must have nothing but name and key".into());
    }
    let name = keys.get("name").and_then(Value::as_str).ok_or(".name must be text")?;
    let name = name.parse().map_err(|error| format!(".name: {error}"))?;
    let key = match keys.get("key") {
        None | Some(Value::Null) => None,
        Some(Value::String(key)) => Some(key.clone()),
        Some(_) => return Err(".key must be text".into()),
    };
    Ok(KeyItem { name: Some(name), key })
}

fn model(item: &Value) -> Result<Name, String> {
    let text = item.as_str().ok_or_else(|| " must be a model's name".to_owned())?;
    Name::of_model(text).map_err(|error| format!(": {error}"))
}

/// Add the fault of the key at `at`, if it has one.
fn check_key(at: &str, key: &str, faults: &mut Faults) {
    let len = key.chars().count();
    let wrong = if len < KEY_LEN_MIN {
        format!("is shorter than {KEY_LEN_MIN} characters")
    } else if len > KEY_LEN_MAX {
        format!("is longer than {KEY_LEN_MAX} characters")
    } else if !credentials::can_be_sent(key) {
        "cannot be sent in a header: it must be ASCII, without control characters and without \
         blanks at its ends"
            .into()
    } else {
        return;
    };
    faults.add(at, format!("{at} {wrong}"));
}

#[cfg(test)]
mod tests;
