//! Log lines that land in the request's span on the host.

use crate::Field;
pub use crate::bindings::log::Level;

/// Log `message` with `fields`.
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
