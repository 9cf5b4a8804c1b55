//! The content of the release log, and the documents that people write: tenants, pipelines and
//! models.
//!
//! `change` lists what a release can do; `tenant`, `pipeline`, `limits` and `model_config` are what
//! the changes carry; `document` reads the same from JSON that people write. `format` turns
//! releases into the bytes of the log and back, `log_end` remembers where the log ends, and `gaps`
//! finds missing files. Refuses to know what the releases add up to, and what of it is loaded.
//!
//! Invariant: what an earlier version wrote to the log is read by every later one.

pub(crate) mod change;
pub(crate) mod document;
pub(crate) mod format;
pub(crate) mod gaps;
pub(crate) mod limits;
pub(crate) mod log_end;
pub(crate) mod log_error;
pub(crate) mod model_config;
pub(crate) mod pipeline;
pub(crate) mod tenant;
