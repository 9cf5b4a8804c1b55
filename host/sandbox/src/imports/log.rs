//! `log`: lines in the request's span.

use gristmill_telemetry::{PLUGIN_TARGET, PluginFields};

use crate::bindings::log::{Host, Level};
use crate::bindings::types::Field;
use crate::call::CallState;

impl Host for CallState {
    fn write(&mut self, level: Level, message: String, fields: Vec<Field>) -> wasmtime::Result<()> {
        let len = |field: &Field| field.name.len() + field.value.len();
        if !self.may_log(message.len() + fields.iter().map(len).sum::<usize>()) {
            return Ok(());
        }
        // An object of the line's own: a guest cannot forge a field of the host's.
        let mut object = PluginFields::default();
        for Field { name, value } in &fields {
            if !object.push(name, value) {
                break;
            }
        }
        let fields = Some(object.as_str()).filter(|fields| fields.len() > 2);
        match level {
            Level::Trace => tracing::trace!(target: PLUGIN_TARGET, fields, "{message}"),
            Level::Debug => tracing::debug!(target: PLUGIN_TARGET, fields, "{message}"),
            Level::Info => tracing::info!(target: PLUGIN_TARGET, fields, "{message}"),
            Level::Warn => tracing::warn!(target: PLUGIN_TARGET, fields, "{message}"),
            Level::Error => tracing::error!(target: PLUGIN_TARGET, fields, "{message}"),
        }
        Ok(())
    }
}
