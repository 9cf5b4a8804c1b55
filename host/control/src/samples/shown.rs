//! What samples got, for a dry run that asks for it in place of a comparison.
//!
//! Invariant: an answer that would make all of them larger than [`ANSWERS_BYTES_MAX`] is dropped.

use gristmill_core::Name;
use gristmill_state::SampleAnswer;

/// The most bytes of all answers of a change.
const ANSWERS_BYTES_MAX: usize = 4 << 20;

/// The most samples of a change whose answers are shown.
const SAMPLES_MAX: usize = 64;

/// What a sample got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownSample {
    /// The tenant of its pipeline.
    pub tenant: Name,
    /// The pipeline.
    pub pipeline: Name,
    /// Whether the pipeline's candidate answered.
    pub is_candidate: bool,
    /// Its name.
    pub sample: Name,
    /// The answer; none if it is too large to be shown.
    pub answer: Option<SampleAnswer>,
}

/// The answers of a change's samples.
#[derive(Default)]
pub(crate) struct ShownSamples {
    list: Vec<ShownSample>,
}

impl ShownSamples {
    /// Add one, which takes the place of one that ran before.
    pub(crate) fn add(&mut self, mut new: ShownSample) {
        self.list.retain(|old| old.names() != new.names());
        let kept: usize = self.list.iter().map(ShownSample::bytes).sum();
        if kept.saturating_add(new.bytes()) > ANSWERS_BYTES_MAX {
            new.answer = None;
        }
        if self.list.len() < SAMPLES_MAX {
            self.list.push(new);
        }
    }

    /// All of them, in the order of names.
    pub(crate) fn into_list(mut self) -> Vec<ShownSample> {
        self.list.sort_by(|one, other| one.names().cmp(&other.names()));
        self.list
    }
}

impl ShownSample {
    /// The length of its body.
    fn bytes(&self) -> usize {
        match &self.answer {
            Some(SampleAnswer::Response { body, .. }) => body.len(),
            _ => 0,
        }
    }

    fn names(&self) -> (&Name, &Name, bool, &Name) {
        (&self.tenant, &self.pipeline, self.is_candidate, &self.sample)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::testing::name;

    fn shown(sample: &str, bytes: usize) -> ShownSample {
        let answer = SampleAnswer::Response {
            status: 200,
            content_type: String::new(),
            body: Bytes::from(vec![0; bytes]),
        };
        let (tenant, pipeline) = (name("acme"), name("digits"));
        let sample = name(sample);
        ShownSample { tenant, pipeline, is_candidate: false, sample, answer: Some(answer) }
    }

    #[test]
    fn all_answers_together_are_bounded() {
        let mut all = ShownSamples::default();
        all.add(shown("b", 3 << 20));
        all.add(shown("a", 2 << 20));
        all.add(shown("c", 1 << 20));
        (0..100).for_each(|index| all.add(shown(&format!("d{index}"), 0)));
        let list = all.into_list();
        let is_shown = |sample: &ShownSample| (sample.sample.to_string(), sample.answer.is_some());
        let first: Vec<_> = list.iter().take(3).map(is_shown).collect();
        assert_eq!(first, [("a".into(), false), ("b".into(), true), ("c".into(), true)]);
        assert_eq!(list.len(), SAMPLES_MAX);
    }

    #[test]
    fn a_sample_that_runs_again_is_shown_once() {
        let mut all = ShownSamples::default();
        all.add(shown("a", 3 << 20));
        all.add(shown("a", 4 << 20));
        assert_eq!(all.into_list(), [shown("a", 4 << 20)]);
    }
}
