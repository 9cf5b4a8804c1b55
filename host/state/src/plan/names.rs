//! Lists of names in messages.

use gristmill_core::Name;

/// "digits, ranker".
pub fn list<'a>(names: impl IntoIterator<Item = &'a Name>) -> String {
    let names: Vec<_> = names.into_iter().map(Name::as_str).collect();
    names.join(", ")
}
