//! The stages of a request, and how long they took.

use std::time::Duration;

/// The names of a request's stages: of its spans, metrics and `Server-Timing` entries.
pub mod stage {
    /// Finding the tenant and checking the key.
    pub const AUTH: &str = "auth";
    /// Reading and decoding the body.
    pub const READ: &str = "read";
    /// The call of `preprocess`.
    pub const PRE: &str = "pre";
    /// The wait in the model's queue.
    pub const QUEUE: &str = "queue";
    /// Copying the batch together.
    pub const STAGING: &str = "staging";
    /// The model's run.
    pub const INFER: &str = "infer";
    /// The call of `postprocess`.
    pub const POST: &str = "post";
}

/// How long each stage of a request took. A stage that was not reached has no time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stages {
    /// From arrival until the caller was admitted.
    pub auth: Option<Duration>,
    /// Reading and decoding its body.
    pub read: Option<Duration>,
    /// In the preprocessor.
    pub pre: Option<Duration>,
    /// In the model's queue.
    pub queue: Option<Duration>,
    /// Copying its batch together. This is a part of `infer`.
    pub staging: Option<Duration>,
    /// In the model. This includes copying its batch together and taking it apart.
    pub infer: Option<Duration>,
    /// In the postprocessor.
    pub post: Option<Duration>,
}

impl Stages {
    /// The names of the stages, in the order in which they run.
    pub const NAMES: [&'static str; 7] = [
        stage::AUTH,
        stage::READ,
        stage::PRE,
        stage::QUEUE,
        stage::STAGING,
        stage::INFER,
        stage::POST,
    ];

    /// The times of the stages of [`Stages::NAMES`], which do not overlap: `infer` is without
    /// staging.
    pub fn times(&self) -> [Option<Duration>; Self::NAMES.len()] {
        let Self { auth, read, pre, queue, staging, infer, post } = *self;
        let infer = infer.map(|infer| infer.saturating_sub(staging.unwrap_or_default()));
        [auth, read, pre, queue, staging, infer, post]
    }
}
