//! Requests of several texts of different lengths to an encoder, with buckets and without.
//!
//! A client fills the texts of a request up to the longest of them, as tokenizers do.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use gristmill_batch::{Lane, LaneConfig};
use gristmill_benches::harness::{Harness, submission, tenant};
use gristmill_core::{
    BufferPool, Dtype, NamedTensor, PadSpec, PadValue, Padding, PaddingSpec, Tensor,
};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

const ENCODER: &str = "target/models/encoder-tokens.onnx";

/// The tokens that the encoder knows. Number 0 fills texts up.
const VOCABULARY: i64 = 1024;

const CLIENTS: u64 = 16;
const TEXTS: usize = 8;
const TOKENS_MIN: usize = 5;
const TOKENS_MAX: usize = 200;
const BUCKETS: [usize; 12] = [16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 200];
const BATCH_MAX: usize = 16;
const TIME: Duration = Duration::from_secs(10);

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
    PaddingSpec { inputs: vec![pad("input_ids"), pad("attention_mask")], outputs: Vec::new() }
}

/// Sends one request after the other. Returns how many were answered.
async fn client(lane: Arc<Lane>, pool: BufferPool, until: Instant, seed: u64) -> Result<u64> {
    let mut random = SmallRng::seed_from_u64(seed);
    let tenant = tenant(["a", "b", "c"][seed as usize % 3]);
    let [ids, mask] = ["input_ids", "attention_mask"].map(Arc::<str>::from);
    let mut answered = 0;
    while Instant::now() < until {
        let lengths: [usize; TEXTS] =
            std::array::from_fn(|_| random.random_range(TOKENS_MIN..=TOKENS_MAX));
        let longest = lengths.into_iter().max().unwrap_or_default();
        let mut tokens = vec![0; TEXTS * longest];
        let mut marks = tokens.clone();
        let rows = tokens.chunks_mut(longest).zip(marks.chunks_mut(longest));
        for ((tokens, marks), length) in rows.zip(lengths) {
            tokens[..length].fill_with(|| random.random_range(1..VOCABULARY));
            marks[..length].fill(1);
        }
        let mut request = submission(&tenant, &ids, &whole_numbers(&pool, &tokens)?);
        request
            .inputs
            .push(NamedTensor { name: mask.clone(), tensor: whole_numbers(&pool, &marks)? });
        lane.submit(request, None).await?;
        answered += 1;
    }
    Ok(answered)
}

/// A tensor of the texts of a request.
fn whole_numbers(pool: &BufferPool, values: &[i64]) -> Result<Tensor> {
    let shape = [TEXTS, values.len() / TEXTS].as_slice().into();
    Ok(Tensor::new(Dtype::Int64, shape, pool.copy_from(bytemuck::cast_slice(values)))?)
}
