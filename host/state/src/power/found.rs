//! The differences in power that were found of one thing, and their words.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use crate::fault::Subject;
use crate::power::kind::{Power, PowerKind, Trend};
use crate::release::token::rfc3339;

/// Maximum names in a text. More than all imports that a plugin can have.
const NAMES_IN_TEXT_MAX: usize = 64;

/// The differences that were found of a thing.
pub(super) struct Found {
    /// Whether the thing did not exist. Less than the default takes nothing away from it.
    pub(super) is_new: bool,
    list: Vec<(PowerKind, Trend, Vec<String>, String)>,
}

impl Found {
    pub(super) fn new(is_new: bool) -> Self {
        Self { is_new, list: Vec::new() }
    }

    pub(super) fn add(&mut self, power: PowerKind, trend: Trend, names: Vec<String>, text: String) {
        if !self.is_new || trend != Trend::Less {
            self.list.push((power, trend, names, text));
        }
    }

    /// A power over the things of these names, before and afterwards. `verb` says what it is.
    pub(super) fn sets(&mut self, power: PowerKind, verb: &str, names: [BTreeSet<String>; 2]) {
        let [more, less] = gained_and_lost(names);
        if !more.is_empty() {
            let text = format!("may now {verb} {}", listed(&more));
            self.add(power, Trend::More, more, text);
        }
        if !less.is_empty() {
            let text = format!("may no longer {verb} {}", listed(&less));
            self.add(power, Trend::Less, less, text);
        }
    }

    pub(super) fn imports(&mut self, names: [BTreeSet<String>; 2]) {
        let [more, less] = gained_and_lost(names);
        if !more.is_empty() {
            let text = format!("imports {} for the first time", listed(&more));
            self.add(PowerKind::Import, Trend::More, more, text);
        }
        if !less.is_empty() {
            let text = format!("no longer imports {}", listed(&less));
            self.add(PowerKind::Import, Trend::Less, less, text);
        }
    }

    /// A power that a thing has or not, before and afterwards.
    pub(super) fn flag(&mut self, power: PowerKind, verb: &str, has: [bool; 2]) {
        match has {
            [false, true] => {
                self.add(power, Trend::More, Vec::new(), format!("may now {verb}"));
            }
            [true, false] => {
                self.add(power, Trend::Less, Vec::new(), format!("may no longer {verb}"));
            }
            _ => {}
        }
    }

    /// The bound that a document has under `key`, before and afterwards. None is no bound.
    pub(super) fn number(&mut self, power: PowerKind, key: String, bounds: [Option<u64>; 2]) {
        let shown = |bound: Option<u64>| bound.map_or("none".to_owned(), |bound| bound.to_string());
        let [before, after] = bounds.map(|bound| bound.unwrap_or(u64::MAX));
        self.key(power, key, bounds.map(shown), trend_of(before, after));
    }

    /// When a token ends, in milliseconds since the Unix epoch.
    pub(super) fn expires(&mut self, ends: [Option<u64>; 2]) {
        let shown = |end: Option<u64>| end.map_or("never".to_owned(), rfc3339);
        let [before, after] = ends.map(|end| end.unwrap_or(u64::MAX));
        self.key(PowerKind::Expires, "expires".into(), ends.map(shown), trend_of(before, after));
    }

    /// A priority level at models, of which 1 is served first. Without it: the models' default.
    pub(super) fn priority(&mut self, levels: [Option<u32>; 2]) {
        let shown = |level: Option<u32>| {
            level.map_or("the default of each model".to_owned(), |level| level.to_string())
        };
        let trend = match levels {
            [Some(before), Some(after)] => trend_of(after.into(), before.into()),
            [before, after] => (before != after).then_some(Trend::Unknown),
        };
        self.key(PowerKind::Priority, "priority".into(), levels.map(shown), trend);
    }

    /// The value of a key, before and afterwards.
    fn key(&mut self, power: PowerKind, key: String, shown: [String; 2], trend: Option<Trend>) {
        if let Some(trend) = trend {
            let [was, is] = shown;
            self.add(power, trend, vec![key.clone()], format!("{key} is {is} (was {was})"));
        }
    }

    pub(super) fn of(self, subject: &Subject) -> Vec<Power> {
        let (kind, tenant, plugin, pipeline, token) = match subject {
            Subject::Plugin { tenant, plugin } => {
                ("plugin", Some(tenant), Some(plugin), None, None)
            }
            Subject::Pipeline { tenant, pipeline } | Subject::Candidate { tenant, pipeline } => {
                ("pipeline", Some(tenant), None, Some(pipeline), None)
            }
            Subject::Token(token) => ("token", None, None, None, Some(token)),
            Subject::Tenant(tenant)
            | Subject::Asset { tenant, .. }
            | Subject::Key { tenant, .. } => ("tenant", Some(tenant), None, None, None),
            Subject::Model(_) | Subject::ModelConfig(_) => ("model", None, None, None, None),
        };
        let power = |(power, trend, names, text)| Power {
            kind,
            tenant: tenant.cloned(),
            plugin: plugin.cloned(),
            pipeline: pipeline.cloned(),
            token: token.cloned(),
            power,
            trend,
            names,
            text,
        };
        self.list.into_iter().map(power).collect()
    }
}

/// How a power goes whose bound this is. None if it stays.
fn trend_of(before: u64, after: u64) -> Option<Trend> {
    match before.cmp(&after) {
        Ordering::Less => Some(Trend::More),
        Ordering::Equal => None,
        Ordering::Greater => Some(Trend::Less),
    }
}

fn gained_and_lost([before, after]: [BTreeSet<String>; 2]) -> [Vec<String>; 2] {
    let gained = after.difference(&before).cloned().collect();
    let lost = before.difference(&after).cloned().collect();
    [gained, lost]
}

pub(super) fn listed(names: &[String]) -> String {
    let shown = &names[..names.len().min(NAMES_IN_TEXT_MAX)];
    match names.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
