//! Words that a BPE took apart lately, with their tokens: taking them apart anew is most of the
//! time of a short text.
//!
//! The library's own cache belongs to the thread, never forgets a word, and outlives the model.
//!
//! Invariant: the memory is bounded and counts for the tokenizer from the begin. A new word takes
//! the place of an old one, so no client's words keep out those of others.

use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;

use tokenizers::Token;

use crate::limits::{KEPT_BYTES_MAX, KEPT_WORD_BYTES_MAX, KEPT_WORDS};

/// The memory that it takes at most, in bytes.
pub(crate) const BYTES: usize = KEPT_WORDS * (KEPT_BYTES_MAX + size_of::<Place>());

/// Words and their tokens. Each word has one place, which other words may have, too.
pub(crate) struct Words {
    /// Nobody outside can tell which words share a place.
    hasher: RandomState,
    places: Box<[Place]>,
}

type Place = Mutex<Option<Kept>>;

struct Kept {
    word: Box<str>,
    tokens: Box<[Token]>,
}

impl Words {
    pub(crate) fn new() -> Self {
        let places = (0..KEPT_WORDS).map(|_| Mutex::new(None)).collect();
        Self { hasher: RandomState::new(), places }
    }

    /// The tokens of a word: those that are kept, or those that `make` gives. Waits for no other
    /// thread.
    pub(crate) fn tokens<E>(
        &self,
        word: &str,
        make: impl FnOnce() -> Result<Vec<Token>, E>,
    ) -> Result<Vec<Token>, E> {
        if word.len() > KEPT_WORD_BYTES_MAX {
            return make();
        }
        let place = &self.places[self.hasher.hash_one(word) as usize % KEPT_WORDS];
        if let Ok(kept) = place.try_lock()
            && let Some(kept) = kept.as_ref()
            && &*kept.word == word
        {
            return Ok(kept.tokens.to_vec());
        }
        let tokens = make()?;
        if bytes_of(word, &tokens) <= KEPT_BYTES_MAX
            && let Ok(mut kept) = place.try_lock()
        {
            *kept = Some(Kept { word: word.into(), tokens: tokens.clone().into() });
        }
        Ok(tokens)
    }
}

fn bytes_of(word: &str, tokens: &[Token]) -> usize {
    let texts: usize = tokens.iter().map(|token| token.value.len()).sum();
    word.len() + size_of_val(tokens) + texts
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_word_is_taken_apart_once_unless_it_is_long_or_has_many_tokens() {
        let words = Words::new();
        let made = Cell::new(0);
        let tokens = |word: &str, count: u32| {
            let make = || {
                made.set(made.get() + 1);
                let token = |id| Token::new(id, word.to_owned(), (0, word.len()));
                Ok::<_, ()>((0..count).map(token).collect())
            };
            words.tokens(word, make).unwrap()
        };
        let long = "x".repeat(KEPT_WORD_BYTES_MAX + 1);
        for (word, count, times) in [("one", 2, 1), ("many", 1000, 3), (&*long, 1, 3)] {
            made.set(0);
            for _ in 0..3 {
                let ids: Vec<_> = tokens(word, count).iter().map(|token| token.id).collect();
                assert_eq!(ids, (0..count).collect::<Vec<_>>());
            }
            assert_eq!(made.get(), times, "{word}");
        }
    }

    #[test]
    fn new_words_take_the_places_of_old_ones_and_errors_are_not_kept() {
        let words = Words::new();
        assert_eq!(words.tokens("0", || Err(7)), Err(7));
        // Each has the one token of its own number, whoever had its place.
        for _ in 0..2 {
            for number in 0..4 * KEPT_WORDS as u32 {
                let word = number.to_string();
                let make = || Ok::<_, i32>(vec![Token::new(number, word.clone(), (0, 1))]);
                assert_eq!(words.tokens(&word, make).unwrap()[0].id, number);
            }
        }
        let last = (4 * KEPT_WORDS - 1).to_string();
        assert!(words.tokens(&last, || Err(())).is_ok());
    }
}
