//! The caller of the admin plane: the holder of a token.
//!
//! Tokens are in the release log, but for the one that the server was started with, the root token,
//! which always does everything. The token of a call is compared with all of them.
//!
//! Invariants:
//! - the time of a comparison does not depend on the token that came;
//! - that a token has ended is told only to the holder of its secret.

use std::collections::BTreeSet;
use std::time::SystemTime;

use gristmill_core::{ErrorCode, KeyHash, KeyHashes, Name};
use gristmill_snapshot::same_key;
use gristmill_state::{Desired, ROOT, Role, TokenScope, TokenUse};
use gristmill_transport::Problem;
use gristmill_transport::credentials::{self, KeyHasher};
use http::HeaderMap;

/// The beginning of each token of the log, so that it is recognised where it should not be.
const PREFIX: &str = "gmt_";

/// The holder of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    /// None for the root token.
    token: Option<TokenUse>,
    pub(crate) role: Role,
    /// Of the role `deploy`.
    pub(crate) tenants: BTreeSet<Name>,
    pub(crate) expires_at_ms: Option<u64>,
}

/// Why a call has no caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoCaller {
    /// It brings no token.
    Missing,
    /// No token is the one that it brings.
    Wrong,
    /// The token has ended.
    Ended(Name),
}

/// Recognises and makes tokens.
#[derive(Clone, Debug)]
pub(crate) struct Tokens {
    /// The hash of the root token.
    pub(crate) root: KeyHash,
    pub(crate) hasher: KeyHasher,
}

impl Tokens {
    /// The caller whose token is in these headers.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn caller(
        &self,
        desired: &Desired,
        headers: &HeaderMap,
        now: SystemTime,
    ) -> Result<Caller, NoCaller> {
        let token = credentials::bearer(headers).filter(|token| !token.is_empty());
        let hashes = self.hasher.hashes(token.ok_or(NoCaller::Missing)?);
        let mut caller = Err(NoCaller::Wrong);
        for (name, token) in &*desired.tokens {
            if !same_key(&token.spec.hash, &hashes) {
                continue;
            }
            caller = match token.spec.has_ended(now) {
                true => Err(NoCaller::Ended(name.clone())),
                false => Ok(Caller {
                    token: Some(TokenUse { name: name.clone(), version: token.version }),
                    role: token.spec.role,
                    tenants: token.spec.tenants.clone(),
                    expires_at_ms: token.spec.expires_at_ms,
                }),
            };
        }
        if same_key(&self.root, &hashes) {
            caller = Ok(Caller::root());
        }
        caller
    }

    /// Whether this is a key that callers of the admin plane have.
    pub(crate) fn has(&self, desired: &Desired, key: &KeyHashes) -> bool {
        let mut tokens = desired.tokens.values();
        same_key(&self.root, key) || tokens.any(|token| same_key(&token.spec.hash, key))
    }

    /// The secret of a new token, and its hash.
    ///
    /// # Errors
    /// The system has no randomness.
    pub(crate) fn new_secret(&self) -> Result<(String, KeyHash), Problem> {
        let secret = credentials::new_key(PREFIX);
        let secret = secret.map_err(|error| {
            let detail = format!("cannot read randomness for a token: {error}");
            Problem::new(ErrorCode::Internal, detail)
        })?;
        let hash = self.hasher.hash(&secret);
        Ok((secret, hash))
    }
}

impl Caller {
    /// The holder of the root token.
    pub(crate) fn root() -> Self {
        let (token, expires_at_ms) = (None, None);
        Self { token, role: Role::Admin, tenants: BTreeSet::new(), expires_at_ms }
    }

    /// The name of the token.
    pub(crate) fn name(&self) -> &str {
        self.token.as_ref().map_or(ROOT, |token| token.name.as_str())
    }

    /// The token of the log, as it is now.
    pub(crate) fn token(&self) -> Option<&TokenUse> {
        self.token.as_ref()
    }

    /// The part of the server that the caller sees, and changes if the role allows changes.
    pub(crate) fn token_scope(&self) -> TokenScope {
        match (&self.token, self.role) {
            (Some(TokenUse { name, .. }), Role::Deploy) => {
                TokenScope::Tenants { token: name.clone(), tenants: self.tenants.clone() }
            }
            _ => TokenScope::Server,
        }
    }

    /// Whether its token still allows what it allowed.
    pub(crate) fn is_still_valid(&self, desired: &Desired, now: SystemTime) -> bool {
        let Some(TokenUse { name, version }) = &self.token else { return true };
        desired.tokens.get(name).is_some_and(|token| {
            token.version == *version
                && !token.spec.has_ended(now)
                && TokenScope::of(name, &token.spec) == self.token_scope()
        })
    }

    /// The token whose changes are counted, because its holder is not an operator.
    pub(crate) fn guest(&self) -> Option<&Name> {
        let token = self.token.as_ref().filter(|_| self.role == Role::Deploy);
        token.map(|token| &token.name)
    }
}

impl From<NoCaller> for Problem {
    fn from(error: NoCaller) -> Self {
        let (code, detail) = match error {
            NoCaller::Missing => {
                let detail = "an admin token is needed: Authorization: Bearer <token>";
                (ErrorCode::Unauthenticated, detail.into())
            }
            NoCaller::Wrong => (ErrorCode::Forbidden, "this is not an admin token".into()),
            NoCaller::Ended(name) => {
                let detail = format!(
                    "the token {:?} has expired: someone with the role admin can give it another \
                     end",
                    name.as_str()
                );
                (ErrorCode::Forbidden, detail)
            }
        };
        Self::new(code, detail)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use gristmill_state::{Change, TokenSpec};
    use http::HeaderValue;
    use http::header::AUTHORIZATION;

    use super::*;

    #[test]
    fn a_token_is_recognised_until_it_ends() {
        let tokens = Tokens {
            root: credentials::plain_hash("the-root-token-1"),
            hasher: KeyHasher::new(&[1; 32]),
        };
        let (secret, hash) = tokens.new_secret().unwrap();
        assert!(secret.starts_with("gmt_"));
        let name: Name = "ci".parse().unwrap();
        let tenants = BTreeSet::from(["acme".parse().unwrap()]);
        let spec = TokenSpec {
            role: Role::Deploy,
            tenants: tenants.clone(),
            expires_at_ms: Some(5000),
            hash,
        };
        let mut desired = Desired::default();
        desired.apply(1, &[Change::PutToken { token: name.clone(), spec }]).unwrap();
        let caller = |token: Option<&str>, ms| {
            let mut headers = HeaderMap::new();
            let value =
                token.map(|token| HeaderValue::try_from(format!("Bearer {token}")).unwrap());
            headers.extend(value.map(|value| (AUTHORIZATION, value)));
            tokens.caller(&desired, &headers, UNIX_EPOCH + Duration::from_millis(ms))
        };
        let ci = caller(Some(&secret), 4999).unwrap();
        assert_eq!((ci.name(), ci.role, ci.guest()), ("ci", Role::Deploy, Some(&name)));
        assert_eq!(ci.token_scope(), TokenScope::Tenants { token: name.clone(), tenants });
        let end = UNIX_EPOCH + Duration::from_millis(5000);
        assert!(ci.is_still_valid(&desired, UNIX_EPOCH) && !ci.is_still_valid(&desired, end));
        assert!(!ci.is_still_valid(&Desired::default(), UNIX_EPOCH));
        assert_eq!(caller(Some(&secret), 5000), Err(NoCaller::Ended(name)));
        let root = caller(Some("the-root-token-1"), 9999).unwrap();
        assert_eq!(
            (root.name(), root.role, root.token_scope()),
            ("admin", Role::Admin, TokenScope::Server)
        );
        assert!(root.is_still_valid(&Desired::default(), end));
        assert_eq!(caller(Some("another-token-12"), 0), Err(NoCaller::Wrong));
        assert_eq!(caller(Some(""), 0), Err(NoCaller::Missing));
        assert_eq!(caller(None, 0), Err(NoCaller::Missing));
        assert!(tokens.has(&desired, &tokens.hasher.hashes(&secret)));
        assert!(tokens.has(&desired, &tokens.hasher.hashes("the-root-token-1")));
        assert!(!tokens.has(&desired, &tokens.hasher.hashes("another-token-12")));
    }
}
