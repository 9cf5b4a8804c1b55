//! The rules for putting an admin token. Pure.

use gristmill_core::{KeyHash, Name};

use crate::desired::Desired;
use crate::error::StateError;
use crate::fault::Subject;
use crate::plan::names::list;
use crate::release::document::Faults;
use crate::release::token::{ROOT, TOKENS_MAX, TokenDocument, TokenSpec};

/// The token that `document` describes. A known token keeps its secret; `hash` is that of a new
/// one.
///
/// # Errors
/// All conflicts with `desired`.
pub(super) fn token_spec(
    desired: &Desired,
    token: &Name,
    document: &TokenDocument,
    hash: KeyHash,
) -> Result<TokenSpec, StateError> {
    let before = desired.tokens.get(token);
    let mut faults = Faults::default();
    if token.as_str() == ROOT {
        let text = format!("{ROOT:?} is the name of the token that the server is started with");
        faults.add("", text);
    }
    let missing: Vec<_> =
        document.tenants.iter().filter(|tenant| !desired.tenants.contains_key(*tenant)).collect();
    if !missing.is_empty() {
        faults.add("tenants", format!("tenants: there are no tenants {}", list(missing)));
    }
    if before.is_none() && desired.tokens.len() >= TOKENS_MAX {
        faults.add("", format!("there are {TOKENS_MAX} tokens, the limit: delete one first"));
    }
    match faults.is_empty() {
        true => Ok(document.clone().with(before.map_or(hash, |token| token.spec.hash))),
        false => Err(StateError::Document { subject: Subject::Token(token.clone()), faults }),
    }
}
