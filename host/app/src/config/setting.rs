//! One setting, as its flag, its variable, its key in the file and the documentation have it.

/// A setting: its key in the file, from which flag and variable follow, and its meaning.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) key: &'static str,
    /// The value where none is given, as text; none where the setting is optional.
    pub(crate) default: Option<&'static str>,
    pub(crate) help: &'static str,
}
