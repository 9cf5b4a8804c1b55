//! `log`: lines are printed, and kept for the thread's test.

use std::cell::RefCell;

use super::types::Field;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

/// One line of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogLine {
    /// Severity.
    pub level: Level,
    /// The message.
    pub message: String,
    /// The fields, in the order in which they were given.
    pub fields: Vec<Field>,
}

thread_local! {
    static LINES: RefCell<Vec<LogLine>> = const { RefCell::new(Vec::new()) };
}

pub fn write(level: Level, message: &str, fields: &[Field]) {
    let shown: String =
        fields.iter().map(|field| format!(" {}={:?}", field.name, field.value)).collect();
    eprintln!("{level:?}: {message}{shown}");
    let line = LogLine { level, message: message.into(), fields: fields.to_vec() };
    LINES.with_borrow_mut(|lines| lines.push(line));
}

/// The lines that this thread wrote since it last asked.
pub(crate) fn take() -> Vec<LogLine> {
    LINES.take()
}
