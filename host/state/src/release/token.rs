//! An admin token in a release, and the token that people write.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gristmill_core::{KeyHash, Name};
use humantime::{format_rfc3339_millis, format_rfc3339_seconds, parse_rfc3339};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::release::document::{Document, Faults};
use crate::schema::NameText;

/// The name of the token that the server is started with. It is not in the log.
pub const ROOT: &str = "admin";

/// The most tokens of a server. The token of each call is compared with all of them.
pub const TOKENS_MAX: usize = 256;

/// The most tenants of a token.
const TENANTS_MAX: usize = 256;

/// The longest time for which a token can be valid, if it ends at all: ten years.
const EXPIRES_WITHIN: Duration = Duration::from_secs(10 * 366 * 24 * 3600);

/// The rights of a token's holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads everything but the tokens, and changes nothing.
    Read,
    /// Reads the tenants of the token, and changes their plugins, assets, pipelines and keys.
    Deploy,
    /// Does everything.
    Admin,
}

/// The roles, by the names that documents give them.
const ROLES: [(&str, Role); 3] =
    [("read", Role::Read), ("deploy", Role::Deploy), ("admin", Role::Admin)];

/// A token, as the log keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenSpec {
    /// What its holder may do.
    pub role: Role,
    /// The tenants of a token with the role `deploy`; empty for others.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tenants: BTreeSet<Name>,
    /// When it ends, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at_ms: Option<u64>,
    /// The hash of the secret.
    pub hash: KeyHash,
}

/// A token as people put it. Its secret is made by the server.
#[derive(Clone, Debug, PartialEq, Eq, ToSchema)]
#[schema(as = Token)]
pub struct TokenDocument {
    /// What its holder may do.
    pub role: Role,
    /// The tenants of a token with the role `deploy`, at least one; others have none.
    #[schema(value_type = Option<Vec<NameText>>, max_items = 256)]
    pub tenants: BTreeSet<Name>,
    /// When it ends: a time in UTC, such as `2027-01-01T00:00:00Z`, within ten years.
    #[schema(rename = "expires", value_type = Option<String>, format = DateTime)]
    pub expires_at_ms: Option<u64>,
}

impl Role {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        ROLES.iter().find(|(_, role)| *role == self).map_or("", |(name, _)| name)
    }
}

impl TokenSpec {
    /// Whether it has ended.
    pub fn has_ended(&self, now: SystemTime) -> bool {
        self.expires_at_ms.is_some_and(|end| end <= ms(now))
    }

    /// The document, in the form in which it can be put again.
    pub fn document(&self) -> Value {
        let mut document = json!({ "role": self.role });
        if self.role == Role::Deploy {
            document["tenants"] = json!(self.tenants);
        }
        if let Some(end) = self.expires_at_ms {
            document["expires"] = rfc3339(end).into();
        }
        document
    }
}

impl TokenDocument {
    /// Read the document with these `keys` at this time. `known` is the end that the token has.
    ///
    /// # Errors
    /// All faults.
    pub fn read(
        keys: Map<String, Value>,
        now: SystemTime,
        known_end: Option<u64>,
    ) -> Result<Self, Faults> {
        let mut document = Document::new(keys);
        let role = document.one_of("role", &ROLES);
        let role = document.require("role", role);
        let tenants = document.list("tenants", tenant);
        let count = tenants.as_deref().map_or(0, <[_]>::len);
        match role {
            Some(Role::Deploy) if tenants.is_none() => {
                document.require::<()>("tenants", None);
            }
            Some(Role::Deploy) if !(1..=TENANTS_MAX).contains(&count) => {
                let text = format!(" has {count} names: must have 1 to {TENANTS_MAX}");
                document.fault("tenants", text);
            }
            Some(Role::Read | Role::Admin) if count > 0 => {
                document.fault(
                    "tenants",
                    " is given, but only tokens with the role deploy have tenants",
                );
            }
            _ => {}
        }
        let expires = document.text("expires");
        let expires_at_ms = expires.and_then(|text| {
            let end = end(&text, now, known_end);
            end.map_err(|why| document.fault("expires", format_args!(" is {text:?}: {why}"))).ok()
        });
        let faults = document.finish();
        let tenants = tenants.unwrap_or_default().into_iter().collect();
        match role.filter(|_| faults.is_empty()) {
            Some(role) => Ok(Self { role, tenants, expires_at_ms }),
            None => Err(faults),
        }
    }

    /// The token with this secret.
    pub fn with(self, hash: KeyHash) -> TokenSpec {
        let Self { role, tenants, expires_at_ms } = self;
        TokenSpec { role, tenants, expires_at_ms, hash }
    }
}

fn tenant(item: &Value) -> Result<Name, String> {
    let text = item.as_str().ok_or_else(|| " must be a tenant's name".to_owned())?;
    text.parse().map_err(|error| format!(": {error}"))
}

/// The end of a token, in milliseconds. The error says what it must be.
fn end(text: &str, now: SystemTime, known_end: Option<u64>) -> Result<u64, &'static str> {
    let end = parse_rfc3339(text).ok().filter(|end| *end >= UNIX_EPOCH);
    let end = end.ok_or("must be a time in UTC, such as 2027-01-01T00:00:00Z")?;
    match ms(end) {
        end if known_end == Some(end) => Ok(end),
        end if end <= ms(now) => Err("it must be in the future"),
        end if end > ms(now + EXPIRES_WITHIN) => Err("must be within ten years"),
        end => Ok(end),
    }
}

fn ms(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// A time as documents have it.
pub fn rfc3339(ms: u64) -> String {
    let time = UNIX_EPOCH + Duration::from_millis(ms);
    match ms % 1000 {
        0 => format_rfc3339_seconds(time).to_string(),
        _ => format_rfc3339_millis(time).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::name;

    fn read(document: Value) -> Result<TokenDocument, String> {
        let Value::Object(keys) = document else { unreachable!() };
        let now = parse_rfc3339("2026-05-06T07:08:09Z").unwrap();
        let known_end = Some(ms(parse_rfc3339("2020-01-01T00:00:00Z").unwrap()));
        TokenDocument::read(keys, now, known_end).map_err(|faults| faults.into_texts().join("; "))
    }

    #[test]
    fn a_document_is_read_and_written() {
        let spec = |document: Value| {
            let spec =
                read(document.clone()).unwrap().with(KeyHash::Plain(crate::testing::digest(1)));
            assert_eq!(spec.document(), document);
            let again: TokenSpec = serde_json::from_value(json!(spec)).unwrap();
            assert_eq!(again, spec);
            spec
        };
        spec(json!({ "role": "admin" }));
        spec(json!({ "role": "read", "expires": "2026-05-06T07:08:09.001Z" }));
        let expired = spec(json!({ "role": "read", "expires": "2020-01-01T00:00:00Z" }));
        let now = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        assert!(expired.has_ended(now));
        let deploy = spec(json!({ "role": "deploy", "tenants": ["acme", "other"] }));
        assert_eq!(deploy.tenants, [name("acme"), name("other")].into());
        assert!(!deploy.has_ended(now));
    }

    #[test]
    fn all_faults_are_named() {
        for (document, expected) in [
            (json!({}), "role is missing"),
            (json!({ "role": "root" }), "role is \"root\": must be one of read, deploy, admin"),
            (json!({ "role": "deploy" }), "tenants is missing"),
            (json!({ "role": "deploy", "tenants": [] }), "tenants has 0 names: must have 1 to 256"),
            (
                json!({ "role": "admin", "tenants": ["acme"] }),
                "tenants is given, but only tokens with the role deploy have tenants",
            ),
            (
                json!({ "role": "deploy", "tenants": ["A"], "expires": "soon", "secret": "x" }),
                "tenants[0]: \"A\" is not a valid name: 1 to 64 of a-z, 0-9, '-', '_' and '.', \
                 beginning with a letter or digit; expires is \"soon\": must be a time in UTC, such \
                 as 2027-01-01T00:00:00Z; unknown key \"secret\"; known are role, tenants, expires",
            ),
            (
                json!({ "role": "read", "expires": "2026-05-06T07:08:09Z" }),
                "expires is \"2026-05-06T07:08:09Z\": it must be in the future",
            ),
            (
                json!({ "role": "read", "expires": "2037-01-01T00:00:00Z" }),
                "expires is \"2037-01-01T00:00:00Z\": must be within ten years",
            ),
        ] {
            assert_eq!(read(document).unwrap_err(), expected);
        }
    }
}
