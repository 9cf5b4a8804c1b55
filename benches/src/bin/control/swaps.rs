//! Releases of plugins and models while requests run: 100 requests a second, whose answers show
//! which versions made them.
//!
//! An answer is mixed if a plugin or the model that made it is not of the release that the answer
//! names.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::resume_unwind;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use gristmill_benches::corpus::models;
use gristmill_benches::files::read;
use gristmill_benches::load::{Load, Question, Report};
use gristmill_benches::report::{self, Goal};
use gristmill_benches::server::Server;
use gristmill_platform::Share;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

const PLUGINS: u32 = 1000;
const MODELS: u32 = 200;
/// Without releases, before and after.
const QUIET: Duration = Duration::from_secs(20);

/// The target: the p99 during releases as a ratio to the p99 without them.
const RATIO_MAX: f64 = 1.2;

/// What must be in an answer.
#[derive(Clone, Copy)]
struct Versions {
    plugin: u32,
    model: u32,
}

/// The answers' texts, by the releases that they name.
type Seen = Arc<Mutex<BTreeMap<u64, BTreeSet<String>>>>;

pub(crate) fn measure(runtime: &Runtime, gristmill: &Path, components: &Path) -> Result<()> {
    let server = Server::start(gristmill, &[], Stdio::null())?;
    let guest = read(&components.join("marked.wasm"))?;
    let mut versions = Versions { plugin: 0, model: 0 };
    let mut expected = BTreeMap::new();
    runtime.block_on(async {
        server.admin.put("models/number", models::add(0.0)).await?;
        server.admin.put_json("tenants/t", &json!({ "open": true })).await?;
        server.admin.put("tenants/t/plugins/marked", marked(&guest, 0)?).await?;
        let pipeline = json!({ "pre": "marked", "model": "number", "post": "marked" });
        let answer = server.admin.put_json("tenants/t/pipelines/marked", &pipeline).await?;
        expected.insert(release_of(&answer)?, versions);
        anyhow::Ok(())
    })?;

    let seen = Seen::default();
    let question = question(&server, &seen);
    let before = steady(&question)?;
    let (began, load) = (Instant::now(), Load::start(question.clone())?);
    let releases = async {
        for number in 1..=PLUGINS + MODELS {
            let answer = if number % (PLUGINS / MODELS + 1) == 0 {
                versions.model += 1;
                let onnx = models::add(versions.model as f32);
                server.admin.put("models/number", onnx).await?
            } else {
                versions.plugin += 1;
                let file = marked(&guest, versions.plugin)?;
                server.admin.put("tenants/t/plugins/marked", file).await?
            };
            expected.insert(release_of(&answer)?, versions);
        }
        anyhow::Ok(())
    };
    from_elsewhere(runtime, releases)?;
    let seconds = began.elapsed().as_secs_f64();
    let during = load.finish()?;
    let reports = [before, during, steady(&question)?];

    let (answers, mixed) = compare(&seen.lock(), &expected);
    let failed: usize = reports.iter().map(|report| report.failures.values().sum::<usize>()).sum();
    let mut failures = BTreeMap::new();
    for report in &reports {
        failures.extend(report.failures.clone());
    }
    let had_real_time = reports.iter().all(|report| report.had_real_time);
    let answered = reports.each_ref().map(|report| report.latencies.len());
    let p50_ms = reports.each_ref().map(|report| report.percentile_ms(50.0));
    let p99_ms = reports.each_ref().map(|report| report.percentile_ms(99.0));
    let [Some(p99_before), Some(p99_during), Some(p99_after)] = p99_ms else {
        bail!("no answers: {p99_ms:?}")
    };
    let ratio = p99_during / ((p99_before + p99_after) / 2.0);
    let is_reached = failed == 0 && mixed.is_empty() && ratio <= RATIO_MAX;
    let target = format!("0 failed, 0 mixed, p99 at most {RATIO_MAX} x");
    let what = format!(
        "{} releases of a plugin and {} of a model under load",
        versions.plugin, versions.model
    );
    let figures = json!({
        "plugin_releases": versions.plugin,
        "model_releases": versions.model,
        "seconds": seconds,
        "failed": failed,
        "failures": failures,
        "releases_seen_in_answers": answers,
        "mixed": mixed,
        "p50_ms": p50_ms,
        "p99_ms": p99_ms,
        "answered": answered,
        "client_had_real_time": had_real_time,
        "ratio": ratio,
    });
    report::row(&what, &figures, Some(Goal::new(target, is_reached)));
    Ok(())
}

/// Make the releases as from another machine: no request waits for the processor because of the
/// client that makes them.
fn from_elsewhere<T: Send>(runtime: &Runtime, releases: impl Future<Output = T> + Send) -> T {
    let make = || {
        Share::Long.take("the benchmark's releases");
        runtime.block_on(releases)
    };
    thread::scope(|scope| scope.spawn(make).join()).unwrap_or_else(|panic| resume_unwind(panic))
}

/// The number of the release in the admin API's answer.
fn release_of(answer: &Value) -> Result<u64> {
    answer["release"].as_u64().with_context(|| format!("no release in {answer}"))
}

/// The guest with another mark in it.
fn marked(guest: &[u8], number: u32) -> Result<Vec<u8>> {
    const MARK: &[u8] = b"mark-000000";
    let places = guest.windows(MARK.len()).enumerate().filter(|(_, bytes)| *bytes == MARK);
    let places: Vec<_> = places.map(|(place, _)| place).collect();
    let [place] = places[..] else { bail!("marks in marked.wasm: {}", places.len()) };
    ensure!(number < 1_000_000, "{number} has too many digits");
    let mut file = guest.to_vec();
    file[place..place + MARK.len()].copy_from_slice(format!("mark-{number:06}").as_bytes());
    Ok(file)
}

fn question(server: &Server, seen: &Seen) -> Question {
    let seen = seen.clone();
    Question {
        address: server.data_plane.clone(),
        path: "/v1/t/infer/marked".into(),
        body: Bytes::new(),
        check: Arc::new(move |answer| {
            let release = answer.header("gristmill-release");
            let release = release.parse().with_context(|| format!("release {release:?}"))?;
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            seen.lock().entry(release).or_default().insert(text);
            Ok(true)
        }),
    }
}

fn steady(question: &Question) -> Result<Report> {
    let load = Load::start(question.clone())?;
    thread::sleep(QUIET);
    load.finish()
}

/// The number of releases that answers name, and descriptions of mixed answers.
fn compare(
    seen: &BTreeMap<u64, BTreeSet<String>>,
    expected: &BTreeMap<u64, Versions>,
) -> (usize, Vec<String>) {
    let mut mixed = Vec::new();
    for (release, texts) in seen {
        let right = expected
            .get(release)
            .map(|Versions { plugin, model }| format!("mark-{plugin:06} mark-{plugin:06} {model}"));
        let wrong = texts.iter().filter(|text| Some(*text) != right.as_ref());
        mixed.extend(wrong.map(|text| format!("release {release}: {text}, not {right:?}")));
    }
    (seen.len(), mixed)
}
