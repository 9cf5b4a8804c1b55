//! Checking the texts of messages.

/// Fails unless `said` contains each text of `named`.
#[track_caller]
pub(crate) fn assert_names(said: &str, named: &[&str]) {
    for name in named {
        assert!(said.contains(name), "{name:?} is missing from:\n{said}");
    }
}
