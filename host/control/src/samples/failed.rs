//! The error for a release whose samples failed. Its text is for the admin plane, so it has the
//! plugins' own words.

use std::fmt;

use gristmill_core::Name;
use gristmill_snapshot::Mismatches;
use gristmill_state::{SampleFailure, Subject};

use crate::samples::variant::Variant;

/// Maximum samples whose differences are kept, and the most differences of each.
const SAMPLES_MAX: usize = 20;
const MISMATCHES_MAX: usize = 5;

/// Maximum bytes of an error's texts, and of a plugin's own words.
const WORDS_BYTES_MAX: usize = 300;

/// A sample that failed.
#[derive(Clone, Debug)]
pub(crate) struct FailedSample {
    pub(crate) tenant: Name,
    pub(crate) pipeline: Name,
    pub(crate) variant: Variant,
    pub(crate) sample: Name,
    pub(crate) mismatches: Mismatches,
    /// Why there is no response, if there is none.
    pub(crate) failure: Option<SampleFailure>,
}

/// The samples that failed, and those that did not end in time.
#[derive(Clone, Debug, Default)]
pub struct FailedSamples {
    first: Vec<FailedSample>,
    /// Further ones.
    more: usize,
    /// Those that did not end in time.
    late: usize,
    /// The time for all samples, in seconds.
    timeout_s: u64,
}

impl FailedSamples {
    /// Of a change whose samples have `timeout_s` together.
    pub(crate) fn within(timeout_s: u64) -> Self {
        Self { timeout_s, ..Self::default() }
    }

    pub(crate) fn add(&mut self, failed: FailedSample) {
        if self.first.len() == SAMPLES_MAX {
            self.more += 1;
        } else {
            self.first.push(failed);
        }
    }

    pub(crate) fn add_late(&mut self, count: usize) {
        self.late += count;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_empty() && self.late == 0
    }

    /// The same in the order of names, because samples end in any order.
    pub(crate) fn sorted(mut self) -> Self {
        self.first.sort_by(|one, other| one.names().cmp(&other.names()));
        self
    }
}

impl FailedSample {
    fn names(&self) -> [&Name; 3] {
        [&self.tenant, &self.pipeline, &self.sample]
    }
}

impl fmt::Display for FailedSample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tenant, pipeline) = (self.tenant.clone(), self.pipeline.clone());
        let subject = Subject::Pipeline { tenant, pipeline };
        let variant = if self.variant == Variant::Candidate { ", candidate" } else { "" };
        write!(f, "{subject}{variant}, sample {:?}", self.sample.as_str())?;
        let mut before = ": ";
        for mismatch in self.mismatches.first.iter().take(MISMATCHES_MAX) {
            write!(f, "{before}{mismatch}")?;
            before = "; ";
        }
        let kept = self.mismatches.first.len();
        let more = kept.saturating_sub(MISMATCHES_MAX) + self.mismatches.more;
        if more > 0 {
            write!(f, "{before}{more} more differences")?;
        }
        if let Some(SampleFailure { code, detail, internal, .. }) = &self.failure {
            write!(f, " ({}: {}", code.as_str(), start(detail))?;
            if let Some(words) = internal {
                write!(f, "; the plugin said {:?}", start(words))?;
            }
            f.write_str(")")?;
        }
        Ok(())
    }
}

impl fmt::Display for FailedSamples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, more, late, timeout_s } = self;
        f.write_str(
            "the change is not made, because samples failed (?skip_samples=true makes it)",
        )?;
        for failed in first {
            write!(f, "; {failed}")?;
        }
        if *more > 0 {
            write!(f, "; {more} more samples failed")?;
        }
        if *late > 0 {
            write!(f, "; {late} samples did not end within {timeout_s} s (samples_timeout_s)")?;
        }
        Ok(())
    }
}

impl std::error::Error for FailedSamples {}

fn start(text: &str) -> &str {
    &text[..text.floor_char_boundary(WORDS_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use gristmill_core::ErrorCode;

    use super::*;
    use crate::testing::name;

    fn failed(sample: &str, differences: usize, failure: Option<SampleFailure>) -> FailedSample {
        let mut mismatches = Mismatches::default();
        (0..differences).for_each(|index| mismatches.add(format!("$[{index}]"), "1", "2"));
        let (tenant, pipeline, sample) = (name("acme"), name("digits"), name(sample));
        let variant = Variant::Stable;
        FailedSample { tenant, pipeline, variant, sample, mismatches, failure }
    }

    #[test]
    fn each_failed_sample_is_named_with_its_differences() {
        let failure = SampleFailure {
            status: 500,
            code: ErrorCode::PluginTrapped,
            detail: "pre: it trapped".into(),
            internal: Some("panicked at line 7\n".into()),
        };
        let mut all = FailedSamples::within(60);
        assert!(all.is_empty());
        all.add(failed("b", 7, None));
        all.add(failed("a", 1, Some(failure)));
        all.add_late(2);
        let text = all.sorted().to_string();
        assert_eq!(
            text,
            "the change is not made, because samples failed (?skip_samples=true makes it); \
             tenant \"acme\", pipeline \"digits\", sample \"a\": $[0]: expected 1, found 2 \
             (plugin_trapped: pre: it trapped; the plugin said \"panicked at line 7\\n\"); \
             tenant \"acme\", pipeline \"digits\", sample \"b\": $[0]: expected 1, found 2; \
             $[1]: expected 1, found 2; $[2]: expected 1, found 2; $[3]: expected 1, found 2; \
             $[4]: expected 1, found 2; 2 more differences; \
             2 samples did not end within 60 s (samples_timeout_s)"
        );
    }

    #[test]
    fn the_text_is_bounded() {
        let mut all = FailedSamples::within(60);
        let words = "ä".repeat(1 << 20);
        let failure = SampleFailure {
            status: 500,
            code: ErrorCode::PluginFailed,
            detail: words.clone(),
            internal: Some(words),
        };
        (0..1000)
            .for_each(|index| all.add(failed(&format!("s{index}"), 30, Some(failure.clone()))));
        let text = all.to_string();
        assert!(
            text.len() < 32 << 10 && text.contains("980 more samples failed"),
            "{}",
            text.len()
        );
    }
}
