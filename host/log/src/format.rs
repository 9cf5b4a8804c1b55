//! The formats of log lines.

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people: `name=value` after the message.
    Text,
    /// For programs: one JSON object a line.
    Json,
}
