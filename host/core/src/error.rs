//! The one list of things that can go wrong, as a client sees them.

use std::error::Error;
use std::time::Duration;

/// An error that a client is told: its text is for the client, and its code says what to do.
pub trait ClientError: Error {
    /// The stable code.
    fn code(&self) -> ErrorCode;

    /// The time after which trying again may help, if it is known.
    fn retry_after(&self) -> Option<Duration> {
        None
    }
}

macro_rules! error_codes {
    ($($code:ident $text:literal: $meaning:literal)*) => {
        /// A stable code. Every error of every crate maps to one; the edges map each to a status.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $(#[doc = $meaning] $code,)*
        }

        impl ErrorCode {
            /// Every code, in the order of the list.
            pub const ALL: &[Self] = &[$(Self::$code),*];

            /// The code as clients see it.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$code => $text,)*
                }
            }

            /// Its meaning, in a sentence.
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Self::$code => $meaning,)*
                }
            }
        }
    };
}

error_codes! {
    InvalidRequest "invalid_request": "The request cannot be understood."
    Unsupported "unsupported": "The server does not offer what is asked for."
    Unauthenticated "unauthenticated":
        "No credentials were given, or none that open what is asked for."
    Forbidden "forbidden": "The credentials are good, but not for this."
    NotFound "not_found": "There is nothing at this path, or nothing of this name."
    TenantNotFound "tenant_not_found": "There is no tenant of that name."
    PipelineNotFound "pipeline_not_found": "The tenant has no pipeline of that name."
    MethodNotAllowed "method_not_allowed": "The path exists, but not for this method."
    RequestTimeout "request_timeout": "The client took too long to send the request."
    Conflict "conflict":
        "The change does not fit the state that serves: something else uses what it would remove."
    BodyTooLarge "body_too_large":
        "The body is over the limit, as it was sent or once it is decompressed."
    UnsupportedMediaType "unsupported_media_type":
        "The plugin does not take this media type, or nothing reads this content encoding."
    Unprocessable "unprocessable":
        "Understood, but cannot be served: a plugin's verdict, or a faulty configuration."
    InvalidPlugin "invalid_plugin": "The uploaded file is not a usable plugin."
    InvalidModel "invalid_model": "The uploaded file is not a usable model."
    PluginFailed "plugin_failed": "The plugin said that it failed."
    PluginTrapped "plugin_trapped": "The plugin trapped."
    PluginOutOfMemory "plugin_out_of_memory":
        "The plugin went over its memory, table or handle limit."
    PluginInvalidOutput "plugin_invalid_output":
        "The plugin's answer cannot be used: a wrong tensor, a response over its limits."
    PluginTimeout "plugin_timeout": "The plugin used up its CPU time."
    ModelFailed "model_failed": "The model failed on this input."
    QueueFull "queue_full": "The queue of the model is full."
    TenantBusy "tenant_busy":
        "The tenant's requests and answers under way hold as many bytes as they may."
    Overloaded "overloaded": "The model is too busy to answer in time."
    DeadlineExceeded "deadline_exceeded": "The deadline passed."
    Unavailable "unavailable":
        "What this needs is not served now: it did not load, or the server starts or stops."
    InsufficientStorage "insufficient_storage": "The server's disk has no room for it."
    Internal "internal": "The server's own fault; its log says more."
}
