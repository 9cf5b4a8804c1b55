//! The lines that are kept: of each plugin, of each owner, and of all owners together.
//!
//! Invariants:
//! - of one owner, lines of at most [`PLUGINS_MAX`] plugins are kept, and of each plugin no more
//!   than [`KEPT`] allows;
//! - the lines of all owners take at most the bytes of [`AllLines`]. If they take more, the owners
//!   that have been silent for longest lose theirs.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

use gristmill_core::Name;
use parking_lot::Mutex;

use super::line::{Bounds, Line, Ring};

/// Maximum lines that are kept of one plugin.
pub const KEPT_LINES_MAX: usize = 256;

/// Maximum lines of one plugin, and the most bytes that they take.
pub(super) const KEPT: Bounds = Bounds { lines: KEPT_LINES_MAX, bytes: 64 << 10 };

/// The plugins of one owner of which lines are kept. If another one logs, the plugin that has been
/// silent for longest loses its lines.
const PLUGINS_MAX: usize = 16;

/// The bytes that the lines of all owners take.
const BYTES_MAX: usize = 64 << 20;

/// If they take more, this part of them is given up at once, because that looks at all owners.
const GIVEN_UP: usize = 8;

/// The lines of all owners.
#[derive(Debug)]
pub struct AllLines {
    max: usize,
    bytes: AtomicUsize,
    owners: Mutex<Vec<Weak<KeptLines>>>,
    /// The number of lines that came.
    count: AtomicU64,
}

impl Default for AllLines {
    fn default() -> Self {
        Self::new(BYTES_MAX)
    }
}

impl AllLines {
    /// Room for lines of so many bytes.
    fn new(max: usize) -> Self {
        let (bytes, owners, count) = Default::default();
        Self { max, bytes, owners, count }
    }

    /// Room for the lines of one more owner.
    pub fn of_one(self: &Arc<Self>) -> Arc<KeptLines> {
        let kept = Arc::new(KeptLines { rings: Mutex::default(), all: self.clone() });
        let mut owners = self.owners.lock();
        if owners.len() == owners.capacity() {
            owners.retain(|owner| owner.strong_count() > 0);
        }
        owners.push(Arc::downgrade(&kept));
        kept
    }

    /// The bytes that all lines take.
    fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Give up lines of those who have been silent for longest, if there are too many.
    fn make_room(&self) {
        if self.bytes() <= self.max {
            return;
        }
        // Another thread does it already.
        let Some(owners) = self.owners.try_lock() else { return };
        let owners: Vec<_> = owners.iter().filter_map(Weak::upgrade).collect();
        let mut by_age: Vec<_> =
            owners.iter().map(|owner| (owner.rings.lock().last_came, owner)).collect();
        by_age.sort_unstable_by_key(|(came, _)| *came);
        for (_, owner) in by_age {
            if self.bytes() <= self.max - self.max / GIVEN_UP {
                return;
            }
            owner.retain(|_| false);
        }
    }
}

/// The last lines of each plugin of one owner. They outlive versions of the plugin.
#[derive(Debug)]
pub struct KeptLines {
    rings: Mutex<Rings>,
    all: Arc<AllLines>,
}

#[derive(Debug, Default)]
struct Rings {
    /// The plugin that logged last is at the end.
    all: Vec<(Name, Ring)>,
    /// The number of the last line. Lines are numbered from the time of the first one, in
    /// microseconds, so that numbers grow over the server's end.
    last: u64,
    /// The number of the last line among those of all owners.
    last_came: u64,
}

impl Default for KeptLines {
    /// Lines of an owner that shares its room with no other.
    fn default() -> Self {
        Self { rings: Mutex::default(), all: Arc::default() }
    }
}

impl Drop for KeptLines {
    fn drop(&mut self) {
        self.retain(|_| false);
    }
}

impl KeptLines {
    /// The last lines of a plugin, at most `most` of them, in the order in which they came.
    pub fn last(&self, plugin: &Name, most: usize) -> Vec<Line> {
        let rings = self.rings.lock();
        let ring = rings.all.iter().find(|(name, _)| name == plugin);
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
            let rings = self.rings.lock();
            let is_asked = |(name, _): &&(Name, Ring)| plugin.is_none_or(|plugin| plugin == name);
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
        let mut freed = 0;
        self.rings.lock().all.retain(|(plugin, ring)| {
            let stays = has(plugin);
            freed += if stays { 0 } else { ring.bytes };
            stays
        });
        self.all.bytes.fetch_sub(freed, Ordering::Relaxed);
    }

    pub(super) fn push(&self, line: Line) {
        {
            let mut locked = self.rings.lock();
            let Rings { all: rings, last, last_came } = &mut *locked;
            *last = if *last == 0 { now_us() } else { *last + 1 };
            *last_came = self.all.count.fetch_add(1, Ordering::Relaxed);
            let mut freed = 0;
            match rings.iter().position(|(plugin, _)| *plugin == line.plugin) {
                Some(at) => rings[at..].rotate_left(1),
                None => {
                    if rings.len() == PLUGINS_MAX {
                        freed = rings.remove(0).1.bytes;
                    }
                    rings.push((line.plugin.clone(), Ring::default()));
                }
            }
            if let Some((_, ring)) = rings.last_mut() {
                freed += ring.bytes;
                ring.push((*last, line.into()), KEPT);
                self.all.bytes.fetch_add(ring.bytes, Ordering::Relaxed);
                self.all.bytes.fetch_sub(freed, Ordering::Relaxed);
            }
        }
        self.all.make_room();
    }
}

/// Microseconds since 1970.
fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_micros() as u64
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    /// Keep a line of this plugin, with this message.
    fn keep(kept: &Arc<KeptLines>, plugin: &str, message: &str) {
        kept.push(Line {
            time: String::new(),
            level: Level::INFO,
            request_id: "id".into(),
            pipeline: name("pipeline"),
            plugin: name(plugin),
            call: "preprocess",
            message: message.into(),
            fields: None,
        });
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
    fn the_owners_that_were_silent_for_longest_give_way() {
        let all = Arc::new(AllLines::new(256 << 10));
        let owners: Vec<_> = (0..100).map(|_| all.of_one()).collect();
        for owner in &owners {
            (0..4).for_each(|_| keep(owner, "plugin", &"x".repeat(4000)));
            assert!(all.bytes() <= 256 << 10, "{}", all.bytes());
            // This one logs all the time.
            keep(&owners[0], "plugin", "new");
        }
        let has_lines = |owner: &&Arc<KeptLines>| !owner.last(&name("plugin"), 1).is_empty();
        let with_lines = owners.iter().filter(has_lines).count();
        assert!((10..20).contains(&with_lines), "{with_lines}");
        assert!([0, 98, 99].iter().all(|index| has_lines(&&owners[*index])));
        let (_, last) = owners[0].after(None, None, 1);
        owners[0].retain(|_| false);
        let (lines, next) = owners[0].after(None, None, 1);
        assert!(lines.is_empty() && next == last, "numbers go on");
        drop(owners);
        assert_eq!(all.bytes(), 0);
    }
}
