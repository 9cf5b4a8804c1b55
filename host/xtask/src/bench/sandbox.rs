//! The cost of plugin calls, in fresh instances and in instances that stay. criterion measures it.

use anyhow::Result;
use serde_json::json;

use super::criterion::{self, median_us};
use super::harness::Bench;
use crate::shell::step;
use crate::table::Bound::{AtLeast, AtMost};
use crate::table::Table;
use crate::{runtimes, setup};

/// The groups of benchmarks. `bench jobs` measures the others.
const GROUPS: &str = "^(call|vocabulary|digits|rotation)/";

/// Calls of the bench guest, with the time to reach in microseconds.
const CALLS: [(&str, Option<f64>); 6] = [
    ("empty_fresh", Some(6.0)),
    ("tensor_128B_fresh", Some(7.0)),
    ("tensor_600KB_fresh", None),
    ("empty_warm", None),
    ("tensor_128B_warm", None),
    ("tensor_600KB_warm", None),
];

/// Both calls of the digits plugin without its work on the picture, in microseconds: in an instance
/// for each call, in one for both, in one that stays.
const LANGUAGES: [(&str, [Option<f64>; 3]); 4] = [
    ("rust", [Some(20.0), None, Some(5.0)]),
    ("c", [Some(25.0), None, Some(5.0)]),
    ("js", [Some(250.0), Some(250.0), Some(60.0)]),
    ("python", [Some(500.0), Some(500.0), Some(60.0)]),
];

/// A tensor of 600 KB from the guest to the host, over the guest's own loop and a native copy.
const LARGE_RATIO_MAX: f64 = 1.3;

/// The throughput of many plugins in turn, over that of one.
const ROTATION_RATIO_MIN: f64 = 0.8;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    if bench.options.build {
        runtimes::build()?;
        setup::build_languages(&bench.gristmill)?;
    }
    step("measuring calls");
    criterion::measure(&bench.components, GROUPS)?;
    let table = &mut bench.table;
    for (name, us_max) in CALLS {
        let what = format!("preprocess, {}", name.replace('_', ", "));
        add_time(table, what, median_us("call", name)?, us_max);
    }
    let copy = median_us("call", "copy_600KB")?;
    for mode in ["fresh", "warm"] {
        let large = median_us("call", &format!("tensor_600KB_{mode}"))?;
        let fill = median_us("call", &format!("fill_600KB_{mode}"))?;
        let ratio = large / (fill + copy);
        let figures = json!({ "ratio": ratio, "fill_us": fill, "native_copy_us": copy });
        let what = format!("tensor, 600KB, {mode}, over the guest's loop and a native copy");
        table.row(what, figures).with_bound(ratio, AtMost(LARGE_RATIO_MAX), "");
    }
    for name in ["init", "anew"] {
        let what = format!("preprocess, fresh, vocabulary of 30,000 words, {name}");
        add_time(table, what, median_us("vocabulary", name)?, None);
    }
    let picture = median_us("digits", "picture")?;
    add_time(table, "digits' picture alone, decoded and resized natively", picture, None);
    for (language, bounds) in LANGUAGES {
        for (mode, us_max) in ["fresh", "request", "warm"].into_iter().zip(bounds) {
            let both = median_us("digits", &format!("{language}_{mode}"))?;
            let what = format!("digits, both calls without the picture, {language}, {mode}");
            add_time(table, what, both - picture, us_max);
        }
    }
    let (one, thousand) = (median_us("rotation", "one")?, median_us("rotation", "thousand")?);
    let figures = json!({ "ratio": one / thousand, "one_us": one, "thousand_us": thousand });
    let what = "ranker-pre, fresh: throughput of 1,000 plugins in turn, over one";
    table.row(what, figures).with_bound(one / thousand, AtLeast(ROTATION_RATIO_MIN), "");
    Ok(())
}

fn add_time(table: &mut Table, what: impl Into<String>, us: f64, us_max: Option<f64>) {
    let row = table.row(what, json!({ "median_us": us }));
    if let Some(us_max) = us_max {
        row.with_bound(us, AtMost(us_max), "us");
    }
}
