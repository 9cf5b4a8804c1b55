//! One setting. Its flag, its variable, its key in the file and its documentation come from here.

/// A setting: its key in the file, from which flag and variable follow, and its meaning.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) key: &'static str,
    /// The value if none is given, as text. None if the setting is optional.
    pub(crate) default: Option<&'static str>,
    pub(crate) help: &'static str,
}
