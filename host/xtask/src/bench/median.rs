//! The median of the figures of several rounds.

/// The median; of an even number of figures, the larger one in the middle.
pub(super) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
