//! The content of the release log, and the documents that people write: tenants, pipelines and
//! models.
//!
//! `change` has the changes of a release; `tenant`, `quota`, `token`, `pipeline`, `program`,
//! `assets`, `candidate`, `capture`, `limits`, `named_version`, `instance_reuse`, `oip`, `sample`,
//! `expectation`, `model_config`, `cors`, `store_grants`, `http_grants`, `plugin_signers` and
//! `version_policy` are their contents; `document` reads these from JSON that people write, with
//! `origins` of web pages. `format` turns releases into the bytes of the log and back; a
//! `log_error` is why it could not. Refuses to know the state that results from releases, and what
//! is loaded.
//!
//! Invariant: every later version can read a log that an earlier version wrote.

pub(crate) mod assets;
pub(crate) mod candidate;
pub(crate) mod capture;
pub(crate) mod change;
pub(crate) mod cors;
pub(crate) mod document;
pub(crate) mod expectation;
pub(crate) mod format;
pub(crate) mod http_grants;
pub(crate) mod instance_reuse;
pub(crate) mod limits;
pub(crate) mod log_error;
pub(crate) mod model_config;
pub(crate) mod named_version;
pub(crate) mod oip;
pub(crate) mod origins;
pub(crate) mod pipeline;
pub(crate) mod plugin_signers;
pub(crate) mod program;
pub(crate) mod quota;
pub(crate) mod sample;
pub(crate) mod store_grants;
pub(crate) mod tenant;
pub(crate) mod token;
pub(crate) mod version_policy;
