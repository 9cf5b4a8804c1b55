//! `log`: lines in the request's span, within the call's log budget.
//!
//! The budget counts the bytes that reach the log: the escaped text and what the host adds. A
//! plugin's fields are in a separate object in the line. So neither they nor the message can be
//! mistaken for text of the host.
//!
//! Of the lines that a budget has no room for, the last one at level warn or error is kept aside,
//! cut like any other. It is logged if the call fails: it says why, as a panic's message does. The
//! host reads only so many bytes for this, because the budget does not count them.

use std::sync::Arc;

use gristmill_log::{PLUGIN_TARGET, PluginFields, escaped_len};
use parking_lot::Mutex;
use wasmtime::StoreContextMut;
use wasmtime::component::{ComponentType, Lift, Linker, WasmList, WasmStr};

use crate::call::CallState;
use crate::grant::{Grant, PerCall};
use crate::lines::CallLines;

mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        interfaces: "import gristmill:plugin/log@0.3.0;",
        imports: { default: trappable },
        with: { "gristmill:plugin/types": crate::capability::types::wit },
    });
}

pub(crate) use self::bindings::gristmill::plugin::log::Level;

pub(crate) const INTERFACE: &str = "gristmill:plugin/log@0.3.0";

/// The interface that it links.
pub(crate) const INTERFACES: &[&str] = &[INTERFACE];

/// The cost of a line beside its text, in bytes: time, level, span.
const LINE_BYTES: usize = 256;

/// The longest message that is logged, and the longest name or value of a field that is read. The
/// log cuts them further.
const MESSAGE_BYTES_MAX: usize = 8 << 10;
const FIELD_BYTES_MAX: usize = 9 << 10;

/// The bytes of lines about trouble that are read when the budget is used up.
const ASIDE_BYTES_MAX: usize = 1 << 20;

/// The bytes that the host reads of one field's name and value together; a longer field is dropped.
const FIELD_FUEL: usize = 64 << 10;

/// Maximum fields of a line. Further ones are dropped.
const FIELDS_MAX: usize = 32;

/// The log of a call: its own, or shared with the call's standard output and standard error.
pub(crate) enum CapabilityState {
    Own(Log),
    Shared(Arc<Mutex<Log>>),
}

/// The lines of a call, within its budget.
pub(crate) struct Log {
    /// Where they go, besides the host's log. None after the call.
    lines: Option<CallLines>,
    limit_bytes: usize,
    /// None after the budget was too small for a line.
    left_bytes: Option<usize>,
    /// The last line about trouble that the budget had no room for.
    last_words: Option<(Level, String)>,
    /// The bytes of such lines that are still read.
    aside_bytes: usize,
}

/// The content of one line.
struct Line<'a> {
    message: &'a str,
    fields: &'a PluginFields,
    /// The number of dropped fields.
    dropped: usize,
}

/// A field of a line, where it lies in the guest's memory.
#[derive(ComponentType, Lift)]
#[component(record)]
struct Field {
    name: WasmStr,
    value: WasmStr,
}

/// The call's log budget is that of its limits.
impl PerCall for CapabilityState {
    fn grant(grant: &Grant<'_>) -> Self {
        Self::Own(Log::new(grant.lines.map(CallLines::from), grant.limits.log_bytes))
    }

    fn end(&mut self, failed: bool) {
        self.with(|log| {
            if failed {
                log.say_last_words();
            }
            log.lines = None;
        });
    }

    fn renew(&mut self, grant: &Grant<'_>) {
        let lines = grant.lines.map(CallLines::from);
        self.with(|log| *log = Log::new(lines, grant.limits.log_bytes));
    }
}

pub(crate) fn link<S: AsMut<CapabilityState> + Send + 'static>(
    linker: &mut Linker<CallState<S>>,
) -> wasmtime::Result<()> {
    link_as(INTERFACE, linker)
}

/// Link `write` under the name `interface`. This is done by hand, so that it reads only as much of
/// the guest's memory as it logs.
pub(super) fn link_as<S: AsMut<CapabilityState> + Send + 'static>(
    interface: &str,
    linker: &mut Linker<CallState<S>>,
) -> wasmtime::Result<()> {
    let write = |mut store: StoreContextMut<'_, CallState<S>>,
                 (level, message, fields): (Level, WasmStr, WasmList<Field>)| {
        let state = store.data_mut().states.as_mut();
        let (is_open, takes) = state.with(|log| (log.is_open(), log.takes(level)));
        if !takes {
            return Ok(());
        }
        let message = message.to_str(&store)?;
        // A message costs all that the host read of it, not only the part that is logged.
        let read_bytes = message.len();
        let message = cut(&message, MESSAGE_BYTES_MAX).to_owned();
        if !is_open {
            let state = store.data_mut().states.as_mut();
            state.with(|log| log.keep_aside(level, &message, read_bytes));
            return Ok(());
        }
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
        let logged = escaped_len(&message) + object.as_str().len();
        store.data_mut().states.as_mut().with(|log| match log.take(logged.max(read_bytes)) {
            true => log.emit(level, &Line { message: &message, fields: &object, dropped }),
            false => log.keep_aside(level, &message, read_bytes),
        });
        Ok(())
    };
    linker.instance(interface)?.func_wrap("write", write)
}

/// Link `write` under the names `interfaces`, so that each line goes to `take`, without its fields.
pub(crate) fn link_lines<T: Send + 'static>(
    linker: &mut Linker<T>,
    interfaces: &[&str],
    take: impl Fn(&mut T, Level, &str) + Copy + Send + Sync + 'static,
) -> wasmtime::Result<()> {
    let write = move |mut store: StoreContextMut<'_, T>,
                      (level, message, _): (Level, WasmStr, WasmList<Field>)| {
        let message = cut(&message.to_str(&store)?, MESSAGE_BYTES_MAX).to_owned();
        take(store.data_mut(), level, &message);
        Ok(())
    };
    for interface in interfaces {
        linker.instance(interface)?.func_wrap("write", write)?;
    }
    Ok(())
}

fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

impl CapabilityState {
    fn with<R>(&mut self, use_log: impl FnOnce(&mut Log) -> R) -> R {
        match self {
            Self::Own(log) => use_log(log),
            Self::Shared(log) => use_log(&mut log.lock()),
        }
    }

    /// The log, for other writers of the same call.
    pub(super) fn share(&mut self) -> Arc<Mutex<Log>> {
        let shared = match self {
            Self::Shared(log) => log.clone(),
            Self::Own(log) => Arc::new(Mutex::new(std::mem::replace(log, Log::new(None, 0)))),
        };
        *self = Self::Shared(shared.clone());
        shared
    }
}

impl Log {
    fn new(lines: Option<CallLines>, limit_bytes: usize) -> Self {
        Self {
            lines,
            limit_bytes,
            left_bytes: Some(limit_bytes),
            last_words: None,
            aside_bytes: ASIDE_BYTES_MAX,
        }
    }

    fn plugin(&self) -> Option<&str> {
        self.lines.as_ref().map(CallLines::plugin)
    }

    fn emit(&self, level: Level, line: &Line<'_>) {
        let Line { message, fields, dropped } = *line;
        let fields = Some(fields.as_str()).filter(|fields| fields.len() > 2);
        macro_rules! emit {
            ($level:ident) => {{
                tracing::event!(
                    target: PLUGIN_TARGET,
                    tracing::Level::$level,
                    plugin = self.plugin(),
                    fields_dropped = Some(dropped).filter(|dropped| *dropped > 0),
                    fields,
                    "{message}"
                );
                if let Some(lines) = &self.lines {
                    lines.push(tracing::Level::$level, message, fields);
                }
            }};
        }
        match level {
            Level::Trace => emit!(TRACE),
            Level::Debug => emit!(DEBUG),
            Level::Info => emit!(INFO),
            Level::Warn => emit!(WARN),
            Level::Error => emit!(ERROR),
        }
    }

    /// Log one line that the plugin wrote to a stream.
    pub(super) fn line(&mut self, level: Level, text: &str) {
        let message = cut(text, MESSAGE_BYTES_MAX);
        match self.is_open() && self.take(escaped_len(message)) {
            true => self.emit_text(level, message),
            false => self.keep_aside(level, message, text.len()),
        }
    }

    fn emit_text(&self, level: Level, message: &str) {
        self.emit(level, &Line { message, fields: &PluginFields::default(), dropped: 0 });
    }

    fn is_open(&self) -> bool {
        self.left_bytes.is_some()
    }

    /// Whether a line of this level is of use: the budget is not used up, or it is about trouble.
    pub(super) fn takes(&self, level: Level) -> bool {
        self.is_open() || self.aside_bytes > 0 && matches!(level, Level::Warn | Level::Error)
    }

    /// Keep a line that the budget has no room for, if it is about trouble.
    fn keep_aside(&mut self, level: Level, message: &str, read_bytes: usize) {
        if self.takes(level) {
            self.aside_bytes = self.aside_bytes.saturating_sub(read_bytes + LINE_BYTES);
            self.last_words = Some((level, message.to_owned()));
        }
    }

    fn say_last_words(&mut self) {
        if let Some((level, message)) = self.last_words.take() {
            self.emit_text(level, &message);
        }
    }

    /// Take a line of `bytes` from the budget. Returns false where the budget is too small; the
    /// first such refusal is logged.
    fn take(&mut self, bytes: usize) -> bool {
        let left = self.left_bytes.and_then(|left| left.checked_sub(bytes + LINE_BYTES));
        if left.is_none() && self.is_open() {
            const OVER: &str = "plugin went over its log budget, further lines dropped";
            let (plugin, limit_bytes) = (self.plugin(), self.limit_bytes);
            tracing::warn!(plugin, limit_bytes, "{OVER}");
            if let Some(lines) = &self.lines {
                lines.push(tracing::Level::WARN, OVER, None);
            }
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
        let mut budget = Log::new(None, 10 * LINE_BYTES);
        assert_eq!((0..1000).filter(|_| budget.take(0)).count(), 10);
        let mut budget = Log::new(None, 1000);
        assert!(!budget.take(900));
        assert!(!budget.is_open() && !budget.take(0));
    }

    #[test]
    fn lines_about_trouble_are_read_for_a_while_when_the_budget_is_gone() {
        let mut log = Log::new(None, 0);
        log.line(Level::Info, "none");
        assert!(log.last_words.is_none() && !log.is_open());
        let read = (0..100_000).filter(|_| {
            let takes = log.takes(Level::Error);
            log.line(Level::Error, "");
            takes
        });
        assert_eq!(read.count(), ASIDE_BYTES_MAX / LINE_BYTES);
        assert!(log.last_words.is_some());
    }
}
