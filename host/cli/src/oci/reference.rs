//! The name of an artifact in a registry: `oci://registry/repository:tag` or `...@sha256:...`.

use std::fmt;

use anyhow::{Result, bail, ensure};
use gristmill_core::Digest;

/// What the name of an artifact begins with.
const SCHEME: &str = "oci://";

/// Maximum characters of a tag, as the specification has them.
const TAG_CHARS_MAX: usize = 128;

const REPOSITORY_CHARS_MAX: usize = 255;

/// The name of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reference {
    /// Host, maybe with a port.
    pub(crate) registry: String,
    pub(crate) repository: String,
    pub(crate) version: Version,
}

/// Which artifact of a repository.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Version {
    /// The one that has this tag now.
    Tag(String),
    /// The one whose manifest has this digest.
    Digest(Digest),
}

impl Reference {
    /// The name, if the text is one of an artifact and not a path.
    ///
    /// # Errors
    /// It begins as a name, and is not one.
    pub(crate) fn of(text: &str) -> Result<Option<Self>> {
        let Some(name) = text.strip_prefix(SCHEME) else { return Ok(None) };
        let Some((registry, rest)) = name.split_once('/') else {
            bail!("{text:?} names no repository: must be oci://registry/repository:tag");
        };
        let is_plain = |text: &str, more: &[u8]| {
            let is_known = |byte: u8| byte.is_ascii_alphanumeric() || more.contains(&byte);
            !text.is_empty() && text.bytes().all(is_known)
        };
        ensure!(is_plain(registry, b".-:[]"), "{text:?}: {registry:?} is not a registry's host");
        let (rest, digest) = match rest.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest)),
            None => (rest, None),
        };
        let (repository, tag) = match rest.split_once(':') {
            Some((repository, tag)) => (repository, Some(tag)),
            None => (rest, None),
        };
        let is_part = |part: &str| {
            let ends = [part.bytes().next(), part.bytes().next_back()];
            let is_end = |byte: &Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
            is_plain(part, b"._-") && ends.iter().all(is_end)
        };
        let is_repository = repository.len() <= REPOSITORY_CHARS_MAX
            && repository.split('/').all(is_part)
            && !repository.bytes().any(|byte| byte.is_ascii_uppercase());
        ensure!(
            is_repository,
            "{text:?}: {repository:?} is not a repository: it has parts of a-z, 0-9, '.', '_' and \
             '-' between slashes"
        );
        let version = match (digest, tag) {
            (Some(digest), _) => Version::Digest(digest.parse()?),
            (None, Some(tag)) => {
                let is_tag = is_plain(tag, b"._-")
                    && tag.len() <= TAG_CHARS_MAX
                    && !tag.starts_with(['.', '-']);
                ensure!(is_tag, "{text:?}: {tag:?} is not a tag");
                Version::Tag(tag.to_owned())
            }
            (None, None) => bail!("{text:?} names no version: add :tag or @sha256:..."),
        };
        let (registry, repository) = (registry.to_owned(), repository.to_owned());
        Ok(Some(Self { registry, repository, version }))
    }

    /// The same artifact by the digest of its manifest.
    pub(crate) fn by_digest(&self, digest: Digest) -> Self {
        Self { version: Version::Digest(digest), ..self.clone() }
    }

    /// The last part of the repository, as a plugin's name.
    pub(crate) fn usual_name(&self) -> String {
        let last = self.repository.rsplit('/').next().unwrap_or_default();
        last.replace('_', "-")
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag(tag) => f.write_str(tag),
            Self::Digest(digest) => digest.fmt(f),
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { registry, repository, version } = self;
        let mark = if matches!(version, Version::Tag(_)) { ':' } else { '@' };
        write!(f, "{SCHEME}{registry}/{repository}{mark}{version}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_read_as_it_is_written() {
        let digest = Digest::of(b"").to_string();
        for text in [
            "oci://registry.example/acme/digits:1.2",
            "oci://localhost:5000/digits:latest",
            "oci://[::1]:5000/a/b-c/d_e.f:v1",
            &format!("oci://registry.example/digits@{digest}"),
        ] {
            assert_eq!(Reference::of(text).unwrap().unwrap().to_string(), *text);
        }
        let both = format!("oci://registry.example/a/my_digits:1@{digest}");
        let both = Reference::of(&both).unwrap().unwrap();
        assert_eq!(both.version, Version::Digest(Digest::of(b"")));
        assert_eq!(both.usual_name(), "my-digits");
        for path in ["digits.wasm", ".", "https://registry.example/digits:1"] {
            assert_eq!(Reference::of(path).unwrap(), None);
        }
    }

    #[test]
    fn other_names_are_refused() {
        for (text, named) in [
            ("oci://registry.example", "names no repository"),
            ("oci://user@registry.example/a:1", "is not a registry's host"),
            ("oci:///a:1", "is not a registry's host"),
            ("oci://registry.example/a", "names no version"),
            ("oci://registry.example/A:1", "is not a repository"),
            ("oci://registry.example/a/../b:1", "is not a repository"),
            ("oci://registry.example/a//b:1", "is not a repository"),
            ("oci://registry.example/a?b:1", "is not a repository"),
            ("oci://registry.example/a:", "is not a tag"),
            ("oci://registry.example/a:1/2", "is not a tag"),
            ("oci://registry.example/a@sha256:12", "is not a valid digest"),
        ] {
            let error = Reference::of(text).unwrap_err().to_string();
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}
