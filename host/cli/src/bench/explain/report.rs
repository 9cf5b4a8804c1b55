//! An explanation as text and as JSON.

use std::fmt::Write;

use gristmill_load::{Measured, Url};
use serde_json::{Value, json};

use super::advice::{Bottleneck, Change, RequestPhase, first};
use super::machine::Machine;
use super::parts::Measurement;
use super::simulation::Prediction;
use super::subject::Subject;
use crate::output::{Column, table};

/// What was measured of the load.
pub(super) struct Seen {
    pub(super) measured: Measured,
    /// The mean rows of a batch.
    pub(super) batch_rows: f64,
    /// The server's CPU time for each request.
    pub(super) server_us: f64,
    /// The share of the cores that other programs took, if it is known.
    pub(super) others: Option<f64>,
}

/// Other programs that take a larger share of the cores are named.
const OTHERS_MAX: f64 = 0.03;

/// The report.
pub(super) struct Report<'a> {
    pub(super) subject: &'a Subject,
    pub(super) url: &'a Url,
    pub(super) machine: &'a Machine,
    pub(super) parts: &'a Measurement,
    pub(super) prediction: &'a Prediction,
    pub(super) seen: &'a Seen,
    pub(super) bottleneck: Bottleneck,
    /// The one that brings most first.
    pub(super) changes: Vec<Change>,
}

/// A figure: its key, what it is, the prediction, and the measurement.
struct Figure {
    key: &'static str,
    what: &'static str,
    unit: &'static str,
    values: [f64; 2],
}

const PARTS: [Column; 4] = [("PART", "part"), ("COST", "cost"), ("CORES", "share"), ("", "what")];
const BATCHES: [Column; 3] = [("ROWS", "rows"), ("BATCH", "batch"), ("ROW", "row")];
const FIGURES: [Column; 4] =
    [("FIGURE", "what"), ("PREDICTED", "predicted"), ("MEASURED", "measured"), ("OFF", "off")];
const CHANGES: [Column; 5] = [
    ("CHANGE", "what"),
    ("ANSWERS/S", "per_second"),
    ("GAIN", "gain"),
    ("P50", "p50"),
    ("HOW", "how"),
];

impl Report<'_> {
    fn figures(&self) -> [Figure; 5] {
        let Self { machine, prediction, seen, .. } = self;
        let times = &seen.measured.latency_us;
        let server_us: f64 = RequestPhase::all(machine)
            .iter()
            .filter(|part| **part != RequestPhase::Client)
            .map(|part| part.cost_us(machine, prediction))
            .sum();
        let figure = |key, what, unit, values| Figure { key, what, unit, values };
        [
            figure(
                "per_second",
                "answers a second",
                "",
                [prediction.per_second, seen.measured.per_second],
            ),
            figure("p50_us", "p50", "us", [prediction.p50_us, times.p50 as f64]),
            figure("p99_us", "p99", "us", [prediction.p99_us, times.p99 as f64]),
            figure(
                "batch_rows",
                "rows of a batch",
                "rows",
                [prediction.batch_rows, seen.batch_rows],
            ),
            figure("server_cpu_us", "server's CPU time", "us", [server_us, seen.server_us]),
        ]
    }

    pub(super) fn json(&self) -> Value {
        let Self { subject, machine, parts, prediction, seen, .. } = self;
        let part = |part: &RequestPhase| {
            json!({
                "part": part.as_str(),
                "cpu_us": part.cost_us(machine, prediction),
                "share_of_cores": part.share(machine, prediction),
            })
        };
        let batches = machine.lane.service.points().iter();
        let batches: Vec<_> = batches.map(|(rows, us)| json!({ "rows": rows, "us": us })).collect();
        let figures = self.figures();
        let figures = figures.iter().map(|figure| {
            let [predicted, measured] = figure.values;
            let values = json!({
                "predicted": predicted, "measured": measured, "off": off(figure.values),
            });
            (figure.key.to_owned(), values)
        });
        let change = |change: &Change| {
            json!({
                "change": change.what,
                "how": change.how,
                "per_second": change.prediction.per_second,
                "p50_us": change.prediction.p50_us,
                "gain": change.prediction.per_second / prediction.per_second - 1.0,
            })
        };
        json!({
            "url": format!("http://{}{}", self.url.authority, self.url.path),
            "tenant": subject.tenant,
            "pipeline": subject.pipeline,
            "model": subject.model,
            "instance_reuse": subject.instance_reuse,
            "cores": machine.cores,
            "connections": machine.connections,
            "rows": parts.rows,
            "parts": RequestPhase::all(machine).iter().map(part).collect::<Vec<_>>(),
            "batches": batches,
            "batches_are_measured": parts.sizes_are_measured,
            "one_connection": parts.alone,
            "other_requests": parts.other,
            "figures": figures.collect::<serde_json::Map<_, _>>(),
            "used": {
                "cores": prediction.used.cores,
                "client": prediction.used.client,
                "instances": prediction.used.instances,
            },
            "bottleneck": { "name": self.bottleneck.as_str(), "text": self.bottleneck.text() },
            "first": first(&self.changes, prediction).map(|change| change.what),
            "changes": self.changes.iter().map(change).collect::<Vec<_>>(),
            "others_share_of_cores": seen.others,
            "measured": seen.measured,
        })
    }

    pub(super) fn text(&self) -> String {
        let Self { subject, machine, parts, prediction, .. } = self;
        let what = match (&subject.tenant, &subject.pipeline) {
            (Some(tenant), Some(pipeline)) => format!("pipeline {tenant}/{pipeline}, "),
            _ => String::new(),
        };
        let mut text = format!(
            "{what}model {}, {} rows a request, {} connections, {} cores\n\n",
            subject.model, parts.rows, machine.connections, machine.cores
        );
        let part = |part: &RequestPhase| {
            json!({
                "part": part.as_str(),
                "cost": us(part.cost_us(machine, prediction)),
                "share": percent(part.share(machine, prediction)),
                "what": part.words().work,
            })
        };
        let all_parts: Vec<_> = RequestPhase::all(machine).iter().map(part).collect();
        text += &table(&PARTS, &all_parts);
        let batch = |(rows, time): &(usize, f64)| json!({ "rows": rows, "batch": us(*time), "row": us(time / *rows as f64) });
        text.push('\n');
        text +=
            &table(&BATCHES, &machine.lane.service.points().iter().map(batch).collect::<Vec<_>>());
        if !parts.sizes_are_measured {
            text += "The tenant may not call the model alone: these are what the server has learned from \
                 earlier requests.\n";
        }
        let figure = |figure: &Figure| {
            let shown = |value: f64| match figure.unit {
                "us" => us(value),
                "rows" => format!("{value:.1}"),
                _ => format!("{value:.0}"),
            };
            let [predicted, measured] = figure.values;
            json!({
                "what": figure.what,
                "predicted": shown(predicted),
                "measured": shown(measured),
                "off": signed(off(figure.values)),
            })
        };
        text.push('\n');
        text += &table(&FIGURES, &self.figures().each_ref().map(figure));
        if let Some(others) = self.seen.others.filter(|others| *others > OTHERS_MAX) {
            let _ = writeln!(
                text,
                "Other programs took {} of the cores during the load: the prediction does not know \
                 of them.",
                percent(others)
            );
        }
        let _ = writeln!(
            text,
            "\nBottleneck: {} ({}). The cores are busy {} of the time, the client's threads {}, the \
             instances {}.",
            self.bottleneck.as_str(),
            self.bottleneck.text(),
            percent(prediction.used.cores),
            percent(prediction.used.client),
            percent(prediction.used.instances),
        );
        let _ = match first(&self.changes, prediction) {
            Some(Change { what, how, .. }) => writeln!(text, "Change first: {what} ({how}).\n"),
            None => writeln!(text, "No single change on this machine would bring more than 2 %.\n"),
        };
        let change = |change: &Change| {
            json!({
                "what": change.what,
                "per_second": format!("{:.0}", change.prediction.per_second),
                "gain": signed(change.prediction.per_second / prediction.per_second - 1.0),
                "p50": us(change.prediction.p50_us),
                "how": change.how,
            })
        };
        text += &table(&CHANGES, &self.changes.iter().map(change).collect::<Vec<_>>());
        text
    }
}

/// How far the prediction is off, as a share of the measurement.
fn off([predicted, measured]: [f64; 2]) -> f64 {
    if measured == 0.0 { 0.0 } else { predicted / measured - 1.0 }
}

fn us(us: f64) -> String {
    match us {
        us if us < 100.0 => format!("{us:.1} us"),
        us if us < 1_000.0 => format!("{us:.0} us"),
        us if us < 10_000.0 => format!("{:.2} ms", us / 1e3),
        us => format!("{:.1} ms", us / 1e3),
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn signed(share: f64) -> String {
    format!("{:+.0} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::{off, percent, signed, us};

    #[test]
    fn figures_are_short() {
        let texts = [0.0, 12.34, 123.4, 1234.0, 12_345.0].map(us);
        assert_eq!(texts, ["0.0 us", "12.3 us", "123 us", "1.23 ms", "12.3 ms"]);
        assert_eq!([percent(0.256), signed(0.1), signed(-0.1)], ["26 %", "+10 %", "-10 %"]);
        assert_eq!([off([75.0, 100.0]), off([1.0, 0.0])], [-0.25, 0.0]);
    }
}
