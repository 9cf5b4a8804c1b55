//! Compiled code in this process, and the names of its functions, for profiles.

use std::ops::Range;

/// Code that is not in a file that the system loaded, such as a compiled plugin. It must stay
/// loaded as long as this lives.
pub struct Code {
    /// Its name, which stands for its file.
    pub name: String,
    /// Its addresses in this process.
    pub addresses: Range<u64>,
    /// Shows its functions one by one, in any order. This is asked only if it was seen running.
    pub functions: Functions,
}

/// Shows functions one by one.
pub type Functions = Box<dyn Fn(&mut dyn FnMut(Function)) + Send>;

/// A function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its addresses in this process.
    pub addresses: Range<u64>,
    /// Its name, which may be mangled.
    pub name: String,
}
