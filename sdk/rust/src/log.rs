//! Log lines in the server's log, with the request they belong to.
//!
//! ```no_run
//! # let (count, path) = (120, "slow");
//! use gristmill_plugin::{info, warn};
//!
//! info!("took the {path} path");
//! warn!(items = count, ?path, "more items than usual");
//! ```
//!
//! The macros are [`trace!`](crate::trace), [`debug!`](crate::debug), [`info!`](crate::info),
//! [`warn!`](crate::warn) and [`error!`](crate::error). Before the message, which is a format
//! string, may stand fields: `name = value` and `name` take the value's `Display`, `name = ?value`
//! and `?name` its `Debug`. A call has a budget of bytes (`log_bytes`, 64 KiB unless its pipeline
//! says otherwise); lines beyond it are dropped, and one line says so.
//!
//! With the feature `log`, the macros of the `log` crate write here, too: those of a dependency,
//! for example. The `export_*` macros install it.

#[cfg(all(feature = "log", any(target_arch = "wasm32", test)))]
mod bridge;

#[cfg(all(feature = "log", target_arch = "wasm32"))]
pub(crate) use self::bridge::install;
use crate::Field;
pub use crate::bindings::log::Level;

/// Log `message` with `fields`. The macros are shorter.
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

/// Log at level `trace`: see [`log`](crate::log).
#[macro_export]
macro_rules! trace {
    ($($line:tt)+) => { $crate::__log!(Trace, [], $($line)+) };
}

/// Log at level `debug`: see [`log`](crate::log).
#[macro_export]
macro_rules! debug {
    ($($line:tt)+) => { $crate::__log!(Debug, [], $($line)+) };
}

/// Log at level `info`: see [`log`](crate::log).
#[macro_export]
macro_rules! info {
    ($($line:tt)+) => { $crate::__log!(Info, [], $($line)+) };
}

/// Log at level `warn`: see [`log`](crate::log).
#[macro_export]
macro_rules! warn {
    ($($line:tt)+) => { $crate::__log!(Warn, [], $($line)+) };
}

/// Log at level `error`: see [`log`](crate::log).
#[macro_export]
macro_rules! error {
    ($($line:tt)+) => { $crate::__log!(Error, [], $($line)+) };
}

/// Takes one field after the other; the rest is the message.
#[doc(hidden)]
#[macro_export]
macro_rules! __log {
    ($level:ident, [$($fields:tt)*], $name:ident = ?$value:expr, $($rest:tt)+) => {
        $crate::__log!($level, [$($fields)* ($name "{:?}" $value)], $($rest)+)
    };
    ($level:ident, [$($fields:tt)*], $name:ident = %$value:expr, $($rest:tt)+) => {
        $crate::__log!($level, [$($fields)* ($name "{}" $value)], $($rest)+)
    };
    ($level:ident, [$($fields:tt)*], $name:ident = $value:expr, $($rest:tt)+) => {
        $crate::__log!($level, [$($fields)* ($name "{}" $value)], $($rest)+)
    };
    ($level:ident, [$($fields:tt)*], ?$name:ident, $($rest:tt)+) => {
        $crate::__log!($level, [$($fields)* ($name "{:?}" $name)], $($rest)+)
    };
    ($level:ident, [$($fields:tt)*], %$name:ident, $($rest:tt)+) => {
        $crate::__log!($level, [$($fields)* ($name "{}" $name)], $($rest)+)
    };
    ($level:ident, [$($fields:tt)*], $name:ident, $($rest:tt)+) => {
        $crate::__log!($level, [$($fields)* ($name "{}" $name)], $($rest)+)
    };
    ($level:ident, [$(($name:ident $format:literal $value:expr))*], $($message:tt)+) => {
        $crate::log::write(
            $crate::log::Level::$level,
            &::std::format!($($message)+),
            &[$((::std::stringify!($name), &::std::format!($format, $value))),*],
        )
    };
}

#[cfg(test)]
mod tests {
    use super::Level;
    use crate::testing::{LogLine, take_log};

    fn line(level: Level, message: &str, fields: &[(&str, &str)]) -> LogLine {
        let field = |(name, value): &(&str, &str)| crate::Field {
            name: (*name).into(),
            value: (*value).into(),
        };
        LogLine { level, message: message.into(), fields: fields.iter().map(field).collect() }
    }

    #[test]
    fn a_line_has_its_level_its_message_and_its_fields() {
        let (items, name) = (120, "a \"b\"");
        crate::trace!("plain");
        crate::debug!("with {items} and {}", 1 + 1);
        crate::info!(items = items + 1, "slow path {name}");
        crate::warn!(items, ?name, text = ?name, shown = %name, "named {x}", x = 1);
        crate::error!(%name, "{}, {}", 1, 2);
        assert_eq!(
            take_log(),
            [
                line(Level::Trace, "plain", &[]),
                line(Level::Debug, "with 120 and 2", &[]),
                line(Level::Info, "slow path a \"b\"", &[("items", "121")]),
                line(
                    Level::Warn,
                    "named 1",
                    &[
                        ("items", "120"),
                        ("name", r#""a \"b\"""#),
                        ("text", r#""a \"b\"""#),
                        ("shown", "a \"b\""),
                    ]
                ),
                line(Level::Error, "1, 2", &[("name", "a \"b\"")]),
            ]
        );
        assert_eq!(take_log(), []);
    }
}
