//! Reading the signature of a plugin from the header of its upload.

use gristmill_core::ErrorCode;
use gristmill_state::{Document, PluginSignature};
use gristmill_transport::Problem;
use http::HeaderMap;
use serde_json::{Map, Value};

/// The header. Its value is the JSON document that a change `put_plugin` has as `signature`.
pub(crate) const SIGNATURE: &str = "Gristmill-Plugin-Signature";

/// What it is for.
pub(crate) const MEANING: &str = "The plugin's signature, for a tenant with `plugin_signers`: a JSON \
                                  object as `signature` of a change `put_plugin`";

/// The signature in these headers, if there is one.
///
/// # Errors
/// It is not such a document.
pub(crate) fn of(headers: &HeaderMap) -> Result<Option<PluginSignature>, Problem> {
    let invalid =
        |why: String| Problem::new(ErrorCode::InvalidRequest, format!("{SIGNATURE} {why}"));
    let Some(value) = headers.get(SIGNATURE) else { return Ok(None) };
    let keys: Map<String, Value> = serde_json::from_slice(value.as_bytes())
        .map_err(|_| invalid("must be a JSON object with the key signature".into()))?;
    let mut document = Document::new(keys);
    let signature = PluginSignature::read(&mut document);
    let faults = document.finish();
    match faults.is_empty() {
        true => Ok(signature),
        false => Err(invalid(format!("is wrong: {faults}"))),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_signature_is_a_json_object() {
        let read = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(SIGNATURE, HeaderValue::from_str(value).unwrap());
            of(&headers).map_err(|problem| problem.detail)
        };
        assert_eq!(of(&HeaderMap::new()).unwrap(), None);
        let signature = PluginSignature::of_file(vec![0]);
        assert_eq!(read(r#"{"signature": "AA=="}"#), Ok(Some(signature)));
        for (wrong, named) in [
            ("AA==", "must be a JSON object"),
            ("[]", "must be a JSON object"),
            ("{}", "signature is missing"),
            (r#"{"signature": "AA==", "payload": "?", "manifest": "AA=="}"#, "payload must be"),
        ] {
            let detail = read(wrong).unwrap_err();
            assert!(detail.contains(named) && detail.contains(SIGNATURE), "{detail}");
        }
    }
}
