//! Which of a pipeline's variants answers a sample.

/// A variant of a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    /// The pipeline itself.
    Stable,
    /// Its candidate.
    Candidate,
}
