//! `log`: lines in the request's span, within the call's log budget.
//!
//! The budget counts what reaches the log: the escaped text and what the host puts around it. A field is a field of
//! the line's own object: neither it nor the message can be taken for what the host says.

use gristmill_core::Name;
use gristmill_telemetry::{PLUGIN_TARGET, PluginFields, escaped_len};
use wasmtime::StoreContextMut;
use wasmtime::component::{ComponentType, Lift, Linker, WasmList, WasmStr};

use crate::bindings::log::Level;
use crate::call::CallState;

/// What a line costs beside its text: time, level, span.
const LINE_BYTES: usize = 256;

/// The longest message that is looked at, and the longest name or value of a field; the log cuts them further.
const MESSAGE_BYTES_MAX: usize = 8 << 10;
const FIELD_BYTES_MAX: usize = 2 << 10;

/// What the host reads of one field's name and value together; a longer field is dropped.
const FIELD_FUEL: usize = 64 << 10;

/// Fields of one line; further ones are dropped.
const FIELDS_MAX: usize = 32;

/// What a call may still log.
pub(crate) struct LogBudget {
    /// The plugin, as lines name it.
    plugin: Option<Name>,
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
        let message = message.to_str(&store)?;
        // A message costs what it made the host read, not only what is kept of it.
        let read_bytes = message.len();
        let message = cut(&message, MESSAGE_BYTES_MAX).to_owned();
        let mut object = PluginFields::default();
        let mut dropped = fields.len().saturating_sub(FIELDS_MAX);
        // Fields that are far too long are not even read.
        let fuel = store.hostcall_fuel();
        store.set_hostcall_fuel(FIELD_FUEL);
        for index in 0..fields.len().min(FIELDS_MAX) {
            let Some(field) = fields.get(&mut store, index) else { break };
            let Ok(Field { name, value }) = field else {
                dropped += 1;
                continue;
            };
            let (name, value) = (name.to_str(&store)?, value.to_str(&store)?);
            if !object.push(cut(&name, FIELD_BYTES_MAX), cut(&value, FIELD_BYTES_MAX)) {
                dropped += 1;
            }
        }
        store.set_hostcall_fuel(fuel);
        let log = &mut store.data_mut().log;
        let logged = escaped_len(&message) + object.as_str().len();
        if log.take(logged.max(read_bytes)) {
            log.emit(level, &message, (&object, dropped));
        }
        Ok(())
    };
    linker.instance("gristmill:plugin/log@0.1.0")?.func_wrap("write", write)
}

fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

impl LogBudget {
    pub(crate) fn new(plugin: Option<Name>, limit_bytes: usize) -> Self {
        Self { plugin, limit_bytes, left_bytes: Some(limit_bytes) }
    }

    fn plugin(&self) -> Option<&str> {
        self.plugin.as_ref().map(Name::as_str)
    }

    fn emit(&self, level: Level, message: &str, (fields, dropped): (&PluginFields, usize)) {
        macro_rules! emit {
            ($level:ident) => {
                tracing::event!(
                    target: PLUGIN_TARGET,
                    tracing::Level::$level,
                    plugin = self.plugin(),
                    fields_dropped = Some(dropped).filter(|dropped| *dropped > 0),
                    fields = Some(fields.as_str()).filter(|fields| fields.len() > 2),
                    "{message}"
                )
            };
        }
        match level {
            Level::Trace => emit!(TRACE),
            Level::Debug => emit!(DEBUG),
            Level::Info => emit!(INFO),
            Level::Warn => emit!(WARN),
            Level::Error => emit!(ERROR),
        }
    }

    fn is_open(&self) -> bool {
        self.left_bytes.is_some()
    }

    /// Take a line of `bytes` from the budget; false where it is too small. The first refusal says
    /// so in the log.
    fn take(&mut self, bytes: usize) -> bool {
        let left = self.left_bytes.and_then(|left| left.checked_sub(bytes + LINE_BYTES));
        if left.is_none() && self.is_open() {
            let (plugin, limit_bytes) = (self.plugin(), self.limit_bytes);
            tracing::warn!(
                plugin,
                limit_bytes,
                "plugin went over its log budget, further lines dropped"
            );
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
        let mut budget = LogBudget::new(None, 10 * LINE_BYTES);
        assert_eq!((0..1000).filter(|_| budget.take(0)).count(), 10);
        let mut budget = LogBudget::new(None, 1000);
        assert!(!budget.take(900));
        assert!(!budget.is_open() && !budget.take(0));
    }
}
