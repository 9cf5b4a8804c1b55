//! Prometheus' text format, version 0.0.4.

use std::fmt::Write;

use crate::collected::{Collected, Distribution, Point, Value};
use crate::family::Family;

/// The media type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All values as text.
pub fn to_text(collected: &Collected) -> String {
    let mut text = String::with_capacity(64 << 10);
    for (family, points) in collected.families() {
        let name = family.prometheus_name();
        let _ = writeln!(text, "# HELP {name} {}", family.help);
        let _ = writeln!(text, "# TYPE {name} {}", family.kind.as_str());
        for point in points {
            add(&mut text, &name, family, point);
        }
    }
    text
}

fn add(text: &mut String, name: &str, family: &Family, Point { attributes, value }: &Point) {
    let mut labels = String::new();
    for (key, value) in family.attributes.iter().zip(attributes) {
        labels.push_str(if labels.is_empty() { "" } else { "," });
        let _ = write!(labels, "{key}=\"");
        escape(&mut labels, value);
        labels.push('"');
    }
    match value {
        Value::Number(number) => {
            text.push_str(name);
            if !labels.is_empty() {
                let _ = write!(text, "{{{labels}}}");
            }
            let _ = writeln!(text, " {number}");
        }
        Value::Distribution(distribution) => add_histogram(text, name, &labels, distribution),
    }
}

fn add_histogram(text: &mut String, name: &str, labels: &str, distribution: &Distribution) {
    let comma = if labels.is_empty() { "" } else { "," };
    let mut count = 0;
    let bounds = distribution.bounds.iter().map(Some).chain([None]);
    for (bound, bucket_count) in bounds.zip(&distribution.counts) {
        count += bucket_count;
        let _ = write!(text, "{name}_bucket{{{labels}{comma}le=\"");
        let _ = match bound {
            Some(bound) => write!(text, "{bound}"),
            None => write!(text, "+Inf"),
        };
        let _ = writeln!(text, "\"}} {count}");
    }
    let braces = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
    let _ = writeln!(text, "{name}_sum{braces} {}", distribution.sum);
    let _ = writeln!(text, "{name}_count{braces} {count}");
}

fn escape(text: &mut String, value: &str) {
    for char in value.chars() {
        match char {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            char => text.push(char),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::to_text;
    use crate::collected::{Collected, Distribution};
    use crate::family::{BATCH_FILL, LOG_DROPPED, SWAP_DURATION, TENANT_BYTES};

    #[test]
    fn counters_gauges_and_histograms_are_written_as_prometheus_reads_them() {
        let mut collected = Collected::default();
        collected.add(LOG_DROPPED, &[], 3_u64);
        collected.add(TENANT_BYTES, &["a\"\\\n"], 0.5);
        let mut fill = Distribution::of(&[0.5, 1.0]);
        fill.add(0.5, 2);
        fill.add(2.0, 1);
        collected.add(BATCH_FILL, &["m", "1"], fill);
        collected.add(SWAP_DURATION, &[], Distribution::of(&[0.1]));
        let text = to_text(&collected);
        let lines: Vec<_> = text.lines().filter(|line| !line.starts_with("# HELP")).collect();
        assert_eq!(
            lines,
            [
                "# TYPE gristmill_batch_fill_ratio histogram",
                "gristmill_batch_fill_ratio_bucket{model=\"m\",version=\"1\",le=\"0.5\"} 2",
                "gristmill_batch_fill_ratio_bucket{model=\"m\",version=\"1\",le=\"1\"} 2",
                "gristmill_batch_fill_ratio_bucket{model=\"m\",version=\"1\",le=\"+Inf\"} 3",
                "gristmill_batch_fill_ratio_sum{model=\"m\",version=\"1\"} 3",
                "gristmill_batch_fill_ratio_count{model=\"m\",version=\"1\"} 3",
                "# TYPE gristmill_tenant_memory_bytes gauge",
                "gristmill_tenant_memory_bytes{tenant=\"a\\\"\\\\\\n\"} 0.5",
                "# TYPE gristmill_release_swap_duration_seconds histogram",
                "gristmill_release_swap_duration_seconds_bucket{le=\"0.1\"} 0",
                "gristmill_release_swap_duration_seconds_bucket{le=\"+Inf\"} 0",
                "gristmill_release_swap_duration_seconds_sum 0",
                "gristmill_release_swap_duration_seconds_count 0",
                "# TYPE gristmill_log_dropped_total counter",
                "gristmill_log_dropped_total 3",
            ]
        );
    }
}
