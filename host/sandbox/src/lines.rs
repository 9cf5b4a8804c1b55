//! The last lines of plugins, kept for those who may see them.
//!
//! A line is what a plugin logs or prints, or what the host says about one of its calls. Owners
//! share nothing here but the room. A call that logs nothing takes no lock, and memory is taken as
//! lines come.
//!
//! Invariant: lines are bounded by plugin, by owner and in all (`kept`). An older line gives way to
//! a newer one.

mod kept;
mod line;

use std::sync::Arc;

use gristmill_core::{ByteBudget, HeldBytes, Name, OverBudget};
use gristmill_log::timestamp;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tracing::Level;

use self::kept::KEPT;
pub use self::kept::{AllLines, KEPT_LINES_MAX, KeptLines};
pub use self::line::Line;
use self::line::{Bounds, Ring};

/// The bounds on the lines of a request of its own: those of its two calls.
const OWN: Bounds = Bounds { lines: 2 * KEPT.lines, bytes: 2 * KEPT.bytes };

/// The longest message of a line.
const MESSAGE_BYTES_MAX: usize = 8 << 10;

/// The lines of one request, apart from those of others.
#[derive(Debug)]
pub struct OwnLines {
    ring: Mutex<Ring>,
    _held: HeldBytes,
}

impl OwnLines {
    /// Room for the lines of a request. All of it counts against `budget` from now on.
    ///
    /// # Errors
    /// The budget has no room for it.
    pub fn hold(budget: &Arc<ByteBudget>) -> Result<Arc<Self>, OverBudget> {
        let held = budget.hold(0);
        held.try_add(OWN.bytes)?;
        Ok(Arc::new(Self { ring: Mutex::default(), _held: held }))
    }

    /// The lines since the last call, in the order in which they came.
    pub fn take(&self) -> Vec<Line> {
        let lines = std::mem::take(&mut *self.ring.lock()).lines;
        lines.into_iter().map(|(_, line)| Arc::unwrap_or_clone(line)).collect()
    }
}

/// One call of a pipeline's plugin, as the source of lines.
#[derive(Debug)]
pub struct LineSource {
    /// The plugin.
    pub plugin: Name,
    /// The pipeline.
    pub pipeline: Name,
    /// `preprocess`, `postprocess` or `handle`.
    pub call: &'static str,
    /// The lines of its owner.
    pub kept: Arc<KeptLines>,
}

impl LineSource {
    /// Whether the plugin has logged the exception with which its call for this request ended. SDKs
    /// give such a line the field `uncaught`.
    pub fn has_told(&self, request_id: &Arc<str>) -> bool {
        let (lines, _) = self.kept.after(None, Some(&self.plugin), KEPT.lines);
        lines.iter().any(|line| {
            // The request itself, and no other one with the same id.
            line.call == self.call
                && Arc::ptr_eq(&line.request_id, request_id)
                && line.is_uncaught()
        })
    }

    /// Keep a line of the host about a call for this request.
    pub fn keep(&self, request_id: &Arc<str>, level: Level, message: &str) {
        self.kept.push(self.line(request_id, level, message));
    }

    fn line(&self, request_id: &Arc<str>, level: Level, message: &str) -> Line {
        Line {
            time: timestamp(),
            level,
            request_id: request_id.clone(),
            pipeline: self.pipeline.clone(),
            plugin: self.plugin.clone(),
            call: self.call,
            message: message[..message.floor_char_boundary(MESSAGE_BYTES_MAX)].into(),
            fields: None,
        }
    }
}

/// Where the lines of one call go, besides the host's log.
#[derive(Clone, Copy, Debug)]
pub struct Lines<'a> {
    /// The call.
    pub source: &'a Arc<LineSource>,
    /// The id of the request.
    pub request_id: &'a Arc<str>,
    /// The request's own lines, if they are collected.
    pub own_lines: Option<&'a Arc<OwnLines>>,
}

/// The same, for a call under way.
pub(crate) struct CallLines {
    source: Arc<LineSource>,
    request_id: Arc<str>,
    own_lines: Option<Arc<OwnLines>>,
}

impl From<Lines<'_>> for CallLines {
    fn from(Lines { source, request_id, own_lines }: Lines<'_>) -> Self {
        Self {
            source: source.clone(),
            request_id: request_id.clone(),
            own_lines: own_lines.cloned(),
        }
    }
}

impl CallLines {
    pub(crate) fn plugin(&self) -> &str {
        self.source.plugin.as_str()
    }

    /// Add a line. `fields` is a JSON object.
    pub(crate) fn push(&self, level: Level, message: &str, fields: Option<&str>) {
        let mut line = self.source.line(&self.request_id, level, message);
        line.fields = fields.and_then(|fields| RawValue::from_string(fields.into()).ok());
        if let Some(own_lines) = &self.own_lines {
            own_lines.ring.lock().push((0, line.clone().into()), OWN);
        }
        self.source.kept.push(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    #[test]
    fn a_call_has_told_why_it_failed_if_a_line_of_it_says_so() {
        let (plugin, pipeline, kept) = (name("plugin"), name("pipeline"), Arc::default());
        let pre = LineSource { plugin, pipeline, call: "preprocess", kept };
        let (plugin, pipeline, kept) = (name("plugin"), name("pipeline"), pre.kept.clone());
        let post = LineSource { plugin, pipeline, call: "postprocess", kept };
        let (pre, ids) = (Arc::new(pre), [Arc::<str>::from("id"), Arc::from("id")]);
        let push = |level, fields| {
            let lines = Lines { source: &pre, request_id: &ids[0], own_lines: None };
            CallLines::from(lines).push(level, "KeyError: 'x'", fields);
        };
        push(Level::ERROR, None);
        push(Level::ERROR, Some(r#"{"why":"uncaught"}"#));
        push(Level::INFO, Some(r#"{"uncaught":"true"}"#));
        assert!(!pre.has_told(&ids[0]));
        push(Level::ERROR, Some(r#"{"uncaught":"true","line":"3"}"#));
        assert!(pre.has_told(&ids[0]));
        assert!(!pre.has_told(&ids[1]) && !post.has_told(&ids[0]));
    }

    #[test]
    fn a_requests_own_lines_are_counted_before_they_come() {
        let budget = ByteBudget::new(OWN.bytes);
        let own_lines = OwnLines::hold(&budget).unwrap();
        assert_eq!(budget.held(), OWN.bytes);
        assert!(OwnLines::hold(&budget).is_err());
        let (plugin, pipeline) = (name("plugin"), name("pipeline"));
        let source = LineSource { plugin, pipeline, call: "postprocess", kept: Arc::default() };
        let (source, request_id) = (Arc::new(source), "id".into());
        let lines = Lines { source: &source, request_id: &request_id, own_lines: Some(&own_lines) };
        CallLines::from(lines).push(Level::WARN, "read", Some(r#"{"rows":"2"}"#));
        let taken = own_lines.take();
        assert_eq!((taken.len(), source.kept.last(&source.plugin, 9).len()), (1, 1));
        let mut line = serde_json::to_value(&taken[0]).unwrap();
        let time = line["time"].take();
        assert!(time.as_str().is_some_and(|time| time.ends_with('Z')), "{time}");
        let expected = serde_json::json!({
            "time": null, "level": "warn", "request_id": "id", "pipeline": "pipeline",
            "plugin": "plugin", "call": "postprocess", "message": "read",
            "fields": { "rows": "2" },
        });
        assert_eq!(line, expected);
        drop(own_lines);
        assert_eq!(budget.held(), 0);
    }
}
