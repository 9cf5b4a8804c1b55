//! Which web pages of other origins may call a tenant: the part `cors` of its document.

use gristmill_core::Origins;
use gristmill_snapshot::Cors;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::release::candidate::header_name;
use crate::release::document::Document;
use crate::release::origins::read_origins;

/// Maximum names of headers.
const HEADERS_MAX: usize = 32;

/// Maximum of [`CorsSpec::max_age_s`]: a day. No browser keeps an answer for longer.
const MAX_AGE_S_MAX: u32 = 86_400;

/// Which web pages of other origins may call a tenant and read its answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Cors)]
#[serde(deny_unknown_fields)]
pub struct CorsSpec {
    /// The origins of the pages, as browsers send them, such as `https://app.example.com`; or `*`
    /// alone: all pages.
    #[schema(value_type = Vec<String>, max_items = 64)]
    pub origins: Origins,
    /// The headers that their requests may have, besides those that the API reads.
    #[schema(value_type = Option<Vec<String>>, max_items = 32)]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<String>,
    /// The seconds for which a browser may keep the answer to a preflight. If it is not given: 600.
    #[schema(minimum = 0, maximum = 86_400)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_age_s: Option<u32>,
}

impl CorsSpec {
    /// The value of the key `cors`.
    pub fn read(document: &mut Document) -> Option<Self> {
        let keys = document.object("cors")?;
        document.inside("cors.".into(), keys, |document| {
            let origins = read_origins(document, "origins");
            let origins = document.require("origins", origins);
            let headers = document.list("headers", |name| {
                let name = name.as_str().and_then(header_name).filter(|name| name != "*");
                name.ok_or_else(|| " must be the name of a header, and not *".to_owned())
            });
            let headers = headers.unwrap_or_default();
            if headers.len() > HEADERS_MAX {
                let text = format!(" has {}: the limit is {HEADERS_MAX}", headers.len());
                document.fault("headers", text);
            }
            let max_age_s = document.whole::<u32>("max_age_s");
            if let Some(age) = max_age_s.filter(|age| *age > MAX_AGE_S_MAX) {
                document
                    .fault("max_age_s", format_args!(" is {age}: must be 0 to {MAX_AGE_S_MAX}"));
            }
            Some(Self { origins: origins?, headers, max_age_s })
        })
    }

    /// What it says, with the defaults for what it does not say.
    pub fn policy(&self) -> Cors {
        let Self { origins, headers, max_age_s } = self.clone();
        Cors { origins, headers, max_age_s: max_age_s.unwrap_or(Cors::MAX_AGE_S) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(cors: Value) -> (Option<CorsSpec>, Vec<String>) {
        let Value::Object(keys) = json!({ "cors": cors }) else { unreachable!() };
        let mut document = Document::new(keys);
        let cors = CorsSpec::read(&mut document);
        (cors, document.finish().into_texts())
    }

    #[test]
    fn all_faults_are_named_at_once() {
        let (cors, faults) = read(json!({
            "origins": ["https://a.example", "https://A.example/", "null", "*"],
            "headers": ["X-Session", "a b", "x-\u{e4}", 7, "*"], "max_age_s": 86_401,
            "credentials": true,
        }));
        assert_eq!(cors.map(|cors| cors.headers), None);
        let named = [
            "cors.origins[1]: \"https://A.example/\" is not as browsers send it: write \
             \"https://a.example\"",
            "cors.origins[2]: \"null\" is the origin of every file",
            "cors.origins[3]: \"*\" stands for all origins: it must be alone",
            "cors.headers[1] must be the name of a header",
            "cors.headers[2] must be the name of a header",
            "cors.headers[3] must be the name of a header",
            "cors.headers[4] must be the name of a header",
            "cors.max_age_s is 86401: must be 0 to 86400",
            "cors: unknown key \"credentials\"; known are origins, headers, max_age_s",
        ];
        assert_eq!(faults.len(), named.len(), "{faults:#?}");
        for (fault, named) in faults.iter().zip(named) {
            assert!(fault.starts_with(named), "{named}: {fault}");
        }
    }

    #[test]
    fn origins_are_needed_and_bounded_in_number() {
        assert_eq!(read(json!({})).1, ["cors.origins is missing"]);
        assert_eq!(read(json!({ "origins": [7] })).1, ["cors.origins[0] must be text"]);
        let text = "cors.origins is \"*\": must be a list";
        assert_eq!(read(json!({ "origins": "*" })).1, [text]);
        let many: Vec<_> = (0..65).map(|at| format!("https://{at}.example")).collect();
        let text = "cors.origins: 65 origins are given: the limit is 64";
        assert_eq!(read(json!({ "origins": many })).1, [text]);
        let many: Vec<_> = (0..33).map(|at| format!("x-{at}")).collect();
        let text = "cors.headers has 33: the limit is 32";
        assert_eq!(read(json!({ "origins": [], "headers": many })).1, [text]);
        assert_eq!(read(json!(["*"])).1.len(), 1);
    }

    #[test]
    fn it_is_written_as_it_was_given() {
        let full = json!({
            "origins": ["https://b.example", "https://a.example"], "headers": ["x-session"],
            "max_age_s": 0,
        });
        for given_document in [full, json!({ "origins": ["*"] }), json!({ "origins": [] })] {
            let (cors, faults) = read(given_document.clone());
            assert_eq!(faults, [""; 0]);
            assert_eq!(serde_json::to_value(&cors).unwrap(), given_document);
            assert_eq!(serde_json::from_value::<Option<CorsSpec>>(given_document).unwrap(), cors);
        }
        assert_eq!(read(Value::Null), (None, Vec::new()));
        let (cors, _) = read(json!({ "origins": ["*"], "headers": ["X-Session"] }));
        let cors = cors.unwrap().policy();
        assert_eq!((cors.headers, cors.max_age_s), (vec!["x-session".to_owned()], 600));
    }
}
