//! A plugin, an asset or a model as a pipeline names it: `digits`, or one version of it,
//! `digits@16`.

use std::fmt;
use std::str::FromStr;

use gristmill_core::{InvalidName, Name};
use serde::{Deserialize, Serialize};

/// The name of a plugin, an asset or a model, and the version that is meant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NamedVersion {
    /// The name.
    pub name: Name,
    /// The release that brought the version. If it is not given: the newest version.
    pub version: Option<u64>,
}

/// A text that names no version of anything.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidNamedVersion {
    /// It is not a name.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// The text after the `@` is not a version.
    #[error(
        "{0:?} names no version: give the number of the release that brought it, as in \"digits@16\""
    )]
    Version(String),
}

impl NamedVersion {
    /// The newest version.
    pub fn newest(name: Name) -> Self {
        Self { name, version: None }
    }

    /// A model, or a version of one.
    ///
    /// # Errors
    /// The text names no version of a model.
    pub fn of_model(text: &str) -> Result<Self, InvalidNamedVersion> {
        read(text, Name::of_model)
    }
}

fn read(
    text: &str,
    name_of: fn(&str) -> Result<Name, InvalidName>,
) -> Result<NamedVersion, InvalidNamedVersion> {
    let Some((name, version)) = text.split_once('@') else {
        return Ok(NamedVersion::newest(name_of(text)?));
    };
    // One spelling for each version: the log must not keep "+16" or "016".
    let number = version.parse().ok().filter(|number: &u64| number.to_string() == version);
    let invalid = || InvalidNamedVersion::Version(text.chars().take(80).collect());
    let number = number.filter(|number| *number > 0).ok_or_else(invalid)?;
    Ok(NamedVersion { name: name_of(name)?, version: Some(number) })
}

impl FromStr for NamedVersion {
    type Err = InvalidNamedVersion;

    fn from_str(text: &str) -> Result<Self, InvalidNamedVersion> {
        read(text, Name::from_str)
    }
}

impl fmt::Display for NamedVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.version {
            Some(version) => write!(f, "{}@{version}", self.name),
            None => self.name.fmt(f),
        }
    }
}

/// From a document of this host, in which it may be a plugin's or a model's.
impl TryFrom<String> for NamedVersion {
    type Error = InvalidNamedVersion;

    fn try_from(text: String) -> Result<Self, InvalidNamedVersion> {
        Self::of_model(&text)
    }
}

impl From<NamedVersion> for String {
    fn from(named: NamedVersion) -> Self {
        named.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_has_one_spelling() {
        for good in ["digits", "digits@1", "a.b-c@18446744073709551615"] {
            assert_eq!(good.parse::<NamedVersion>().unwrap().to_string(), good);
        }
        for bad in ["", "@1", "digits@", "digits@0", "digits@01", "digits@+1", "a@1@2", "a@x", "A"]
        {
            assert!(bad.parse::<NamedVersion>().is_err(), "{bad:?}");
        }
        assert_eq!(NamedVersion::of_model("ViT-B-16@7").unwrap().to_string(), "ViT-B-16@7");
    }
}
