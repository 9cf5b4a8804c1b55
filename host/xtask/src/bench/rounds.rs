//! Alternating rounds of two measurements, and their ratios.

use anyhow::Result;

/// The ratios of pairs of rounds.
pub(super) struct Ratios {
    pub(super) least: f64,
    pub(super) median: f64,
    pub(super) most: f64,
    /// All of them, sorted.
    pub(super) all: Vec<f64>,
}

/// Run a round of each, again and again, alternating which is first.
pub(super) fn in_turns<T, U>(
    rounds: usize,
    one: impl Fn() -> Result<T>,
    other: impl Fn() -> Result<U>,
) -> Result<(Vec<T>, Vec<U>)> {
    let (mut ones, mut others) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        if round % 2 == 0 {
            ones.push(one()?);
            others.push(other()?);
        } else {
            others.push(other()?);
            ones.push(one()?);
        }
    }
    Ok((ones, others))
}

impl Ratios {
    /// Of these figures, of which there is at least one pair.
    pub(super) fn of(figures: impl Iterator<Item = f64>, over: impl Iterator<Item = f64>) -> Self {
        let mut all: Vec<f64> = figures.zip(over).map(|(figure, over)| figure / over).collect();
        all.sort_by(f64::total_cmp);
        Self { least: all[0], median: median(all.clone()), most: all[all.len() - 1], all }
    }
}

/// The median; of an even number of figures, the larger one in the middle.
pub(super) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
