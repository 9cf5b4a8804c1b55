//! Lists of origins of web pages in documents.

use gristmill_core::{OriginFault, Origins};

use crate::release::document::Document;

/// The value of a key, if it is given.
pub(crate) fn read_origins(document: &mut Document, key: &'static str) -> Option<Origins> {
    let texts = document.list(key, |item| {
        item.as_str().map(str::to_owned).ok_or_else(|| " must be text".to_owned())
    })?;
    match Origins::of(texts) {
        Ok(origins) => Some(origins),
        Err(faults) => {
            for OriginFault { index, error } in faults {
                let place = index.map(|index| format!("[{index}]")).unwrap_or_default();
                document.fault(&format!("{key}{place}"), format_args!(": {error}"));
            }
            None
        }
    }
}

/// The value of the key `redirects` of a tenant.
pub fn read_redirects(document: &mut Document) -> Origins {
    let redirects = read_origins(document, "redirects").unwrap_or_default();
    if redirects.is_any() {
        document.fault("redirects", ": \"*\" would lead clients to any page: name each origin");
    }
    redirects
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn each_origin_of_redirects_is_named() {
        let read = |redirects: Value| {
            let Value::Object(keys) = json!({ "redirects": redirects }) else { unreachable!() };
            let mut document = Document::new(keys);
            let redirects = read_redirects(&mut document);
            (redirects, document.finish().into_texts())
        };
        let (redirects, faults) = read(json!(["https://a.example"]));
        assert!(redirects.has_url("https://a.example/thanks") && faults.is_empty(), "{faults:?}");
        assert_eq!(read(Value::Null), (Origins::default(), Vec::new()));
        for (redirects, named) in [
            (json!(["*"]), "redirects: \"*\" would lead clients to any page: name each origin"),
            (
                json!(["https://a.example/thanks"]),
                "redirects[0]: \"https://a.example/thanks\" is not",
            ),
            (json!([7]), "redirects[0] must be text"),
            (json!("https://a.example"), "redirects is \"https://a.example\": must be a list"),
        ] {
            let (_, faults) = read(redirects);
            assert!(faults.len() == 1 && faults[0].starts_with(named), "{named}: {faults:?}");
        }
    }
}
