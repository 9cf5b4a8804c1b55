//! The cost of plugin calls, in fresh instances and in instances that stay.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::options::Options;
use super::shipped::Shipped;
use super::table::{Table, Verdict};
use crate::setup;
use crate::shell::{cargo, run as run_command, step, target};

/// Calls of the bench guest, with the time to reach in microseconds.
const CALLS: [(&str, Option<f64>); 6] = [
    ("empty_fresh", Some(6.0)),
    ("tensor_128B_fresh", Some(7.0)),
    ("tensor_600KB_fresh", None),
    ("empty_warm", None),
    ("tensor_128B_warm", None),
    ("tensor_600KB_warm", None),
];

/// Both calls of the digits plugin without its work on the picture, in microseconds.
const LANGUAGES: [(&str, f64, f64); 4] =
    [("rust", 20.0, 5.0), ("c", 25.0, 5.0), ("js", 500.0, 60.0), ("python", 2000.0, 60.0)];

/// A tensor of 600 KB from the guest to the host, over the guest's own loop and a native copy.
const LARGE_RATIO_MAX: f64 = 1.3;

/// The throughput of many plugins in turn, over that of one.
const ROTATION_RATIO_MIN: f64 = 0.8;

pub(crate) fn run(shipped: &Shipped, options: &Options) -> Result<()> {
    if options.build {
        setup::build_languages(&shipped.gristmill)?;
    }
    step("measuring calls");
    run_command(
        cargo()
            .args(["bench", "--workspace", "--bench", "sandbox", "--", "--noplot"])
            .env("GRISTMILL_TEST_COMPONENTS", &shipped.components),
    )?;
    let mut table = Table::new("sandbox", "cargo xtask bench sandbox");
    for (name, most) in CALLS {
        let us = median_us("call", name)?;
        time(&mut table, format!("preprocess, {}", name.replace('_', ", ")), us, most);
    }
    let copy = median_us("call", "copy_600KB")?;
    for mode in ["fresh", "warm"] {
        let large = median_us("call", &format!("tensor_600KB_{mode}"))?;
        let fill = median_us("call", &format!("fill_600KB_{mode}"))?;
        let ratio = large / (fill + copy);
        let figures = json!({ "ratio": ratio, "fill_us": fill, "native_copy_us": copy });
        let measured = format!("{ratio:.2}   (fill {fill:.1} us, native copy {copy:.1} us)");
        let what = format!("tensor, 600KB, {mode}, over the guest's loop and a native copy");
        let verdict = Verdict::new("at most 1.3", ratio <= LARGE_RATIO_MAX);
        table.row_to_reach(what, measured, figures, verdict);
    }
    for name in ["init", "anew"] {
        let what = format!("preprocess, fresh, vocabulary of 30,000 words, {name}");
        time(&mut table, what, median_us("vocabulary", name)?, None);
    }
    let picture = median_us("digits", "picture")?;
    time(&mut table, "digits' picture alone, decoded and resized natively".into(), picture, None);
    for (language, fresh, warm) in LANGUAGES {
        for (mode, most) in [("fresh", fresh), ("warm", warm)] {
            let both = median_us("digits", &format!("{language}_{mode}"));
            let what = format!("digits, both calls without the picture, {language}, {mode}");
            time(&mut table, what, both? - picture, Some(most));
        }
    }
    let (one, thousand) = (median_us("rotation", "one")?, median_us("rotation", "thousand")?);
    let ratio = one / thousand;
    let figures = json!({ "ratio": ratio, "one_us": one, "thousand_us": thousand });
    let measured = format!("{ratio:.2}   (one {one:.1} us, a thousand {thousand:.1} us a call)");
    let what = "ranker-pre, fresh: throughput of 1,000 plugins in turn, over one";
    let verdict = Verdict::new("at least 0.8", ratio >= ROTATION_RATIO_MIN);
    table.row_to_reach(what, measured, figures, verdict);
    table.finish()
}

fn time(table: &mut Table, what: String, us: f64, most: Option<f64>) {
    let (measured, figures) = (format!("{us:.1} us"), json!({ "median_us": us }));
    match most {
        Some(most) => {
            let verdict = Verdict::new(format!("at most {most} us"), us <= most);
            table.row_to_reach(what, measured, figures, verdict);
        }
        None => table.row(what, measured, figures),
    }
}

/// Criterion's median of one benchmark.
fn median_us(group: &str, name: &str) -> Result<f64> {
    let path = target().join(format!("criterion/{group}/{name}/new/estimates.json"));
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let estimates: Value = serde_json::from_str(&text)?;
    let nanos = estimates["median"]["point_estimate"].as_f64().context("no median")?;
    Ok(nanos / 1000.0)
}
