//! Log lines in the server's log, with the request they belong to.
//!
//! The output of `println!`, `eprintln!` and `dbg!` is lost: a plugin has no standard output.

use crate::Field;
pub use crate::bindings::log::Level;

/// Log `message` with `fields`. A call has a budget of bytes (`log_bytes`, 64 KiB unless its
/// pipeline says otherwise); lines beyond it are dropped, and one line says so.
///
/// ```no_run
/// use gristmill_plugin::log::{write, Level};
/// write(Level::Info, "slow path", &[("items", "120")]);
/// ```
pub fn write(level: Level, message: &str, fields: &[(&str, &str)]) {
    let field =
        |(name, value): &(&str, &str)| Field { name: (*name).into(), value: (*value).into() };
    let fields: Vec<_> = fields.iter().map(field).collect();
    crate::bindings::log::write(level, message, &fields);
}
