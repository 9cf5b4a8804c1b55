//! The changes that are under way with each token of a tenant's own people, which are bounded: an
//! upload takes a connection and a part of the disk while it arrives.

use std::collections::HashMap;
use std::sync::Arc;

use gristmill_core::{ErrorCode, Name};
use gristmill_transport::Problem;
use parking_lot::Mutex;

/// Maximum changes that are under way with one token.
const CHANGES_MAX: usize = 8;

/// The number of changes under way, by token.
#[derive(Clone, Debug, Default)]
pub(crate) struct Busy(Arc<Mutex<HashMap<Name, usize>>>);

/// A change under way, until this is dropped.
#[derive(Debug)]
pub(crate) struct UnderWay {
    busy: Busy,
    token: Name,
}

impl Busy {
    /// Begin a change with this token.
    ///
    /// # Errors
    /// The token has as many as it may.
    pub(crate) fn begin(&self, token: &Name) -> Result<UnderWay, Problem> {
        let mut counts = self.0.lock();
        let count = counts.entry(token.clone()).or_default();
        if *count >= CHANGES_MAX {
            let name = token.as_str();
            let detail = format!(
                "{CHANGES_MAX} changes are under way with the token {name:?}, the limit: try again \
                 when one has ended"
            );
            return Err(Problem::new(ErrorCode::TokenBusy, detail));
        }
        *count += 1;
        Ok(UnderWay { busy: self.clone(), token: token.clone() })
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut counts = self.busy.0.lock();
        if let Some(count) = counts.get_mut(&self.token) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.token);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_a_few_changes_and_others_have_theirs() {
        let (busy, ci): (_, Name) = (Busy::default(), "ci".parse().unwrap());
        let mut changes: Vec<_> = (0..CHANGES_MAX).map(|_| busy.begin(&ci).unwrap()).collect();
        assert_eq!(busy.begin(&ci).unwrap_err().code, ErrorCode::TokenBusy);
        drop(busy.begin(&"other".parse().unwrap()).unwrap());
        changes.pop();
        changes.push(busy.begin(&ci).unwrap());
        drop(changes);
        assert!(busy.0.lock().is_empty());
    }
}
