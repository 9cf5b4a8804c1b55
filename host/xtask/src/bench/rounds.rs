//! Rounds of several measurements in turns, and what they come to.

use anyhow::Result;
use serde_json::{Value, json};

/// What a client measured in a round. A client that does not measure a figure leaves 0.
#[derive(Clone, Copy, Default)]
pub(crate) struct Measured {
    pub(crate) per_second: f64,
    pub(crate) p50_us: f64,
    pub(crate) p90_us: f64,
    pub(crate) p99_us: f64,
    /// The client's own CPU time for each answer.
    pub(crate) client_cpu_us: f64,
}

/// A round of one of the sides that are compared.
pub(super) type Side<'a> = &'a dyn Fn() -> Result<Measured>;

/// The answers a second of rounds, compared with those of a reference.
pub(super) struct Comparison {
    /// The median of the ratios of the rounds.
    pub(super) ratio: f64,
    /// All of them, sorted.
    pub(super) ratios: Vec<f64>,
    /// The medians of both.
    pub(super) per_s: f64,
    pub(super) reference_per_s: f64,
}

impl Comparison {
    /// The figures of a row, with the names of the answers a second of both.
    pub(super) fn figures(&self, per_s: &str, reference_per_s: &str) -> Value {
        json!({
            "ratio": self.ratio,
            "ratios": self.ratios,
            per_s: self.per_s,
            reference_per_s: self.reference_per_s,
        })
    }
}

/// Run a round of each side, again and again. Each time another side is first.
pub(super) fn in_turns<const N: usize>(
    rounds: usize,
    sides: [Side<'_>; N],
) -> Result<[Vec<Measured>; N]> {
    let mut measured = [const { Vec::new() }; N];
    for round in 0..rounds {
        for turn in 0..N {
            let at = (round + turn) % N;
            measured[at].push(sides[at]()?);
        }
    }
    Ok(measured)
}

/// Compare rounds, of which there is at least one pair.
pub(super) fn compare(rounds: &[Measured], reference: &[Measured]) -> Comparison {
    let pairs = rates(rounds).into_iter().zip(rates(reference));
    let mut ratios: Vec<f64> = pairs.map(|(rate, reference)| rate / reference).collect();
    ratios.sort_by(f64::total_cmp);
    Comparison {
        ratio: median(ratios.clone()),
        ratios,
        per_s: median(rates(rounds)),
        reference_per_s: median(rates(reference)),
    }
}

/// The answers a second of each round.
pub(super) fn rates(rounds: &[Measured]) -> Vec<f64> {
    rounds.iter().map(|round| round.per_second).collect()
}

/// The median of a figure of the rounds.
pub(super) fn median_of(rounds: &[Measured], figure: fn(&Measured) -> f64) -> f64 {
    median(rounds.iter().map(figure).collect())
}

/// The median; of an even number of figures, the larger one in the middle.
pub(super) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
