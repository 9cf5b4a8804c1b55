//! The control plane: releases under load, and many tenants. The program `control` of `benches/`
//! measures them; this file compares the figures with the targets.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::options::Options;
use super::rounds::median;
use super::shipped::Shipped;
use super::table::{Table, Verdict};
use crate::setup;
use crate::shell::{json_lines, program, step};

/// The targets: the p99 during releases as a ratio to the p99 without them; the memory of a tenant,
/// the time of a start, and the time of one more release as a ratio to that with few tenants; the
/// p99 of a pipeline's own answers beside a candidate and beside a shadow, as a ratio to that
/// without.
const SWAP_RATIO_MAX: f64 = 1.2;
const BYTES_PER_TENANT_MAX: f64 = 10.0 * 1024.0;
const READY_S_MAX: f64 = 3.0;
const DEPLOY_RATIO_MAX: f64 = 1.5;
const CANDIDATE_RATIO_MAX: f64 = 1.05;
const SHADOW_RATIO_MAX: f64 = 1.2;

pub(crate) fn run(shipped: &Shipped, options: &Options) -> Result<()> {
    let onnxruntime = setup::install_onnxruntime()?;
    step("measuring releases (about fifteen minutes)");
    let mut control = program(shipped.binary("control"));
    control
        .arg(&shipped.gristmill)
        .arg(&shipped.components)
        .args(&options.only)
        .env("ORT_DYLIB_PATH", onnxruntime);
    let mut table = Table::new("control", "cargo xtask bench control");
    for figures in json_lines(&mut control)? {
        match figures["what"].as_str() {
            Some("swaps") => swaps(figures, &mut table)?,
            Some("tenants") => tenants(&figures, &mut table)?,
            Some("candidates") => candidates(&figures, &mut table)?,
            other => anyhow::bail!("no case {other:?}"),
        }
    }
    table.finish()
}

fn swaps(mut figures: Value, table: &mut Table) -> Result<()> {
    let p99 = |at: usize| number(&figures, &format!("/p99_ms/{at}"));
    let (before, during, after) = (p99(0)?, p99(1)?, p99(2)?);
    let ratio = during / ((before + after) / 2.0);
    let mixed = figures["mixed"].as_array().context("no mixed answers")?.len();
    let failed = &figures["failed"];
    let what = format!(
        "{} releases of a plugin and {} of a model under load",
        figures["plugin_releases"], figures["model_releases"]
    );
    let measured = format!(
        "{failed} failed, {mixed} mixed, p99 {during:.2} ms: {ratio:.2} x without releases"
    );
    let reached = *failed == 0 && mixed == 0 && ratio <= SWAP_RATIO_MAX;
    figures["ratio"] = json!(ratio);
    let target = format!("0 failed, 0 mixed, p99 at most {SWAP_RATIO_MAX} x");
    table.row_to_reach(what, measured, figures, Verdict::new(target, reached));
    Ok(())
}

fn tenants(figures: &Value, table: &mut Table) -> Result<()> {
    let what = |of: &str| format!("10,000 tenants: {of}");
    let bytes = number(figures, "/bytes_per_tenant")?;
    let verdict = Verdict::new("at most 10 KiB", bytes <= BYTES_PER_TENANT_MAX);
    let own = json!({ "bytes": bytes, "resident_mib": figures["resident_mib"] });
    let measured = format!("{:.1} KiB", bytes / 1024.0);
    table.row_to_reach(what("memory of a tenant"), measured, own, verdict);

    let ready = number(figures, "/ready_s")?;
    let verdict = Verdict::new(format!("at most {READY_S_MAX} s"), ready <= READY_S_MAX);
    let own = json!({ "seconds": ready });
    table.row_to_reach(what("start with warm caches"), format!("{ready:.2} s"), own, verdict);

    let (few, many) = (number(figures, "/deploy_ms/0")?, number(figures, "/deploy_ms/1")?);
    let ratio = many / few;
    let target = format!("at most {DEPLOY_RATIO_MAX} x the time with 100 tenants");
    let verdict = Verdict::new(target, ratio <= DEPLOY_RATIO_MAX);
    let own = json!({ "ratio": ratio, "ms": figures["deploy_ms"] });
    let measured = format!("{many:.2} ms: {ratio:.2} x");
    table.row_to_reach(what("one more release"), measured, own, verdict);

    let (few, many) = (rounds(figures, "/p50_ms/0")?, rounds(figures, "/p50_ms/1")?);
    let least = few.iter().copied().fold(f64::INFINITY, f64::min);
    let most = few.iter().copied().fold(0.0, f64::max);
    let (few, many) = (median(few), median(many));
    let own = json!({ "p50_ms": figures["p50_ms"], "p99_ms": figures["p99_ms"] });
    let measured = format!(
        "p50 {many:.2} ms: {:.2} x that with 100 tenants, whose rounds have {least:.2} to {most:.2}",
        many / few
    );
    let verdict = Verdict::new("within the rounds with 100 tenants", many <= most);
    table.row_to_reach(what("a request"), measured, own, verdict);
    Ok(())
}

/// The medians of the rounds are compared.
fn candidates(figures: &Value, table: &mut Table) -> Result<()> {
    let of_way = |way: usize| anyhow::Ok(median(rounds(figures, &format!("/p99_ms/{way}"))?));
    let without = of_way(0)?;
    for (way, what, most) in [
        (1, "a candidate with 10 % of the traffic", CANDIDATE_RATIO_MAX),
        (2, "a shadow of each request", SHADOW_RATIO_MAX),
    ] {
        let p99 = of_way(way)?;
        let ratio = p99 / without;
        let verdict = Verdict::new(format!("at most {most} x without"), ratio <= most);
        let measured = format!("p99 of the pipeline's own answers {p99:.2} ms: {ratio:.2} x");
        let mut own = figures.clone();
        own["ratio"] = json!(ratio);
        table.row_to_reach(what, measured, own, verdict);
    }
    Ok(())
}

/// The figures of the rounds.
fn rounds(figures: &Value, pointer: &str) -> Result<Vec<f64>> {
    let rounds = figures.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    let rounds: Vec<_> = rounds.filter_map(Value::as_f64).collect();
    ensure!(!rounds.is_empty(), "no rounds {pointer}");
    Ok(rounds)
}

fn number(figures: &Value, pointer: &str) -> Result<f64> {
    let found = figures.pointer(pointer).and_then(Value::as_f64);
    found.with_context(|| format!("no number {pointer}"))
}
