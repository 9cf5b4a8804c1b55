//! Measurements and comparisons as tables.

use std::fmt::Write;

use gristmill_load::{Change, Measured};
use serde_json::{Value, json};

use super::file::Saved;
use crate::output::{Column, table};

const MEASURED: [Column; 10] = [
    ("LOAD", "load"),
    ("ANSWERS/S", "per_second"),
    ("FAILED", "failed"),
    ("P50", "p50"),
    ("P90", "p90"),
    ("P95", "p95"),
    ("P99", "p99"),
    ("P99.9", "p999"),
    ("MAX", "max"),
    ("CLIENT CPU", "cpu"),
];

const CHANGES: [Column; 7] = [
    ("LOAD", "load"),
    ("FIGURE", "what"),
    ("BEFORE", "before"),
    ("AFTER", "after"),
    ("RATIO", "ratio"),
    ("95 %", "bounds"),
    ("", "verdict"),
];

/// The load of a measurement.
pub(super) fn load(measured: &Measured) -> String {
    match (measured.connections, measured.rate) {
        (Some(connections), _) => format!("{connections} connections"),
        (None, Some(rate)) => format!("{rate:.0}/s"),
        (None, None) => String::new(),
    }
}

pub(super) fn measured(saved: &Saved) -> String {
    let row = |measured: &Measured| {
        let times = measured.latency_us;
        json!({
            "load": load(measured),
            "per_second": format!("{:.0}", measured.per_second),
            "failed": measured.failed(),
            "p50": time(times.p50),
            "p90": time(times.p90),
            "p95": time(times.p95),
            "p99": time(times.p99),
            "p999": time(times.p999),
            "max": time(times.max),
            "cpu": format!("{:.1} us", measured.client_cpu_us),
        })
    };
    let rows: Vec<Value> = saved.measured.iter().map(row).collect();
    let mut text = table(&MEASURED, &rows);
    for measured in saved.measured.iter().filter(|measured| !measured.errors.is_empty()) {
        for (what, count) in &measured.errors {
            let _ = writeln!(text, "{}: {count} failed with {what}", load(measured));
        }
    }
    text
}

/// A time in three digits.
fn time(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} us"),
        1_000..10_000 => format!("{:.2} ms", us as f64 / 1e3),
        10_000..1_000_000 => format!("{:.1} ms", us as f64 / 1e3),
        _ => format!("{:.2} s", us as f64 / 1e6),
    }
}

pub(super) fn changes(all: &[(String, Vec<Change>)]) -> String {
    let rows = all.iter().flat_map(|(load, changes)| {
        changes.iter().map(move |change| {
            let Change { what, values: [before, after], ratio, bounds, is_noise } = change;
            json!({
                "load": load,
                "what": what,
                "before": format!("{before:.0}"),
                "after": format!("{after:.0}"),
                "ratio": format!("{ratio:.3}"),
                "bounds": format!("{:.3} to {:.3}", bounds.0, bounds.1),
                "verdict": if *is_noise { "noise" } else { "differs" },
            })
        })
    });
    table(&CHANGES, &rows.collect::<Vec<_>>())
}

pub(super) fn changes_json(all: &[(String, Vec<Change>)]) -> Value {
    let rows = all.iter().flat_map(|(load, changes)| {
        changes.iter().map(move |change| {
            json!({
                "load": load,
                "figure": change.what,
                "before": change.values[0],
                "after": change.values[1],
                "ratio": change.ratio,
                "bounds": [change.bounds.0, change.bounds.1],
                "is_noise": change.is_noise,
            })
        })
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn times_have_three_digits() {
        let texts = [0, 999, 1_234, 12_345, 123_456, 1_234_567].map(time);
        assert_eq!(texts, ["0 us", "999 us", "1.23 ms", "12.3 ms", "123.5 ms", "1.23 s"]);
    }
}
