//! The stages of a request, and how long they took.

use std::fmt;
use std::time::Duration;

/// A stage of a request. The stages run in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Finding the tenant and checking the key.
    Auth,
    /// Reading and decoding the body.
    Read,
    /// The call of `preprocess`.
    Pre,
    /// The wait in the model's queue.
    Queue,
    /// Copying the batch together.
    Staging,
    /// The model's run.
    Infer,
    /// The call of `postprocess`.
    Post,
    /// The call of `handle`, without the time in which it waits for models. A handler has no other
    /// calls; its runs of models lie within this one.
    Handle,
    /// The waits of plugins for stores and other services. They are parts of the calls.
    Lookup,
}

impl Stage {
    /// All stages, in their order.
    pub const ALL: [Self; 9] = [
        Self::Auth,
        Self::Read,
        Self::Pre,
        Self::Queue,
        Self::Staging,
        Self::Infer,
        Self::Post,
        Self::Handle,
        Self::Lookup,
    ];

    /// The stages that are calls of plugins.
    pub const CALLS: [Self; 3] = [Self::Pre, Self::Post, Self::Handle];

    /// The name, as spans, metrics and `Server-Timing` entries have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Read => "read",
            Self::Pre => "pre",
            Self::Queue => "queue",
            Self::Staging => "staging",
            Self::Infer => "infer",
            Self::Post => "post",
            Self::Handle => "handle",
            Self::Lookup => "lookup",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
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
    /// In the handler, without the time in which it waited for models.
    pub handle: Option<Duration>,
    /// In stores, for its plugins. This is a part of `pre`, `post` and `handle`.
    pub lookup: Option<Duration>,
}

impl Stages {
    /// Add to the time of a stage.
    pub(crate) fn add(&mut self, stage: Stage, took: Duration) {
        let time = match stage {
            Stage::Auth => &mut self.auth,
            Stage::Read => &mut self.read,
            Stage::Pre => &mut self.pre,
            Stage::Queue => &mut self.queue,
            Stage::Staging => &mut self.staging,
            Stage::Infer => &mut self.infer,
            Stage::Post => &mut self.post,
            Stage::Handle => &mut self.handle,
            Stage::Lookup => &mut self.lookup,
        };
        *time = Some(time.unwrap_or_default() + took);
    }
}
