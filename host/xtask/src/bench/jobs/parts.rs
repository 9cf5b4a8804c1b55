//! Parts of jobs, beside their upper bounds: the same work without the host's part.

use std::ffi::OsStr;

use anyhow::Result;
use serde_json::{Value, json};

use crate::bench::criterion::{self, median_us};
use crate::bench::harness::Bench;
use crate::bench::models;
use crate::bench::peers::peer::JOBS;
use crate::shell::{number, output, program, step};
use crate::table::Bound::AtMost;

/// The targets: microseconds that a handler adds to a run of a model; a tokenizer in a guest over
/// the library; a photo of 12 MP as a tensor over Pillow's full decode, and over `draft` at the
/// same scale.
const INFER_US_MAX: f64 = 5.0;
const TOKENIZER_RATIO_MAX: f64 = 1.3;
const PHOTO_RATIO_MAX: f64 = 0.2;
const DRAFT_RATIO_MAX: f64 = 0.7;

/// The runs of a model, and the encodings, of one criterion benchmark.
const AT_A_TIME: f64 = 100.0;

type JobPart = fn(&mut Bench<'_>) -> Result<()>;

/// Each part by its word of `--only`.
pub(super) const PARTS: [(&str, JobPart); 4] = [
    ("buckets", buckets),
    ("infer", infer),
    ("tokenizer", tokenizer),
    ("large-photo", large_photo),
];

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    for (name, part) in PARTS {
        if bench.wants(name) {
            step(&format!("measuring the part {name}"));
            if let Err(error) = part(bench) {
                bench.add_failure(name.to_owned(), &error);
            }
        }
    }
    Ok(())
}

/// Texts of different lengths to an encoder, with buckets over without: a scenario of
/// `bench batch`.
fn buckets(bench: &mut Bench<'_>) -> Result<()> {
    models::encoder_of_texts()?;
    let rows = bench.lines("batch", &[OsStr::new("padding")])?;
    bench.add_rows(rows)
}

/// A run that a handler asks for, over the same run by the task that has its tensors.
fn infer(bench: &mut Bench<'_>) -> Result<()> {
    criterion::measure(&bench.components, "^infer_100/")?;
    let us = |name: &str| Ok::<_, anyhow::Error>(median_us("infer_100", name)? / AT_A_TIME);
    let (pipeline_us, handler_us) = (us("pipeline")?, us("handler")?);
    let added_us = handler_us - pipeline_us;
    let figures = json!({
        "added_us": added_us, "pipeline_us": pipeline_us, "handler_us": handler_us,
    });
    let row = bench.table.row("infer from a handler, over the same run from a pipeline", figures);
    row.with_bound(added_us, AtMost(INFER_US_MAX), "us added");
    Ok(())
}

/// 32 tokens in a guest, over the library called directly.
fn tokenizer(bench: &mut Bench<'_>) -> Result<()> {
    criterion::measure(&bench.components, "^tokenizer_100/")?;
    for kind in ["word_piece", "byte_level"] {
        let us = |side: &str| {
            let us = median_us("tokenizer_100", &format!("{kind}_{side}"))?;
            Ok::<_, anyhow::Error>(us / AT_A_TIME)
        };
        let (library_us, guest_us) = (us("library")?, us("guest")?);
        let ratio = guest_us / library_us;
        let figures = json!({ "ratio": ratio, "library_us": library_us, "guest_us": guest_us });
        let what = format!("tokenizer {kind}, 32 tokens from a guest, over the library");
        bench.table.row(what, figures).with_bound(ratio, AtMost(TOKENIZER_RATIO_MAX), "x");
    }
    Ok(())
}

/// A JPEG of 12 MP to a tensor, over Pillow. The script makes the file that criterion decodes.
fn large_photo(bench: &mut Bench<'_>) -> Result<()> {
    let python = JOBS.install()?;
    let printed = output(program(python).arg("benches/scenarios/large_photo.py"))?;
    let pillow: Value = serde_json::from_str(&printed)?;
    criterion::measure(&bench.components, "^large_photo/")?;
    let ms = median_us("large_photo", "reduced")? / 1e3;
    for (how, figure, ratio_max) in [
        ("a full decode", "full_ms", Some(PHOTO_RATIO_MAX)),
        ("draft at a quarter, as Gristmill decodes", "quarter_ms", Some(DRAFT_RATIO_MAX)),
        ("draft at an eighth", "eighth_ms", None),
    ] {
        let pillow_ms = number(&pillow, &format!("/{figure}"))?;
        let ratio = ms / pillow_ms;
        let figures = json!({ "ratio": ratio, "gristmill_ms": ms, "pillow_ms": pillow_ms });
        let row = bench.table.row(format!("12 MP JPEG to a tensor, over Pillow: {how}"), figures);
        if let Some(ratio_max) = ratio_max {
            row.with_bound(ratio, AtMost(ratio_max), "x Pillow");
        }
    }
    Ok(())
}
