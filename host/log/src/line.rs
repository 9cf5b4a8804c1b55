//! The format of a log line: one flat line, as text or as a JSON object.
//!
//! ```text
//! 2026-11-01T10:00:00Z  WARN gristmill_serve::pipeline: plugin failed stage=pre request_id=7f ..
//! {"timestamp":"2026-11-01T10:00:00Z","level":"WARN","target":"gristmill_serve::pipeline", ..}
//! ```
//!
//! Spans have no names here: they carry fields, and a line has all fields of the spans around it.
//! Some of the texts come from clients and plugins. So each text is cut, and is escaped so that it
//! cannot end its field or its line. A plugin's message is quoted like a field's value.

use std::fmt::{Debug, Write as _};
use std::sync::Arc;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use crate::format::LogFormat;
use crate::plugin::{OBJECT_BYTES_MAX, PLUGIN_TARGET};
use crate::queue::{Origin, Queue};
use crate::text::{CutText, Escape, is_plain};

/// The longest message, and the longest text of a field, in bytes before they are escaped.
const MESSAGE_BYTES_MAX: usize = 8 << 10;
const TEXT_BYTES_MAX: usize = 1 << 10;

/// The target of records of the `log` crate, and the names of their fields.
const FOREIGN_TARGET: &str = "log";
const FOREIGN_PREFIX: &str = "log.";

/// Makes lines of events.
pub(crate) struct LogLayer {
    format: LogFormat,
    coloured: bool,
    /// The modules whose lines are the server's own.
    own_modules: &'static [&'static str],
    queue: Arc<Queue>,
}

/// A span's fields, in the form that a line has.
struct SpanFields(String);

impl LogLayer {
    pub(crate) fn new(
        format: LogFormat,
        coloured: bool,
        own_modules: &'static [&'static str],
        queue: Arc<Queue>,
    ) -> Self {
        Self { format, coloured, own_modules, queue }
    }

    fn fields<'a>(&self, line: &'a mut String, is_plugins: bool) -> Fields<'a> {
        Fields { line, format: self.format, is_plugins }
    }

    fn origin_of(&self, target: &str) -> Origin {
        let within = |module: &&str| {
            let rest = target.strip_prefix(*module);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
        };
        match target {
            PLUGIN_TARGET => Origin::Plugin,
            _ if self.own_modules.iter().any(within) => Origin::Own,
            _ => Origin::Client,
        }
    }

    fn line<S>(&self, event: &Event<'_>, context: &Context<'_, S>) -> String
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        let metadata = event.metadata();
        let mut foreign = ForeignTarget(None);
        if metadata.target() == FOREIGN_TARGET {
            event.record(&mut foreign);
        }
        let target = foreign.0.as_deref().unwrap_or(metadata.target());
        let is_plugins = metadata.target() == PLUGIN_TARGET;
        let mut line = String::with_capacity(256);
        match self.format {
            LogFormat::Text => {
                write_time(&mut line);
                write_level(&mut line, *metadata.level(), self.coloured);
                line.push_str(target);
                line.push(':');
                event.record(&mut self.fields(&mut line, is_plugins));
                self.add_spans(&mut line, event, context);
            }
            LogFormat::Json => {
                line.push_str("{\"timestamp\":\"");
                write_time(&mut line);
                let level = metadata.level().as_str();
                let _ = write!(line, "\",\"level\":\"{level}\"");
                self.fields(&mut line, false).add_text("target", target);
                self.add_spans(&mut line, event, context);
                event.record(&mut self.fields(&mut line, is_plugins));
                line.push('}');
            }
        }
        line.push('\n');
        line
    }

    fn add_spans<S>(&self, line: &mut String, event: &Event<'_>, context: &Context<'_, S>)
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(SpanFields(fields)) = span.extensions().get() {
                line.push_str(fields);
            }
        }
    }
}

impl<S> Layer<S> for LogLayer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = String::new();
        attributes.record(&mut self.fields(&mut fields, false));
        if !fields.is_empty() {
            span.extensions_mut().insert(SpanFields(fields));
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut extensions = span.extensions_mut();
        let mut fields = extensions.remove().map_or_else(String::new, |SpanFields(fields)| fields);
        values.record(&mut self.fields(&mut fields, false));
        extensions.insert(SpanFields(fields));
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let origin = self.origin_of(event.metadata().target());
        self.queue.push(&self.line(event, &context), origin);
    }
}

/// Adds fields to a line: ` name=value` as text, `,"name":value` as JSON.
struct Fields<'a> {
    line: &'a mut String,
    format: LogFormat,
    /// Whether a plugin wrote the line. Then its message is quoted, and in JSON its field `fields`
    /// is an object already.
    is_plugins: bool,
}

impl Fields<'_> {
    /// Begin a field. Returns false if the line must not have it.
    fn begin(&mut self, name: &str) -> bool {
        if name.starts_with(FOREIGN_PREFIX) {
            return false;
        }
        match self.format {
            LogFormat::Text => {
                self.line.push(' ');
                if name != "message" {
                    self.line.push_str(name);
                    self.line.push('=');
                }
            }
            LogFormat::Json => {
                let start = self.line.len();
                let _ = write!(self.line, ",\"{name}\":");
                // An inner span has this field already. Quotes within values are escaped, so this
                // search finds names only.
                let (before, field) = self.line.split_at(start);
                if before.contains(&field[1..]) {
                    self.line.truncate(start);
                    return false;
                }
            }
        }
        true
    }

    fn add_text(&mut self, name: &str, text: &str) {
        if self.begin(name) {
            self.write_value(name, |out| out.write_str(text), is_plain(text));
        }
    }

    fn add_plain(&mut self, name: &str, value: impl std::fmt::Display) {
        if self.begin(name) {
            let _ = write!(self.line, "{value}");
        }
    }

    fn write_value(
        &mut self,
        name: &str,
        write: impl FnOnce(&mut CutText<'_>) -> std::fmt::Result,
        plain: bool,
    ) {
        let is_message = name == "message";
        let most = if is_message { MESSAGE_BYTES_MAX } else { TEXT_BYTES_MAX };
        let (escape, quote) = match self.format {
            LogFormat::Json => (Escape::Json, "\""),
            LogFormat::Text if is_message && !self.is_plugins || plain => (Escape::Controls, ""),
            LogFormat::Text => (Escape::Quoted, "\""),
        };
        self.line.push_str(quote);
        let mut cut = CutText::new(self.line, most, escape);
        let _ = write(&mut cut);
        cut.end();
        self.line.push_str(quote);
    }
}

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        if self.is_plugins && field.name() == "fields" {
            if value.len() > OBJECT_BYTES_MAX {
                self.add_text("fields", "[cut]");
            } else {
                self.add_plain("fields", value);
            }
            return;
        }
        self.add_text(field.name(), value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if self.begin(field.name()) {
            self.write_value(field.name(), |out| write!(out, "{value:?}"), false);
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add_plain(field.name(), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add_plain(field.name(), value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add_plain(field.name(), value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        if value.is_finite() {
            self.add_plain(field.name(), value);
        } else {
            self.add_text(field.name(), &value.to_string());
        }
    }
}

/// The original target of a record of the `log` crate.
struct ForeignTarget(Option<String>);

impl Visit for ForeignTarget {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "log.target" {
            self.0 = Some(value.to_owned());
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}

/// The time now, as lines have it: `2026-11-01T10:00:00.000000Z`.
pub fn timestamp() -> String {
    let mut text = String::with_capacity(32);
    write_time(&mut text);
    text
}

fn write_time(line: &mut String) {
    let _ = SystemTime.format_time(&mut Writer::new(line));
}

fn write_level(line: &mut String, level: Level, coloured: bool) {
    if !coloured {
        let _ = write!(line, " {:>5} ", level.as_str());
        return;
    }
    let colour = match level {
        Level::ERROR => 31,
        Level::WARN => 33,
        Level::INFO => 32,
        Level::DEBUG => 34,
        Level::TRACE => 35,
    };
    let _ = write!(line, " \x1b[{colour}m{:>5}\x1b[0m ", level.as_str());
}

#[cfg(test)]
mod tests;
