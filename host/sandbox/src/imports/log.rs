//! `log`: lines in the request's span.

use std::fmt::Write as _;

use crate::bindings::log::{Host, Level};
use crate::bindings::types::Field;
use crate::call::CallState;

impl Host for CallState {
    fn write(&mut self, level: Level, message: String, fields: Vec<Field>) -> wasmtime::Result<()> {
        let len = |field: &Field| field.name.len() + field.value.len();
        if !self.may_log(message.len() + fields.iter().map(len).sum::<usize>()) {
            return Ok(());
        }
        let fields = fields.iter().fold(String::new(), |mut text, field| {
            let separator = if text.is_empty() { "" } else { " " };
            // Quoted and escaped: a guest cannot forge a line of its own.
            let _ = write!(text, "{separator}{:?}={:?}", field.name, field.value);
            text
        });
        let message = message.escape_debug();
        match level {
            Level::Trace => tracing::trace!(target: "plugin", fields, "{message}"),
            Level::Debug => tracing::debug!(target: "plugin", fields, "{message}"),
            Level::Info => tracing::info!(target: "plugin", fields, "{message}"),
            Level::Warn => tracing::warn!(target: "plugin", fields, "{message}"),
            Level::Error => tracing::error!(target: "plugin", fields, "{message}"),
        }
        Ok(())
    }
}
