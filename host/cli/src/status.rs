//! `gristmill status`: one page about a server: what serves, and how it does.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _, stderr, stdout};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{ArgMatches, Command};
use serde_json::{Value, json};

use crate::admin::{self, Admin};
use crate::args::switch;
use crate::model::signature;
use crate::output::{Column, Output, escaped, short_digest, state_and_reason, table};

/// The time between two pages.
const INTERVAL: Duration = Duration::from_secs(1);

/// What makes a terminal forget what it shows.
const CLEAR: &str = "\x1b[H\x1b[2J";

const JOBS: [Column; 4] =
    [("JOB", "job"), ("SUBJECT", "subject"), ("STATE", "state"), ("TIME", "time")];

const MODELS: [Column; 10] = [
    ("MODEL", "name"),
    ("PROVIDER", "provider"),
    ("QUEUED", "queued"),
    ("RUNNING", "running"),
    ("ROWS", "rows"),
    ("BATCHES", "batches"),
    ("MEAN", "mean"),
    ("FAILED", "failed"),
    ("STATE", "state"),
    ("INPUTS -> OUTPUTS", "signature"),
];

const PARTS: [Column; 4] =
    [("TENANT", "tenant"), ("KIND", "kind"), ("NAME", "name"), ("STATE", "state")];

const REPLICAS: [Column; 6] = [
    ("REPLICA", "name"),
    ("ADDRESS", "address"),
    ("VERSION", "version"),
    ("RELEASE", "release"),
    ("FAULTS", "faults"),
    ("STATE", "state"),
];

pub(crate) fn command() -> Command {
    Command::new("status")
        .about("Show what serves on a server, and how it does")
        .after_help(
            "Examples:\n  \
             gristmill status\n  \
             gristmill status --watch\n  \
             gristmill status --output json | jq .models.digits.statistics\n\n\
             QUEUED are the rows that wait for a model, RUNNING its batches that run. ROWS, \
             BATCHES, MEAN (rows in a batch) and FAILED (requests that failed, expired or were \
             refused) count since the model was loaded. An earlier version that stays loaded has a \
             row of its own, such as cnn@14. FAULTS are the parts of a release that a replica \
             does not serve. With --watch, JSON is one line each time.",
        )
        .arg(switch("watch").help("Show it again each second, until Ctrl-C"))
        .args(admin::asking())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let admin = Admin::of(matches)?;
    let output = Output::of(matches);
    let shown = |status: &Value| match output {
        Output::Json => format!("{status}\n"),
        Output::Text => page(status, admin.address()),
    };
    let read = || admin.get("status").context("cannot show the status");
    if !matches.get_flag("watch") {
        print!("{}", shown(&read()?));
        return Ok(());
    }
    // A wrong address or token ends it; a server that is started anew does not.
    let mut next = Ok(read()?);
    let clear = if output == Output::Text && stdout().is_terminal() { CLEAR } else { "" };
    loop {
        let written = match &next {
            Ok(status) => write!(stdout(), "{clear}{}", shown(status)),
            Err(error) => writeln!(stderr(), "error: {}", escaped(&format!("{error:#}"))),
        };
        // The reader of a pipe has left.
        if written.and_then(|()| stdout().flush()).is_err() {
            return Ok(());
        }
        sleep(INTERVAL);
        next = read();
    }
}

/// The page about a server.
fn page(status: &Value, address: &str) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let backends = status["backends"].as_array().into_iter().flatten().map(text);
    let (release, version) = (&status["release"], text(&status["version"]));
    let mut head = vec![format!("{address}: release {release}"), format!("gristmill {version}")];
    head.extend(backends);
    let mut page = escaped(&format!("{}\n", head.join(", ")));
    page += &process_line(status);
    page += &memory_line(&status["memory"]);
    page += &runtimes_line(status);
    if let Some(lines) = status["log"]["dropped_lines"].as_u64().filter(|lines| *lines > 0) {
        let _ = writeln!(page, "{lines} lines of the log were dropped");
    }
    let jobs = status["jobs"].as_array().into_iter().flatten().map(job).collect();
    let models = status["models"].as_object().into_iter().flatten();
    let models = models.flat_map(|(name, model)| versions(name, model));
    let models = models.map(|(name, model)| model_row(&name, model)).collect();
    let tenants = status["tenants"].as_object().into_iter().flatten();
    let parts = tenants.flat_map(|(name, tenant)| parts(name, tenant)).collect();
    if let Some(state) = status["store"]["state"].as_str().filter(|state| *state != "followed") {
        let _ = writeln!(page, "{}", escaped(&store_line(state, &status["store"])));
    }
    let replicas = status["replicas"].as_array().into_iter().flatten();
    let replicas = replicas.map(replica_row).collect();
    let tables: [(&[Column], Vec<Value>); 4] =
        [(&REPLICAS, replicas), (&JOBS, jobs), (&MODELS, models), (&PARTS, parts)];
    for (columns, rows) in tables.iter().filter(|(_, rows)| !rows.is_empty()) {
        page.push('\n');
        page += &table(columns, rows);
    }
    page
}

/// The time that the server is up, its memory and its requests. Empty if the caller may not see it.
fn process_line(status: &Value) -> String {
    let process = &status["process"];
    let (Some(uptime), Some(resident)) =
        (process["uptime_s"].as_u64(), process["resident_bytes"].as_u64())
    else {
        return String::new();
    };
    let under_way = status["requests"]["under_way"].as_u64().unwrap_or_default();
    let oldest = status["requests"]["oldest_ms"].as_f64();
    let oldest = oldest.map(|ms| format!(" (the oldest for {ms:.0} ms)")).unwrap_or_default();
    let uptime = humantime::format_duration(Duration::from_secs(uptime));
    let requests = if under_way == 1 { "request" } else { "requests" };
    format!(
        "up for {uptime}, {} MiB of memory, {under_way} {requests} under way{oldest}\n",
        resident >> 20
    )
}

/// What holds the memory. Empty if the caller may not see it.
fn memory_line(memory: &Value) -> String {
    let Some(parts) = memory.as_object() else { return String::new() };
    let part = |(name, bytes): (&String, &Value)| {
        let name = name.trim_end_matches("_bytes").replace('_', " ");
        format!("{name} {}", bytes.as_u64().unwrap_or_default() >> 20)
    };
    let parts: Vec<_> = parts.iter().map(part).collect();
    escaped(&format!("MiB by what holds them: {}\n", parts.join(", ")))
}

/// The runtimes of languages. Empty if there are none, or the caller may not see them.
fn runtimes_line(status: &Value) -> String {
    let shown = |runtime: &Value| {
        let [language, digest, state] =
            ["language", "digest", "state"].map(|key| runtime[key].as_str().unwrap_or_default());
        format!("{language} {} {state}", short_digest(digest))
    };
    let runtimes: Vec<_> = status["runtimes"].as_array().into_iter().flatten().map(shown).collect();
    if runtimes.is_empty() {
        return String::new();
    }
    let reloaded = match status["reloaded_plugins"].as_u64() {
        None | Some(0) => String::new(),
        Some(count) => format!("; plugins loaded again, as theirs was another one: {count}"),
    };
    escaped(&format!("runtimes: {}{reloaded}\n", runtimes.join(", ")))
}

/// Why releases of other replicas are not seen.
fn store_line(state: &str, store: &Value) -> String {
    let since = store["since_s"].as_f64().map(|since| format!(" for {since:.0} s"));
    let reason = store["reason"].as_str().map(|reason| format!(": {reason}"));
    format!("the store is {state}{}{}", since.unwrap_or_default(), reason.unwrap_or_default())
}

fn replica_row(replica: &Value) -> Value {
    let mut row = replica.clone();
    if replica["state"] != "live" {
        let silent = replica["silent_s"].as_f64().unwrap_or_default();
        row["state"] = format!("silent for {silent:.0} s").into();
    }
    row
}

fn job(job: &Value) -> Value {
    let waited = job["waited_s"].as_f64().unwrap_or_default();
    let time = job["running_s"].as_f64().unwrap_or(waited);
    let mut row = job.clone();
    row["time"] = format!("{time:.1} s").into();
    row
}

/// The newest version under its name, and the earlier ones that stay loaded: `cnn`, `cnn@14`.
fn versions<'a>(name: &str, thing: &'a Value) -> Vec<(String, &'a Value)> {
    let kept = thing["kept_versions"].as_object().into_iter().flatten();
    let kept = kept.map(|(version, version_state)| (format!("{name}@{version}"), version_state));
    std::iter::once((name.to_owned(), thing)).chain(kept).collect()
}

fn model_row(name: &str, model: &Value) -> Value {
    let lane = &model["statistics"];
    let count = |key: &str| lane[key].as_u64().unwrap_or_default();
    let (rows, batches) = (count("rows"), count("batches"));
    let mut row =
        json!({ "name": name, "state": state_and_reason(model), "signature": signature(model) });
    // A model that does not serve has no figures.
    if lane.is_object() {
        row["provider"] = model["provider"].clone();
        row["queued"] = count("queued_rows").into();
        row["running"] = count("running").into();
        (row["rows"], row["batches"]) = (rows.into(), batches.into());
        row["mean"] = format!("{:.1}", rows as f64 / batches.max(1) as f64).into();
        row["failed"] = (count("fail") + count("expired") + count("refused")).into();
    }
    row
}

/// The plugins and pipelines of a tenant. A tenant without any has one line.
fn parts(name: &str, tenant: &Value) -> Vec<Value> {
    let mut rows = Vec::new();
    for (kind, all) in [("plugin", &tenant["plugins"]), ("pipeline", &tenant["pipelines"])] {
        let all = all.as_object().into_iter().flatten();
        for (part, part_state) in all.flat_map(|(part, part_state)| versions(part, part_state)) {
            let mut state = state_and_reason(part_state);
            if kind == "pipeline" && tenant["default_pipeline"] == part.as_str() {
                state += ", default";
            }
            if part_state["debug"] == true {
                state += ", debug";
            }
            rows.push(json!({ "tenant": name, "kind": kind, "name": part, "state": state }));
        }
    }
    if rows.is_empty() {
        rows.push(json!({ "tenant": name }));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_shows_everything_that_serves_and_why_something_does_not() {
        let digest = format!("sha256:{}", "0123456789".repeat(6));
        let status = json!({
            "version": "1.2.3", "release": 12, "backends": ["onnxruntime", "tract"],
            "log": { "dropped_lines": 3 },
            "runtimes": [{ "language": "python", "digest": digest, "state": "ready" }],
            "reloaded_plugins": 2,
            "store": { "state": "unreachable", "since_s": 12.3, "reason": "no way" },
            "replicas": [
                { "name": "one", "address": "http://a:1", "version": "1.2.3", "release": 12,
                    "faults": 1, "state": "live", "silent_s": 0.0 },
                { "name": "two", "address": "http://b:1", "version": "1.2.2", "release": 9,
                    "faults": 0, "state": "silent", "silent_s": 77.7 },
            ],
            "jobs": [{ "job": "compile", "subject": "acme/p", "state": "running", "waited_s": 9.0,
                "running_s": 1.25 }],
            "models": {
                "cnn": { "state": "ready", "provider": "cpu", "statistics": { "queued_rows": 2,
                    "running": 1, "rows": 7, "batches": 2, "fail": 1, "expired": 2, "refused": 3 },
                    "inputs": [{ "name": "x", "datatype": "FP32", "shape": [-1] }],
                    "outputs": [{ "name": "y", "datatype": "INT64", "shape": [-1] }],
                    "kept_versions": { "9": { "state": "failed", "reason": "no room" } } },
                "bad": { "state": "failed", "reason": "no room" },
            },
            "tenants": {
                "acme": { "default_pipeline": "main",
                    "plugins": { "p": { "state": "failed", "reason": "red \u{1b}[31m" } },
                    "pipelines": { "main": { "state": "ready", "debug": true } } },
                "empty": { "plugins": {}, "pipelines": {} },
            },
        });
        let expected = "\
127.0.0.1:8081: release 12, gristmill 1.2.3, onnxruntime, tract
runtimes: python sha256:012345678901 ready; plugins loaded again, as theirs was another one: 2
3 lines of the log were dropped
the store is unreachable for 12 s: no way

REPLICA  ADDRESS     VERSION  RELEASE  FAULTS  STATE
one      http://a:1  1.2.3    12       1       live
two      http://b:1  1.2.2    9        0       silent for 78 s

JOB      SUBJECT  STATE    TIME
compile  acme/p   running  1.2 s

MODEL  PROVIDER  QUEUED  RUNNING  ROWS  BATCHES  MEAN  FAILED  STATE            INPUTS -> OUTPUTS
bad                                                            failed: no room
cnn    cpu       2       1        7     2        3.5   6       ready            x FP32 [-1] -> y INT64 [-1]
cnn@9                                                          failed: no room

TENANT  KIND      NAME  STATE
acme    plugin    p     failed: red \\u{1b}[31m
acme    pipeline  main  ready, default, debug
empty
";
        assert_eq!(page(&status, "127.0.0.1:8081"), expected);
        let nothing = json!({ "version": "1", "release": 0, "models": {}, "tenants": {} });
        assert_eq!(page(&nothing, "a:1"), "a:1: release 0, gristmill 1\n");
    }
}
