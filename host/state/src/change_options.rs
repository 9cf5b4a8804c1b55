//! What comes with a change besides its content.
//!
//! Invariant: a change is made only if its author's token is the same as when the call came, with
//! the same role and tenants, and has not ended. That is checked in the step that makes the
//! release, because an upload, a compilation and samples may come in between.

use std::time::SystemTime;

use gristmill_core::Name;

use crate::conditions::Conditions;
use crate::desired::{Desired, Token};
use crate::error::StateError;
use crate::release::change::ReleaseNote;
use crate::release::token::Role;
use crate::token_scope::TokenScope;

/// The options of a change: when it may be made, and what its author may change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeOptions {
    /// They must hold for the subject of the change.
    pub conditions: Conditions,
    /// The release keeps it.
    pub note: ReleaseNote,
    /// Whether the release is made without running samples.
    pub skips_samples: bool,
    /// What the author may change.
    pub token_scope: TokenScope,
    /// The author's token; none for the root token. It must not have been deleted, rotated or
    /// narrowed when the change is made.
    pub token: Option<TokenUse>,
}

/// A token as it was when a call came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenUse {
    /// Its name.
    pub name: Name,
    /// The release that brought its secret.
    pub version: u64,
}

impl ChangeOptions {
    /// Check that the token still allows what it allowed when the call came.
    ///
    /// # Errors
    /// [`StateError::TokenChanged`]
    pub fn check_token(&self, desired: &Desired, now: SystemTime) -> Result<(), StateError> {
        let Some(TokenUse { name, version }) = &self.token else { return Ok(()) };
        let is_same = |token: &&Token| {
            token.version == *version
                && !token.spec.has_ended(now)
                && token.spec.role != Role::Read
                && TokenScope::of(name, &token.spec) == self.token_scope
        };
        match desired.tokens.get(name).filter(is_same) {
            Some(_) => Ok(()),
            None => Err(StateError::TokenChanged),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use gristmill_core::KeyHash;

    use super::*;
    use crate::release::change::Change;
    use crate::release::token::TokenSpec;
    use crate::testing::{digest, name};

    #[test]
    fn a_token_that_was_changed_meanwhile_allows_nothing() {
        let spec = |role, tenant: &str, secret| TokenSpec {
            role,
            tenants: [name(tenant)].into(),
            expires_at_ms: Some(5000),
            hash: KeyHash::Plain(digest(secret)),
        };
        let put = |spec| Change::PutToken { token: name("ci"), spec };
        let first = spec(Role::Deploy, "acme", 1);
        let token_scope = TokenScope::of(&name("ci"), &first);
        let token = Some(TokenUse { name: name("ci"), version: 1 });
        let options = ChangeOptions { token_scope, token, ..ChangeOptions::default() };
        let check = |changes: &[Change], ms| {
            let mut desired = Desired::default();
            desired.apply(1, &[put(first.clone())]).unwrap();
            desired.apply(2, changes).unwrap();
            options.check_token(&desired, UNIX_EPOCH + Duration::from_millis(ms)).is_ok()
        };
        assert!(check(&[], 4999) && !check(&[], 5000));
        for changed in [
            put(spec(Role::Deploy, "acme", 2)),
            put(spec(Role::Deploy, "other", 1)),
            put(spec(Role::Read, "acme", 1)),
            Change::DeleteToken { token: name("ci") },
        ] {
            assert!(!check(&[changed], 0));
        }
        assert!(ChangeOptions::default().check_token(&Desired::default(), UNIX_EPOCH).is_ok());
    }
}
