//! Checking the texts of messages.

/// Fails unless `said` contains each text of `named`.
#[track_caller]
pub(crate) fn assert_names(text: &str, named: &[&str]) {
    for name in named {
        assert!(text.contains(name), "{name:?} is missing from:\n{text}");
    }
}

/// Fails if `detail` has texts of the libraries that read documents.
#[track_caller]
pub(crate) fn assert_plain(detail: &str) {
    for word in ["serde", "deserialize", "struct", "expected", "`", "invalid type"] {
        assert!(!detail.contains(word), "{word:?} is in: {detail}");
    }
}
