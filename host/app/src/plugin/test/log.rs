//! The log lines of a request, collected to be shown beside its result.

use std::fmt::Debug;
use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use gristmill_telemetry::PLUGIN_TARGET;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// A log line.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) level: Level,
    /// The plugin that wrote it, or that it is about.
    pub(super) plugin: Option<String>,
    pub(super) message: String,
    pub(super) fields: Map<String, Value>,
}

/// The lines that were not taken yet. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct Lines(Arc<Mutex<Vec<Line>>>);

impl Lines {
    /// Collect the process's log lines from now on: all lines of plugins, and the host's warnings.
    pub(super) fn collect() -> Result<Self> {
        let lines = Self::default();
        tracing::subscriber::set_global_default(Collector(lines.clone()))
            .context("cannot collect log lines")?;
        Ok(lines)
    }

    /// The lines since the last call.
    pub(super) fn take(&self) -> Vec<Line> {
        take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Line>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Collector(Lines);

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let target = metadata.target();
        // `serve` logs each failure, which is shown as the request's result.
        let is_hosts = target.starts_with("gristmill_") && !target.starts_with("gristmill_serve");
        let is_shown = target == PLUGIN_TARGET || is_hosts && *metadata.level() <= Level::WARN;
        metadata.is_event() && is_shown
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line {
            level: *event.metadata().level(),
            plugin: None,
            message: String::new(),
            fields: Map::new(),
        };
        event.record(&mut line);
        self.0.lock().push(line);
    }

    /// No span is enabled, so that none needs an id of its own.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.message = value.to_owned(),
            "plugin" => self.plugin = Some(value.to_owned()),
            // The text of `PluginFields`, a JSON object.
            "fields" => match serde_json::from_str(value) {
                Ok(Value::Object(fields)) => self.fields.extend(fields),
                _ => drop(self.fields.insert("fields".into(), value.into())),
            },
            name => drop(self.fields.insert(name.to_owned(), value.into())),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_plugins_are_collected_at_every_level_and_of_the_host_from_warnings_on() {
        let lines = Lines::default();
        tracing::subscriber::with_default(Collector(lines.clone()), || {
            let fields = Some(r#"{"rows":"2"}"#);
            let plugin = Some("digits");
            tracing::trace!(target: "plugin", plugin, fields, "read {}", "it");
            tracing::info!(target: "gristmill_sandbox::engine", "of no interest");
            tracing::warn!(target: "gristmill_sandbox::engine", bytes = 7, "over the budget");
            tracing::warn!(target: "gristmill_serve::pipeline", "plugin failed");
            tracing::error!(target: "ort", "foreign");
        });
        let taken = lines.take();
        let [own, hosts] = &taken[..] else { panic!("{taken:?}") };
        assert_eq!((own.level, own.plugin.as_deref()), (Level::TRACE, Some("digits")));
        assert_eq!((own.message.as_str(), &own.fields["rows"]), ("read it", &Value::from("2")));
        assert_eq!(
            (hosts.message.as_str(), &hosts.fields["bytes"]),
            ("over the budget", &Value::from("7"))
        );
        assert!(lines.take().is_empty());
    }
}
