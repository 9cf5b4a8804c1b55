//! Medians and percentiles of samples.

/// The value below which `percent` of the samples lie. Between two samples it lies on the line from
/// one to the other, so the median of an even number of samples is the mean of the two in the
/// middle. None of no samples.
pub fn percentile(samples: &[f64], percent: f64) -> Option<f64> {
    let last = samples.len().checked_sub(1)?;
    let mut samples = samples.to_vec();
    samples.sort_unstable_by(f64::total_cmp);
    let at = percent.clamp(0.0, 100.0) / 100.0 * last as f64;
    let (below, above) = (samples[at.floor() as usize], samples[at.ceil() as usize]);
    // The difference of two infinities is not a number.
    Some(if below == above { below } else { below + (above - below) * at.fract() })
}

/// The median of the samples. None of no samples.
pub fn median(samples: &[f64]) -> Option<f64> {
    percentile(samples, 50.0)
}

#[cfg(test)]
mod tests {
    use super::{median, percentile};

    #[test]
    fn percentiles_lie_at_samples_or_between_them() {
        let samples: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        let at = |percent| percentile(&samples, percent);
        assert_eq!([0.0, 50.0, 99.0, 100.0].map(at), [0.0, 50.0, 99.0, 100.0].map(Some));
        assert_eq!([at(12.5), at(-1.0), at(101.0)], [12.5, 0.0, 100.0].map(Some));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[f64::INFINITY, f64::INFINITY, 1.0, 1.0]), Some(f64::INFINITY));
        assert_eq!(median(&[f64::INFINITY; 2]), Some(f64::INFINITY));
        assert_eq!((median(&[7.0]), median(&[])), (Some(7.0), None));
    }
}
