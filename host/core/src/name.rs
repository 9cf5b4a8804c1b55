//! Names that people choose.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::serde_as_text::serde_as_text;

/// The name of a tenant, plugin, model or pipeline: 1 to 64 of `a-z`, `0-9`, `-`, `_` and `.`,
/// beginning with a letter or digit. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Arc<str>);

/// A text that is not a [`Name`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a valid name: 1 to 64 of a-z, 0-9, '-', '_' and '.', beginning with a letter or digit"
)]
pub struct InvalidName(String);

impl Name {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let bytes = text.as_bytes();
        let valid = (1..=64).contains(&bytes.len())
            && bytes[0].is_ascii_alphanumeric()
            && bytes
                .iter()
                .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.'));
        if valid {
            Ok(Self(text.into()))
        } else {
            Err(InvalidName(text.chars().take(80).collect()))
        }
    }
}

impl std::borrow::Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

serde_as_text!(Name);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_plain() {
        for good in ["a", "acme", "acme-2", "9lives", "a.b_c"] {
            assert_eq!(good.parse::<Name>().unwrap().as_str(), good);
        }
        for bad in ["", "-a", ".", "..", "A", "a/b", "a b", "ä", &"a".repeat(65)] {
            assert!(bad.parse::<Name>().is_err(), "{bad:?}");
        }
    }
}
