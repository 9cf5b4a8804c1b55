//! Texts of different lengths to an encoder, with buckets and without.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use gristmill_batch::{Lane, LaneConfig};
use gristmill_benches::harness::{Harness, submission, tenant, tensor_in};
use gristmill_core::{BufferPool, Dtype, NamedTensor, PadSpec, PadValue, Padding, PaddingSpec};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

const ENCODER: &str = "target/models/encoder-texts.onnx";

/// The numbers of an embedded token.
const WIDTH: usize = 384;

const CLIENTS: u64 = 16;
const TOKENS_MIN: usize = 3;
const TOKENS_MAX: usize = 32;
const BUCKETS: [usize; 3] = [8, 16, 32];
const BATCH_MAX: usize = 16;
const TIME: Duration = Duration::from_secs(4);

/// Answers a second with buckets, as a ratio to those without.
pub fn run(harness: &Harness) -> Result<Value> {
    let (without, _) = measure(harness, false)?;
    let (with, padding) = measure(harness, true)?;
    Ok(json!({
        "with_per_s": with,
        "without_per_s": without,
        "ratio": with / without,
        "padding_share": padding,
    }))
}

/// Answers a second, and the share of the elements that were padding.
fn measure(harness: &Harness, has_buckets: bool) -> Result<(f64, f64)> {
    let model = harness.load(ENCODER)?;
    let padding = if has_buckets { claim().resolve(&model.info)? } else { Padding::default() };
    let config = LaneConfig { padding, ..LaneConfig::new(BATCH_MAX, 4096) };
    let lane = harness.lane(model, config)?;
    let began = Instant::now();
    let until = began + TIME;
    let answered = harness.runtime.block_on(async {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|seed| tokio::spawn(client(lane.clone(), harness.pool.clone(), until, seed)))
            .collect();
        let mut answered = 0;
        for client in clients {
            answered += client.await??;
        }
        anyhow::Ok(answered)
    })?;
    let elements = lane.statistics().elements;
    let all = (elements.real + elements.padding).max(1);
    let share = elements.padding as f64 / all as f64;
    Ok((answered as f64 / began.elapsed().as_secs_f64(), share))
}

fn claim() -> PaddingSpec {
    let pad = |input: &str| PadSpec {
        input: input.to_owned(),
        axis: 1,
        value: PadValue::Whole(0),
        buckets: BUCKETS.to_vec(),
    };
    PaddingSpec { inputs: vec![pad("input"), pad("mask")], outputs: Vec::new() }
}

/// Sends one text after the other. Returns how many were answered.
async fn client(lane: Arc<Lane>, pool: BufferPool, until: Instant, seed: u64) -> Result<u64> {
    let mut random = SmallRng::seed_from_u64(seed);
    let tenant = tenant(["a", "b", "c"][seed as usize % 3]);
    let [input, mask] = ["input", "mask"].map(Arc::<str>::from);
    let mut answered = 0;
    while Instant::now() < until {
        let tokens = random.random_range(TOKENS_MIN..=TOKENS_MAX);
        let text = tensor_in(&pool, Dtype::Float32, &[1, tokens, WIDTH], 0.5);
        let marks = tensor_in(&pool, Dtype::Float32, &[1, tokens], 1.0);
        let mut request = submission(&tenant, &input, &text);
        request.inputs.push(NamedTensor { name: mask.clone(), tensor: marks });
        lane.submit(request, None).await?;
        answered += 1;
    }
    Ok(answered)
}
