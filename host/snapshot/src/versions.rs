//! Versions of a plugin, an asset or a model that are loaded beside the newest one.

use gristmill_core::Digest;

/// An earlier version that stays loaded.
#[derive(Clone)]
pub struct KeptVersion<T> {
    /// The digest of its file.
    pub digest: Digest,
    /// What was loaded, or why it is not loaded.
    pub loaded: Result<T, String>,
}

/// "versions 14 and 16 are loaded".
pub fn loaded_versions(versions: impl IntoIterator<Item = u64>) -> String {
    let mut versions: Vec<_> = versions.into_iter().collect();
    versions.sort_unstable();
    let last = versions.pop();
    let others: Vec<_> = versions.iter().map(u64::to_string).collect();
    match last {
        None => "no version is loaded".into(),
        Some(only) if others.is_empty() => format!("version {only} is loaded"),
        Some(last) => format!("versions {} and {last} are loaded", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_told_in_order() {
        assert_eq!(loaded_versions([]), "no version is loaded");
        assert_eq!(loaded_versions([7]), "version 7 is loaded");
        assert_eq!(loaded_versions([16, 9, 14]), "versions 9, 14 and 16 are loaded");
    }
}
