//! A tenant's document as clients send it. Its keys are in clear text; only their digests are
//! stored.

use gristmill_control::{Document, Faults, TenantSpec};
use gristmill_core::{Digest, Name};
use gristmill_snapshot::same_key;
use gristmill_transport::credentials;
use serde_json::{Map, Value};

const WEIGHT_MAX: u64 = 1000;

/// The lengths of a key, in characters. Shorter keys could be guessed; longer ones are not safer.
const KEY_LEN_MIN: usize = 16;
const KEY_LEN_MAX: usize = 512;

/// The most keys of a tenant. Each request's key is compared with all of them.
const KEYS_MAX: usize = 256;

/// The most models that are granted to a tenant.
const GRANTS_MAX: usize = 1024;

/// Read a tenant from the document with these `keys`. Returns its valid parts and all faults.
/// `admin` is the digest of the admin token.
pub(super) fn read(keys: Map<String, Value>, admin: Digest) -> (TenantSpec, Faults) {
    let mut document = Document::new(keys);
    let open = document.flag("open").unwrap_or_default();
    // An answer must not repeat a key, so this message does not name the value.
    let text =
        |item: &Value| item.as_str().map(str::to_owned).ok_or_else(|| " must be text".to_owned());
    let api_keys = document.list("api_keys", text);
    let default_pipeline = document.name("default_pipeline");
    let weight = document.whole("weight").unwrap_or(1);
    let models = document.list("models", model).unwrap_or_default();
    let mut faults = document.finish();
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
        check_keys(&api_keys, admin, &mut faults);
    }
    if open != api_keys.is_empty() && !faults.has("open") && !faults.has("api_keys") {
        let text = "a tenant is either open (\"open\": true) or has api_keys (at least one)";
        faults.add("open", text);
    }
    let keys = match faults.has("api_keys") {
        true => Vec::new(),
        false => api_keys.iter().map(|key| credentials::digest(key)).collect(),
    };
    let models = models.into_iter().collect();
    (TenantSpec { open, keys, default_pipeline, weight, models }, faults)
}

fn model(item: &Value) -> Result<Name, String> {
    let text = item.as_str().ok_or_else(|| " must be a model's name".to_owned())?;
    text.parse().map_err(|error| format!(": {error}"))
}

fn check_keys(api_keys: &[String], admin: Digest, faults: &mut Faults) {
    for (index, key) in api_keys.iter().enumerate() {
        let at = format!("api_keys[{index}]");
        let len = key.chars().count();
        let wrong = if len < KEY_LEN_MIN {
            format!("is shorter than {KEY_LEN_MIN} characters")
        } else if len > KEY_LEN_MAX {
            format!("is longer than {KEY_LEN_MAX} characters")
        } else if !credentials::can_be_sent(key) {
            "cannot be sent in a header: it must be ASCII, without control characters and without \
             blanks at its ends"
                .into()
        } else if same_key(credentials::digest(key), admin) {
            "is the admin token".into()
        } else {
            continue;
        };
        faults.add(at.clone(), format!("{at} {wrong}"));
    }
}

#[cfg(test)]
mod tests;
