//! The one list of things that can go wrong, as a client sees them.

/// A stable code. Every error of every crate maps to one; the edges map each to a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// The request cannot be understood.
    InvalidRequest,
    /// What is asked for is not offered.
    Unsupported,
    /// No credentials were given.
    Unauthenticated,
    /// The credentials given do not open this.
    Forbidden,
    /// There is nothing at this path.
    NotFound,
    /// No tenant of that name.
    TenantNotFound,
    /// The tenant has no pipeline of that name.
    PipelineNotFound,
    /// The path exists, but not for this method.
    MethodNotAllowed,
    /// The client took too long to send the request.
    RequestTimeout,
    /// The change does not fit the state that serves: something else uses what it would remove.
    Conflict,
    /// The body is over the limit.
    BodyTooLarge,
    /// The plugin does not take this media type.
    UnsupportedMediaType,
    /// Understood, but cannot be served: a plugin's verdict, or a faulty configuration.
    Unprocessable,
    /// The uploaded file is no usable plugin.
    InvalidPlugin,
    /// The uploaded file is no usable model.
    InvalidModel,
    /// The plugin said that it failed.
    PluginFailed,
    /// The plugin trapped.
    PluginTrapped,
    /// The plugin went over its memory, table or handle limit.
    PluginOutOfMemory,
    /// The plugin's answer is not one that can be used: a wrong tensor, an oversized response.
    PluginInvalidOutput,
    /// The plugin used up its CPU time.
    PluginTimeout,
    /// The model failed on this input.
    ModelFailed,
    /// The lane's queue is full.
    QueueFull,
    /// The tenant's requests and answers under way hold as many bytes as they may.
    TenantBusy,
    /// The model is too busy to answer in time.
    Overloaded,
    /// The deadline passed.
    DeadlineExceeded,
    /// Something this needs is not being served just now.
    Unavailable,
    /// The server's disk has no room for it.
    InsufficientStorage,
    /// The host's own fault.
    Internal,
}

impl ErrorCode {
    /// The code as clients see it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::Unsupported => "unsupported",
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::TenantNotFound => "tenant_not_found",
            Self::PipelineNotFound => "pipeline_not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::RequestTimeout => "request_timeout",
            Self::Conflict => "conflict",
            Self::BodyTooLarge => "body_too_large",
            Self::UnsupportedMediaType => "unsupported_media_type",
            Self::Unprocessable => "unprocessable",
            Self::InvalidPlugin => "invalid_plugin",
            Self::InvalidModel => "invalid_model",
            Self::PluginFailed => "plugin_failed",
            Self::PluginTrapped => "plugin_trapped",
            Self::PluginOutOfMemory => "plugin_out_of_memory",
            Self::PluginInvalidOutput => "plugin_invalid_output",
            Self::PluginTimeout => "plugin_timeout",
            Self::ModelFailed => "model_failed",
            Self::QueueFull => "queue_full",
            Self::TenantBusy => "tenant_busy",
            Self::Overloaded => "overloaded",
            Self::DeadlineExceeded => "deadline_exceeded",
            Self::Unavailable => "unavailable",
            Self::InsufficientStorage => "insufficient_storage",
            Self::Internal => "internal",
        }
    }
}
