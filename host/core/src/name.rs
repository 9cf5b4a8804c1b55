//! Names that people choose.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Maximum characters of a model's name.
const MODEL_LEN_MAX: usize = 128;

/// The name of a tenant, plugin, model or pipeline. Cheap to clone.
///
/// A parsed text has 1 to 64 of `a-z`, `0-9`, `-`, `_` and `.`, and begins with a letter or digit.
/// A [model's](Self::of_model) name has up to 128, and may have capitals, as in other servers. A
/// name of either kind is read from a document of this host.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Arc<str>);

/// A text that is not a [`Name`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// Not a name of a tenant, a plugin or a pipeline.
    #[error(
        "{0:?} is not a valid name: 1 to 64 of a-z, 0-9, '-', '_' and '.', beginning with a letter \
         or digit"
    )]
    Plain(String),
    /// Not a name of a model.
    #[error(
        "{0:?} is not a valid name of a model: 1 to 128 of A-Z, a-z, 0-9, '-', '_' and '.', \
         beginning with a letter or digit"
    )]
    Model(String),
}

impl Name {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of a model.
    ///
    /// # Errors
    /// [`InvalidName::Model`]
    pub fn of_model(text: &str) -> Result<Self, InvalidName> {
        match is_name(text, MODEL_LEN_MAX, |byte| byte.is_ascii_alphanumeric()) {
            true => Ok(Self(text.into())),
            false => Err(InvalidName::Model(shown(text))),
        }
    }

    /// Whether the names differ only in case. Some file systems take such names as one.
    pub fn is_like(&self, other: &Self) -> bool {
        self != other && self.0.eq_ignore_ascii_case(&other.0)
    }
}

fn is_name(text: &str, len_max: usize, is_alphanumeric: impl Fn(&u8) -> bool) -> bool {
    let is_sign = |byte: &u8| matches!(byte, b'-' | b'_' | b'.');
    let bytes = text.as_bytes();
    bytes.len() <= len_max
        && bytes.first().is_some_and(&is_alphanumeric)
        && bytes.iter().all(|byte| is_alphanumeric(byte) || is_sign(byte))
}

fn shown(text: &str) -> String {
    text.chars().take(MODEL_LEN_MAX + 16).collect()
}

impl FromStr for Name {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        match is_name(text, 64, |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9')) {
            true => Ok(Self(text.into())),
            false => Err(InvalidName::Plain(shown(text))),
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

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        Self::of_model(&text).map_err(serde::de::Error::custom)
    }
}

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

    #[test]
    fn a_models_name_may_have_capitals_and_be_longer() {
        for good in ["a", "ViT-B-16", "timm-ViT-B-16-image_encoder", "A.b", &"M".repeat(128)] {
            assert_eq!(Name::of_model(good).unwrap().as_str(), good);
        }
        for bad in ["", "-A", "..", "A/b", "A b", "Ä", "pipeline:A", &"M".repeat(129)] {
            assert!(Name::of_model(bad).is_err(), "{bad:?}");
        }
        let [small, large] = ["vit", "ViT"].map(|name| Name::of_model(name).unwrap());
        assert!(small.is_like(&large) && !small.is_like(&small));
    }
}
