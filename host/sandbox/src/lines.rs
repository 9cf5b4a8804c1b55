//! The last lines of plugins, kept for those who may see them.
//!
//! A line is what a plugin logs or prints, or what the host says about one of its calls. Nothing
//! here is shared between owners. A call that logs nothing takes no lock, and memory is taken as
//! lines come.
//!
//! Invariant: of one owner, lines of at most [`PLUGINS_MAX`] plugins are kept, and of each plugin
//! no more than [`KEPT`] allows. An older line gives way to a newer one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use gristmill_core::{ByteBudget, HeldBytes, Name, OverBudget};
use gristmill_telemetry::timestamp;
use parking_lot::Mutex;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use tracing::Level;

/// The most lines that are kept of one plugin.
pub const KEPT_LINES_MAX: usize = 256;

/// The most lines of one plugin, and the most bytes that they take.
const KEPT: Bounds = Bounds { lines: KEPT_LINES_MAX, bytes: 64 << 10 };

/// The plugins of one owner of which lines are kept. If another one logs, the plugin that has been
/// silent for longest loses its lines.
const PLUGINS_MAX: usize = 16;

/// The bounds on the lines of a request of its own: those of its two calls.
const OWN: Bounds = Bounds { lines: 2 * KEPT.lines, bytes: 2 * KEPT.bytes };

/// The longest message of a line.
const MESSAGE_BYTES_MAX: usize = 8 << 10;

#[derive(Clone, Copy)]
struct Bounds {
    lines: usize,
    bytes: usize,
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
    /// `preprocess` or `postprocess`.
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
}

fn lower_case<S: Serializer>(level: &Level, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&level.as_str().to_lowercase())
}

fn text<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

/// The last lines of each plugin of one owner. They outlive versions of the plugin.
#[derive(Debug, Default)]
pub struct KeptLines(Mutex<Rings>);

#[derive(Debug, Default)]
struct Rings {
    /// The plugin that logged last is at the end.
    all: Vec<(Name, Ring)>,
    /// The number of the last line. Lines are numbered from the time of the first one, in
    /// microseconds, so that numbers grow over the server's end.
    last: u64,
}

impl KeptLines {
    /// The last lines of a plugin, at most `most` of them, in the order in which they came.
    pub fn last(&self, plugin: &Name, most: usize) -> Vec<Line> {
        let rings = self.0.lock();
        let ring = rings.all.iter().find(|(own, _)| own == plugin);
        let lines = ring.map(|(_, ring)| &ring.lines).into_iter().flatten();
        let surplus = ring.map_or(0, |(_, ring)| ring.lines.len().saturating_sub(most));
        lines.skip(surplus).map(|(_, line)| Line::clone(line)).collect()
    }

    /// Lines of all plugins, or of one, in the order in which they came: at most `most` of those
    /// after the line with the number `after`, or else the last `most`. Also the number of the last
    /// one of these, for the next call.
    pub fn after(
        &self,
        after: Option<u64>,
        plugin: Option<&Name>,
        most: usize,
    ) -> (Vec<Arc<Line>>, u64) {
        let is_later = |number: u64| after.is_none_or(|after| number > after);
        // Nothing is copied or sorted under the lock: serving threads wait for it.
        let (mut lines, last): (Vec<(u64, Arc<Line>)>, u64) = {
            let rings = self.0.lock();
            let is_asked = |(own, _): &&(Name, Ring)| plugin.is_none_or(|plugin| plugin == own);
            let lines = rings.all.iter().filter(is_asked).flat_map(|(_, ring)| &ring.lines);
            (lines.filter(|(number, _)| is_later(*number)).cloned().collect(), rings.last)
        };
        lines.sort_unstable_by_key(|(number, _)| *number);
        match after {
            Some(_) => lines.truncate(most),
            None => drop(lines.drain(..lines.len().saturating_sub(most))),
        }
        let next = lines.last().map_or(after.unwrap_or(last), |(number, _)| *number);
        (lines.into_iter().map(|(_, line)| line).collect(), next)
    }

    /// Forget the lines of plugins that the owner does not have any more.
    pub fn retain(&self, has: impl Fn(&Name) -> bool) {
        self.0.lock().all.retain(|(plugin, _)| has(plugin));
    }

    fn push(&self, line: Line) {
        let mut locked = self.0.lock();
        let Rings { all: rings, last } = &mut *locked;
        *last = if *last == 0 { now_us() } else { *last + 1 };
        match rings.iter().position(|(plugin, _)| *plugin == line.plugin) {
            Some(at) => rings[at..].rotate_left(1),
            None => {
                if rings.len() == PLUGINS_MAX {
                    rings.remove(0);
                }
                rings.push((line.plugin.clone(), Ring::default()));
            }
        }
        if let Some((_, ring)) = rings.last_mut() {
            ring.push((*last, line.into()), KEPT);
        }
    }
}

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

/// The last lines, the oldest first.
#[derive(Debug, Default)]
struct Ring {
    /// Each with its number among the lines of its owner.
    lines: VecDeque<(u64, Arc<Line>)>,
    bytes: usize,
}

impl Ring {
    /// Add a line. Older lines give way first, so that there are never more than `most`.
    fn push(&mut self, line: (u64, Arc<Line>), most: Bounds) {
        let bytes = line.1.bytes();
        while self.lines.len() >= most.lines || self.bytes + bytes > most.bytes {
            let Some((_, oldest)) = self.lines.pop_front() else { break };
            self.bytes -= oldest.bytes();
        }
        self.bytes += bytes;
        self.lines.push_back(line);
    }
}

/// Microseconds since 1970.
fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_micros() as u64
}

/// One call of a pipeline's plugin, as the source of lines.
#[derive(Debug)]
pub struct LineSource {
    /// The plugin.
    pub plugin: Name,
    /// The pipeline.
    pub pipeline: Name,
    /// `preprocess` or `postprocess`.
    pub call: &'static str,
    /// The lines of its owner.
    pub kept: Arc<KeptLines>,
}

impl LineSource {
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
    pub own: Option<&'a Arc<OwnLines>>,
}

/// The same, for a call under way.
pub(crate) struct CallLines {
    source: Arc<LineSource>,
    request_id: Arc<str>,
    own: Option<Arc<OwnLines>>,
}

impl From<Lines<'_>> for CallLines {
    fn from(Lines { source, request_id, own }: Lines<'_>) -> Self {
        Self { source: source.clone(), request_id: request_id.clone(), own: own.cloned() }
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
        if let Some(own) = &self.own {
            own.ring.lock().push((0, line.clone().into()), OWN);
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

    /// Keep a line of this plugin, with this message.
    fn keep(kept: &Arc<KeptLines>, plugin: &str, message: &str) {
        let (plugin, pipeline, kept) = (name(plugin), name("pipeline"), kept.clone());
        let source = LineSource { plugin, pipeline, call: "preprocess", kept };
        source.keep(&"id".into(), Level::INFO, message);
    }

    fn messages(kept: &KeptLines, plugin: &str, most: usize) -> Vec<String> {
        let lines = kept.last(&name(plugin), most);
        lines.into_iter().map(|line| line.message).collect()
    }

    #[test]
    fn the_last_lines_of_a_plugin_are_kept_up_to_their_number_and_their_bytes() {
        let kept = Arc::default();
        (0..1000).for_each(|number| keep(&kept, "short", &number.to_string()));
        let all = messages(&kept, "short", usize::MAX);
        let last: Vec<_> = (1000 - KEPT.lines..1000).map(|number| number.to_string()).collect();
        assert_eq!(all, last);
        assert_eq!(messages(&kept, "short", 2), ["998", "999"]);
        (0..100).for_each(|number| keep(&kept, "long", &number.to_string().repeat(2000)));
        let long = kept.last(&name("long"), usize::MAX);
        let bytes: usize = long.iter().map(Line::bytes).sum();
        assert!(bytes <= KEPT.bytes && bytes > KEPT.bytes - 2 * 4200, "{bytes}");
        assert_eq!(long.last().unwrap().message, "99".repeat(2000));
        assert_eq!(messages(&kept, "short", usize::MAX).len(), KEPT.lines);
    }

    #[test]
    fn lines_of_all_plugins_are_followed_in_their_order() {
        let kept = Arc::default();
        keep(&kept, "a", "1");
        keep(&kept, "b", "2");
        keep(&kept, "a", "3");
        let read = |after, plugin: Option<&str>, most| {
            let (lines, next) = kept.after(after, plugin.map(name).as_ref(), most);
            (lines.into_iter().map(|line| line.message.clone()).collect::<Vec<_>>(), next)
        };
        let (all, last) = read(None, None, 9);
        assert_eq!(all, ["1", "2", "3"]);
        assert_eq!(read(None, None, 2).0, ["2", "3"]);
        assert_eq!(read(None, Some("a"), 9).0, ["1", "3"]);
        assert_eq!(read(Some(last), None, 9), (vec![], last));
        let (first, next) = read(Some(0), None, 1);
        assert_eq!(first, ["1"]);
        assert_eq!(read(Some(next), None, 1).0, ["2"]);
        keep(&kept, "b", "4");
        assert_eq!(read(Some(last), None, 9), (vec!["4".to_owned()], last + 1));
    }

    #[test]
    fn the_plugin_that_was_silent_for_longest_gives_way() {
        let kept = Arc::default();
        (0..PLUGINS_MAX).for_each(|plugin| keep(&kept, &plugin.to_string(), "first"));
        keep(&kept, "0", "again");
        keep(&kept, "new", "first");
        assert_eq!(messages(&kept, "0", usize::MAX), ["first", "again"]);
        assert!(messages(&kept, "1", usize::MAX).is_empty());
        assert_eq!(messages(&kept, "2", usize::MAX), ["first"]);
        kept.retain(|plugin| *plugin == name("new"));
        assert!(messages(&kept, "2", usize::MAX).is_empty());
        assert_eq!(messages(&kept, "new", usize::MAX), ["first"]);
    }

    #[test]
    fn a_requests_own_lines_are_counted_before_they_come() {
        let budget = ByteBudget::new(OWN.bytes);
        let own = OwnLines::hold(&budget).unwrap();
        assert_eq!(budget.held(), OWN.bytes);
        assert!(OwnLines::hold(&budget).is_err());
        let (plugin, pipeline) = (name("plugin"), name("pipeline"));
        let source = LineSource { plugin, pipeline, call: "postprocess", kept: Arc::default() };
        let (source, request_id) = (Arc::new(source), "id".into());
        let lines = Lines { source: &source, request_id: &request_id, own: Some(&own) };
        CallLines::from(lines).push(Level::WARN, "read", Some(r#"{"rows":"2"}"#));
        let taken = own.take();
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
        drop(own);
        assert_eq!(budget.held(), 0);
    }
}
