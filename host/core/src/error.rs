//! The one list of things that can go wrong, as a client sees them.

use std::error::Error;
use std::time::Duration;

use serde::Serialize;

/// An error that a client is told: its text is for the client, and its code says what to do.
pub trait ClientError: Error {
    /// The stable code.
    fn code(&self) -> ErrorCode;

    /// The time after which trying again may help, if it is known.
    fn retry_after(&self) -> Option<Duration> {
        None
    }

    /// Whether it tells that a secret of the request is somebody else's, as a caller who guesses
    /// would learn.
    fn meets_secret(&self) -> bool {
        false
    }

    /// All faults of the request's document, if it has any.
    fn faults(&self) -> Vec<DocumentFault> {
        Vec::new()
    }
}

/// A fault of a document, and its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DocumentFault {
    /// The JSON pointer (RFC 6901) of the faulty value; empty for the whole document. It may name a
    /// value that is missing.
    pub pointer: String,
    /// The text for the client.
    pub detail: String,
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

impl ErrorCode {
    /// Whether a request with this code did not run because of other requests.
    pub fn is_busy(self) -> bool {
        matches!(self, Self::QueueFull | Self::TenantBusy | Self::QuotaExceeded | Self::Overloaded)
    }
}

error_codes! {
    InvalidRequest "invalid_request": "The request cannot be understood."
    Unsupported "unsupported": "The server does not offer what is asked for."
    Unauthenticated "unauthenticated":
        "The credentials are missing or wrong."
    Forbidden "forbidden": "The credentials are valid, but do not allow this."
    NotFound "not_found": "Nothing exists at this path or with this name."
    TenantNotFound "tenant_not_found": "There is no tenant of that name."
    PipelineNotFound "pipeline_not_found": "The tenant has no pipeline of that name."
    MethodNotAllowed "method_not_allowed": "The path exists, but not for this method."
    RequestTimeout "request_timeout": "The client took too long to send the request."
    Conflict "conflict":
        "The change conflicts with the current state: something uses what it would remove, it goes \
         over a limit of its tenant, or a part of a file does not follow the one before it. It \
         is also the answer while another profile is being recorded."
    PreconditionFailed "precondition_failed":
        "`If-Match`, `If-None-Match` or `expected_release` does not fit what is there: it was \
         changed, made or deleted meanwhile."
    BodyTooLarge "body_too_large":
        "The body is over the limit, as it was sent or once it is decompressed."
    UnsupportedMediaType "unsupported_media_type":
        "The plugin does not take this media type, or the server does not support this content \
         encoding."
    Unprocessable "unprocessable":
        "The request was understood, but a plugin refused it or a configuration in it is wrong."
    InvalidPlugin "invalid_plugin": "The uploaded file is not a usable plugin."
    UnsignedPlugin "unsigned_plugin":
        "The tenant takes only plugins that one of its keys signed, and this is not one."
    InvalidModel "invalid_model": "The uploaded file is not a usable model."
    SampleFailed "sample_failed":
        "With the change, a pipeline would not answer its samples as expected."
    PluginFailed "plugin_failed": "The plugin said that it failed."
    PluginTrapped "plugin_trapped": "The plugin trapped."
    PluginOutOfMemory "plugin_out_of_memory":
        "The plugin went over its memory, table or handle limit."
    PluginInvalidOutput "plugin_invalid_output":
        "The plugin's answer cannot be used: a wrong tensor, a response over its limits."
    PluginTimeout "plugin_timeout": "The plugin used up its CPU time."
    ModelFailed "model_failed": "The model failed on this input."
    TooManyFailures "too_many_failures":
        "Too many wrong admin tokens came from this address, or too many new keys with this token."
    TokenBusy "token_busy":
        "The token has as many changes under way as it may, or as many clients follow events."
    TooManyReleases "too_many_releases":
        "The token has made as many releases as it may for now."
    QueueFull "queue_full": "The queue of the model is full."
    TenantBusy "tenant_busy":
        "The tenant's requests and answers in flight have reached their limit of bytes, or too many \
         of its plugin calls sleep."
    QuotaExceeded "quota_exceeded":
        "The tenant has used up its quota of requests or of plugins' CPU time, or has as many \
         rows under way, or in the queue of a model, as it may."
    Overloaded "overloaded":
        "The model, or the tenant's plugin calls, are too busy to answer in time."
    DeadlineExceeded "deadline_exceeded": "The deadline passed."
    Unavailable "unavailable":
        "Something that this needs cannot serve now: it did not load, or the server is starting or \
         stopping."
    InsufficientStorage "insufficient_storage": "The server's disk has no room for it."
    Internal "internal": "The server failed; its log says more."
}

#[cfg(test)]
mod tests {
    use super::ErrorCode;

    const TROUBLESHOOTING: &str = include_str!("../../docs/troubleshooting.md");

    #[test]
    fn each_code_has_its_section_of_the_troubleshooting_page() {
        let section = |line: &'static str| line.strip_prefix("### `")?.strip_suffix('`');
        let mut sections: Vec<_> = TROUBLESHOOTING.lines().filter_map(section).collect();
        let mut codes: Vec<_> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
        // In the log and in the metrics it stands in place of a code.
        codes.push("abandoned");
        sections.sort_unstable();
        codes.sort_unstable();
        assert_eq!(sections, codes);
    }
}
