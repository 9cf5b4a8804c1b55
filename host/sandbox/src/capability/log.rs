//! `log`: lines in the request's span, within the call's log budget.
//!
//! The budget counts what reaches the log: the escaped text and what the host puts around it.

use std::fmt::Write as _;

use wasmtime::StoreContextMut;
use wasmtime::component::{ComponentType, Lift, Linker, WasmList, WasmStr};

use crate::bindings::log::Level;
use crate::call::CallState;

/// What a line costs beside its text: time, level, span.
const LINE_BYTES: usize = 256;

/// The longest message, and the longest name or value of a field, in bytes; the rest is cut.
const MESSAGE_BYTES_MAX: usize = 8 << 10;
const FIELD_BYTES_MAX: usize = 1 << 10;

/// Fields of one line; further ones are dropped.
const FIELDS_MAX: usize = 32;

/// What a call may still log.
pub(crate) struct LogBudget {
    limit_bytes: usize,
    /// None once the budget was too small for a line.
    left_bytes: Option<usize>,
}

/// A field of a line, where it lies in the guest's memory.
#[derive(ComponentType, Lift)]
#[component(record)]
struct Field {
    name: WasmStr,
    value: WasmStr,
}

/// `write` is linked by hand: it reads no more of the guest's memory than it logs.
pub(super) fn link(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    let write = |mut store: StoreContextMut<'_, CallState>,
                 (level, message, fields): (Level, WasmStr, WasmList<Field>)| {
        if !store.data().log.is_open() {
            return Ok(());
        }
        let message = escaped(&message.to_str(&store)?, MESSAGE_BYTES_MAX);
        let mut text = String::new();
        for index in 0..fields.len().min(FIELDS_MAX) {
            let Some(field) = fields.get(&mut store, index) else { break };
            let Field { name, value } = field?;
            let separator = if text.is_empty() { "" } else { " " };
            // Quoted and escaped: a guest cannot forge a line of its own.
            let name = escaped(&name.to_str(&store)?, FIELD_BYTES_MAX);
            let value = escaped(&value.to_str(&store)?, FIELD_BYTES_MAX);
            let _ = write!(text, "{separator}\"{name}\"=\"{value}\"");
        }
        if fields.len() > FIELDS_MAX {
            let _ = write!(text, " [{} fields dropped]", fields.len() - FIELDS_MAX);
        }
        if store.data_mut().log.take(message.len() + text.len()) {
            emit(level, &message, &text);
        }
        Ok(())
    };
    linker.instance("gristmill:plugin/log@0.1.0")?.func_wrap("write", write)
}

fn emit(level: Level, message: &str, fields: &str) {
    match level {
        Level::Trace => tracing::trace!(target: "plugin", fields, "{message}"),
        Level::Debug => tracing::debug!(target: "plugin", fields, "{message}"),
        Level::Info => tracing::info!(target: "plugin", fields, "{message}"),
        Level::Warn => tracing::warn!(target: "plugin", fields, "{message}"),
        Level::Error => tracing::error!(target: "plugin", fields, "{message}"),
    }
}

/// The text with its control characters and quotes escaped, at most `max` bytes of it.
fn escaped(text: &str, max: usize) -> String {
    let (kept, cut) = match text.len() > max {
        true => (&text[..text.floor_char_boundary(max)], " [cut]"),
        false => (text, ""),
    };
    let mut escaped = String::with_capacity(kept.len() + cut.len());
    escaped.extend(kept.escape_debug());
    escaped + cut
}

impl LogBudget {
    pub(crate) fn new(limit_bytes: usize) -> Self {
        Self { limit_bytes, left_bytes: Some(limit_bytes) }
    }

    fn is_open(&self) -> bool {
        self.left_bytes.is_some()
    }

    /// Take a line of `bytes` from the budget; false where it is too small. The first refusal says
    /// so in the log.
    fn take(&mut self, bytes: usize) -> bool {
        let left = self.left_bytes.and_then(|left| left.checked_sub(bytes + LINE_BYTES));
        if left.is_none() && self.is_open() {
            let limit_bytes = self.limit_bytes;
            tracing::warn!(limit_bytes, "plugin went over its log budget, further lines dropped");
        }
        self.left_bytes = left;
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_lines_cost_something_and_a_budget_that_is_gone_stays_gone() {
        let mut budget = LogBudget::new(10 * LINE_BYTES);
        assert_eq!((0..1000).filter(|_| budget.take(0)).count(), 10);
        let mut budget = LogBudget::new(1000);
        assert!(!budget.take(900));
        assert!(!budget.is_open() && !budget.take(0));
    }

    #[test]
    fn what_is_escaped_counts_as_it_is_logged() {
        assert_eq!(escaped("a\"b\n", 100), "a\\\"b\\n");
        assert_eq!(escaped(&"\u{1}".repeat(8), 4).len(), 4 * "\\u{1}".len() + " [cut]".len());
        assert_eq!(escaped("ää", 3), "ä [cut]");
    }
}
