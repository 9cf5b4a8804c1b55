//! The room for uploaded files that wait for a release.
//!
//! Invariant: a token whose scope is a few tenants fills an eighth of it at most, and all such
//! tokens together a half, so that none of them keeps others from uploading.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use gristmill_core::{ByteBudget, HeldBytes, Name};
use parking_lot::Mutex;

use crate::blob_error::BlobError;
use crate::blob_holder::Key;

/// The share of a token, and that of all tokens, as divisors of the whole.
const TOKEN_SHARE: usize = 8;
const TOKENS_SHARE: usize = 2;

/// The room of all files that wait.
pub(crate) struct BlobRoom {
    all: Arc<ByteBudget>,
    /// That of all tokens whose scope is a few tenants.
    tokens: Arc<ByteBudget>,
    /// That of each of them, while it holds something.
    by_token: Mutex<HashMap<Name, Weak<ByteBudget>>>,
    bytes_max: usize,
}

/// The room of one file.
pub(crate) struct HeldRoom {
    /// The largest one first.
    budgets: Vec<HeldBytes>,
    bytes_max: usize,
}

impl BlobRoom {
    pub(crate) fn new(bytes_max: usize) -> Self {
        let (all, tokens) = (ByteBudget::new(bytes_max), ByteBudget::new(bytes_max / TOKENS_SHARE));
        Self { all, tokens, by_token: Mutex::default(), bytes_max }
    }

    /// Room for `bytes` that are there already, of a file of `token`, if it has one.
    pub(crate) fn hold(&self, token: Option<&Name>, bytes: usize) -> HeldRoom {
        let mut budgets = vec![self.all.hold(bytes)];
        if let Some(token) = token {
            budgets.extend([self.tokens.hold(bytes), self.of(token).hold(bytes)]);
        }
        HeldRoom { budgets, bytes_max: self.bytes_max }
    }

    fn of(&self, token: &Name) -> Arc<ByteBudget> {
        let mut by_token = self.by_token.lock();
        if let Some(budget) = by_token.get(token).and_then(Weak::upgrade) {
            return budget;
        }
        by_token.retain(|_, budget| budget.strong_count() > 0);
        let new = ByteBudget::new(self.bytes_max / TOKEN_SHARE);
        by_token.insert(token.clone(), Arc::downgrade(&new));
        new
    }
}

impl HeldRoom {
    /// Count more bytes.
    ///
    /// # Errors
    /// There is no room for them. Nothing changes then.
    pub(crate) fn try_add(&self, more: usize) -> Result<(), BlobError> {
        for (index, budget) in self.budgets.iter().enumerate() {
            if let Err(over) = budget.try_add(more) {
                self.budgets[..index].iter().for_each(|budget| budget.give_back(more));
                let max = over.max;
                return Err(match index {
                    0 => BlobError::TooManyBytes { max },
                    1 => BlobError::TooManyOfTokens { max, of: self.bytes_max },
                    _ => BlobError::TooManyOfToken { max, of: self.bytes_max },
                });
            }
        }
        Ok(())
    }

    pub(crate) fn give_back(&self, bytes: usize) {
        self.budgets.iter().for_each(|budget| budget.give_back(bytes));
    }
}

/// Check that another file fits the limit `max`.
pub(crate) fn check_count<'a>(
    taken: impl Iterator<Item = &'a Key> + Clone,
    (token, _): &Key,
    max: usize,
    what: &'static str,
) -> Result<(), BlobError> {
    let refused = |max| Err(BlobError::TooMany(max, what));
    if taken.clone().count() >= max {
        return refused(max);
    }
    if token.is_some() {
        let of_tokens = taken.clone().filter(|(token, _)| token.is_some()).count();
        let of_token = taken.filter(|(other, _)| other == token).count();
        for (count, share) in [(of_tokens, TOKENS_SHARE), (of_token, TOKEN_SHARE)] {
            if count >= max / share {
                return refused(max / share);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::name;

    #[test]
    fn a_token_has_its_share_and_leaves_the_others_theirs() {
        let room = BlobRoom::new(800);
        let [a, b, c, d, e] = ["a", "b", "c", "d", "e"].map(name);
        let of = |token: &Name| room.hold(Some(token), 0);
        let first = of(&a);
        first.try_add(60).unwrap();
        let second = of(&a);
        assert!(matches!(second.try_add(41), Err(BlobError::TooManyOfToken { max: 100, of: 800 })));
        second.try_add(40).unwrap();
        let others = [&b, &c, &d].map(|token| {
            let held = of(token);
            held.try_add(100).unwrap();
            held
        });
        let last = of(&e);
        assert!(matches!(last.try_add(1), Err(BlobError::TooManyOfTokens { max: 400, of: 800 })));
        // What was refused counts nowhere.
        let server = room.hold(None, 0);
        server.try_add(400).unwrap();
        assert!(matches!(server.try_add(1), Err(BlobError::TooManyBytes { max: 800 })));
        drop((first, others));
        last.try_add(100).unwrap();
        second.give_back(40);
        assert_eq!((room.all.held(), room.tokens.held()), (500, 100));
        drop((second, last));
        drop(of(&b));
        assert_eq!(room.by_token.lock().len(), 1);
    }
}
