//! A line, and the last lines of one source.

use std::collections::VecDeque;
use std::sync::Arc;

use gristmill_core::Name;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tracing::Level;

/// The bounds on the lines of one source.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    pub(super) lines: usize,
    pub(super) bytes: usize,
}

/// A line.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// When it was logged, in the form of the server's log.
    pub time: String,
    /// In a document it is in lower case.
    #[serde(serialize_with = "lower_case")]
    pub level: Level,
    /// The id of the request.
    #[serde(serialize_with = "text")]
    pub request_id: Arc<str>,
    /// The request's pipeline.
    pub pipeline: Name,
    /// The plugin.
    pub plugin: Name,
    /// `preprocess`, `postprocess` or `handle`.
    pub call: &'static str,
    /// The text, as the plugin gave it. It may have any characters.
    pub message: String,
    /// The plugin's own fields: a JSON object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<Box<RawValue>>,
}

impl Line {
    /// The memory that it takes, in bytes.
    pub fn bytes(&self) -> usize {
        let fields = self.fields.as_ref().map_or(0, |fields| fields.get().len());
        size_of::<Self>() + self.time.len() + self.request_id.len() + self.message.len() + fields
    }

    /// Whether the plugin tells in it the exception with which its call ended.
    pub(super) fn is_uncaught(&self) -> bool {
        let fields = self.fields.as_ref().filter(|_| self.level == Level::ERROR);
        let Some(fields) = fields else { return false };
        let fields: Result<Map<String, Value>, _> = serde_json::from_str(fields.get());
        fields.is_ok_and(|fields| fields.contains_key("uncaught"))
    }
}

fn lower_case<S: Serializer>(level: &Level, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&level.as_str().to_lowercase())
}

fn text<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

/// The last lines, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Ring {
    /// Each with its number among the lines of its owner.
    pub(super) lines: VecDeque<(u64, Arc<Line>)>,
    pub(super) bytes: usize,
}

impl Ring {
    /// Add a line. Older lines give way first, so that there are never more than `most`.
    pub(super) fn push(&mut self, line: (u64, Arc<Line>), most: Bounds) {
        let bytes = line.1.bytes();
        while self.lines.len() >= most.lines || self.bytes + bytes > most.bytes {
            let Some((_, oldest)) = self.lines.pop_front() else { break };
            self.bytes -= oldest.bytes();
        }
        self.bytes += bytes;
        self.lines.push_back(line);
    }
}
