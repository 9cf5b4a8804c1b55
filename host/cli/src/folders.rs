//! The folders of the user.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A variable that is set and not empty.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The folder that this variable of XDG names, otherwise `below` the home folder.
pub(crate) fn of_user(xdg: &str, below: &str) -> Option<PathBuf> {
    let of_home = || variable("HOME").map(|home| Path::new(&home).join(below));
    variable(xdg).map(PathBuf::from).or_else(of_home)
}
