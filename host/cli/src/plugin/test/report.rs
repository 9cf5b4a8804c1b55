//! The result of a request, as text and as JSON.

use std::fmt::Write as _;
use std::time::Duration;

use gristmill_core::{CallUsage, PluginLimits, Stage, Stages};
use gristmill_sandbox::Line;
use gristmill_snapshot::Mismatch;
use gristmill_state::{SampleAnswer, SampleFailure};
use serde_json::{Map, Value, json};

use super::round::Tested;
use crate::output::escaped;
use crate::request_run::Ran;

/// Maximum bytes of an answer that are shown.
const ANSWER_BYTES_MAX: usize = 200;

/// The lines of a request.
pub(super) fn text(tested: &Tested<'_>, limits: &PluginLimits) -> String {
    let Tested { sample, runs, shown, passed, .. } = tested;
    let mut report = Report(String::new());
    let word = if *passed { "ok" } else { "FAILED" };
    let _ = writeln!(report.0, "{word:<7} {}", sample.file);
    let ran = &runs[*shown];
    let time = times(ran.took, &ran.stages);
    if ran.took.is_zero() {
        // It ran on a server, which does not tell its times.
    } else if runs.len() == 1 {
        report.line("time", &time);
    } else {
        report.line("time", &format!("{time} (run {} of {})", shown + 1, runs.len()));
        let (took, stages) = medians(runs);
        report.line("median", &times(took, &stages));
    }
    for (stage, usage) in calls(ran) {
        report.line(stage.name(), &usage_text(&usage, limits));
    }
    for line in &ran.lines {
        report.line("log", &line_text(line));
    }
    if let SampleAnswer::Failed(SampleFailure { code, detail, internal, .. }) = &ran.answer {
        report.line("failure", &format!("{}: {detail}", code.as_str()));
        internal.iter().for_each(|text| report.line("", text));
    }
    for mismatch in &tested.mismatches.first {
        report.line("differs", &mismatch.to_string());
    }
    if tested.mismatches.more > 0 {
        report.line("", &format!("and {} more differences", tested.mismatches.more));
    }
    if tested.is_unwritten {
        report.line("", "not written as what is expected: --allow-failures writes failures, too");
    }
    if let SampleAnswer::Response { status, content_type, body } = &ran.answer
        && (!tested.has_expectation || tested.written || !passed)
    {
        report.line("answer", &format!("{status} {content_type} {}", body_text(body)));
    }
    report.0
}

/// Indented lines.
struct Report(String);

impl Report {
    /// Add a text under a name. Further lines of the text stand below its first one.
    fn line(&mut self, name: &str, text: &str) {
        for (index, line) in escaped(text).lines().enumerate() {
            let name = if index == 0 { name } else { "" };
            let _ = writeln!(self.0, "        {name:<8}{line}");
        }
    }
}

fn times(took: Duration, stages: &Stages) -> String {
    let mut text = format!("{} ms:", ms(took));
    for (stage, time) in stages_of(stages) {
        let _ = write!(text, " {stage} {},", ms(time));
    }
    text.pop();
    text
}

/// The stages that were reached.
fn stages_of(stages: &Stages) -> impl Iterator<Item = (Stage, Duration)> {
    let Stages { pre, handle, queue, infer, post, .. } = *stages;
    let all = [
        (Stage::Pre, pre),
        (Stage::Handle, handle),
        (Stage::Queue, queue),
        (Stage::Infer, infer),
        (Stage::Post, post),
    ];
    all.into_iter().filter_map(|(stage, time)| Some((stage, time?)))
}

fn calls(ran: &Ran) -> impl Iterator<Item = (Stage, CallUsage)> {
    ran.calls.iter().filter_map(|call| Some((call.stage, call.used?)))
}

/// The median of each time, over all runs that reached the stage.
fn medians(runs: &[Ran]) -> (Duration, Stages) {
    let of = |time: fn(&Ran) -> Option<Duration>| {
        let mut times: Vec<_> = runs.iter().filter_map(time).collect();
        times.sort_unstable();
        times.get(times.len() / 2).copied()
    };
    let stages = Stages {
        pre: of(|ran| ran.stages.pre),
        handle: of(|ran| ran.stages.handle),
        queue: of(|ran| ran.stages.queue),
        infer: of(|ran| ran.stages.infer),
        post: of(|ran| ran.stages.post),
        ..Stages::default()
    };
    (of(|ran| Some(ran.took)).unwrap_or_default(), stages)
}

fn usage_text(usage: &CallUsage, limits: &PluginLimits) -> String {
    let CallUsage { cpu, cpu_limit, memory_bytes, host_memory_bytes, .. } = *usage;
    format!(
        "CPU {} of {} ms, memory {} of {} MiB, tensors and pictures {} of {} MiB",
        ms(cpu),
        cpu_limit.as_millis(),
        mib(memory_bytes),
        mib(limits.memory_bytes),
        mib(host_memory_bytes),
        mib(limits.host_memory_bytes),
    )
}

fn line_text(line: &Line) -> String {
    let Line { level, plugin, message, fields, .. } = line;
    let mut text = format!("{level} {plugin}: {message}");
    let fields = fields.as_ref().and_then(|fields| serde_json::from_str(fields.get()).ok());
    for (name, value) in fields.unwrap_or_else(Map::new) {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let _ = write!(text, " {name}={value}");
    }
    text
}

fn body_text(body: &[u8]) -> String {
    let start = &body[..body.len().min(ANSWER_BYTES_MAX)];
    match std::str::from_utf8(body) {
        Ok(_) if start.len() == body.len() => String::from_utf8_lossy(start).into_owned(),
        Ok(_) => format!("{}... ({} bytes)", String::from_utf8_lossy(start), body.len()),
        Err(_) => format!("({} bytes)", body.len()),
    }
}

fn ms(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64() * 1e3)
}

fn mib(bytes: usize) -> String {
    format!("{:.1}", bytes as f64 / f64::from(1 << 20))
}

/// The document of a request.
pub(super) fn document(tested: &Tested<'_>) -> Value {
    let Tested { sample, runs, shown, passed, has_expectation, written, mismatches, .. } = tested;
    let ran = &runs[*shown];
    let differ = |one: &Mismatch| {
        let Mismatch { path, expected, found: actual } = one;
        json!({ "path": path, "expected": expected, "found": actual })
    };
    let usage = |(stage, usage): (Stage, CallUsage)| (stage.to_string(), usage_document(&usage));
    let mut document = json!({
        "request": sample.file,
        "passed": passed,
        "has_expectation": has_expectation,
        "expectation_written": written,
        "differences": mismatches.first.iter().map(differ).collect::<Vec<_>>(),
        "more_differences": mismatches.more,
        "run": shown + 1,
        "status": ran.answer.status(),
        "times_ms": (!ran.took.is_zero()).then(|| times_document(ran.took, &ran.stages)),
        "calls": Map::from_iter(calls(ran).map(usage)),
        "log": ran.lines,
    });
    if runs.len() > 1 {
        let (took, stages) = medians(runs);
        document["median_times_ms"] = times_document(took, &stages);
    }
    match &ran.answer {
        SampleAnswer::Response { content_type, .. } => {
            document["content_type"] = json!(content_type)
        }
        SampleAnswer::Failed(SampleFailure { code, detail, internal, .. }) => {
            document["failure"] =
                json!({ "code": code.as_str(), "detail": detail, "internal": internal });
        }
    }
    document
}

fn times_document(took: Duration, stages: &Stages) -> Value {
    let ms = |time: Duration| json!(time.as_secs_f64() * 1e3);
    let mut times = Map::from_iter([("total".to_owned(), ms(took))]);
    times.extend(stages_of(stages).map(|(stage, time)| (stage.to_string(), ms(time))));
    times.into()
}

fn usage_document(usage: &CallUsage) -> Value {
    let CallUsage { cpu, memory_bytes, host_memory_bytes, .. } = *usage;
    json!({
        "cpu_ms": cpu.as_secs_f64() * 1e3,
        "memory_bytes": memory_bytes,
        "host_memory_bytes": host_memory_bytes,
    })
}

/// The limits, with the keys of [`usage_document`].
pub(super) fn limits_document(limits: &PluginLimits) -> Value {
    let PluginLimits { cpu, memory_bytes, host_memory_bytes, .. } = *limits;
    usage_document(&CallUsage { cpu, memory_bytes, host_memory_bytes, ..CallUsage::default() })
}
