//! The state of a server as data: documents, changes, the desired state, and the rules for the next
//! one.
//!
//! Pure: no I/O, no clock, no lock, no task. The control plane reads the release log into this
//! state, plans a change with it, loads what the next state needs, and appends the release.
//!
//! - `release` defines the content of the log and the documents that people write; `desired` is the
//!   resulting state, and `serving` that state with the snapshot that was built from it;
//! - `plan` turns the changes that are `asked` for into those of a release, and the state into the
//!   next one. `plugin_signature` is what says who signed a plugin. `token_scope` is the part of
//!   the server that the author of a change may see and change, and `change_options` what comes
//!   with a change, such as its `conditions`;
//! - `current` has the documents and the tags of what serves, `description` the types of some of
//!   them, `schema` parts of the schemas of documents, `difference` what a release changes, `power`
//!   what may do more after it, and `verdict` whether the answer to a sample is as expected;
//! - a `fault` is a part of a state that is not served, an `error` the reason why a change does not
//!   fit the state, and `in_use`, `key_conflict` and `too_many_versions` are such reasons.
//!
//! Invariant: applying the same changes gives the same state, on each server and in each version.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod asked;
mod change_options;
mod conditions;
mod current;
mod description;
mod desired;
mod difference;
mod error;
mod fault;
mod in_use;
mod key_conflict;
mod last_keys;
mod plan;
mod plugin_signature;
mod power;
mod release;
mod schema;
mod serving;
#[cfg(test)]
mod testing;
mod token_scope;
mod too_many_versions;
mod verdict;

pub use asked::AskedChange;
pub use change_options::{ChangeOptions, TokenUse};
pub use conditions::{Conditions, Tag, Tags, Unmet};
pub use current::{Current, config_document, pipeline_document, tenant_document};
pub use description::{
    AssetDescription, KeyDescription, ModelDescription, PluginDescription, RuntimeDescription,
};
pub use desired::tenant::is_same;
pub use desired::{Desired, Model, Tenant, TenantFile, Token};
pub use difference::{Difference, differences};
pub use error::StateError;
pub use fault::{Fault, FaultyPart, Subject, refusing};
pub use in_use::{InUse, PipelineOf, Uses};
pub use key_conflict::KeyConflict;
pub use last_keys::LastKeys;
pub use plan::fit::Wanted;
pub use plan::needs::{NeededFile, Needs};
pub use plan::pipeline::PutPipeline;
pub use plan::restore::{Scope, restore};
pub use plan::signature::check_users;
pub use plan::signer::{check_signer, signers_of};
pub use plan::tenant::tenant_refusal;
pub use plan::{Plan, Refused, VERSION_MAX, check_size, plan, subjects};
pub use plugin_signature::{PluginSignature, PluginSignatureDocument, SignatureFault};
pub use power::{LoadedPlugin, Power, PowerKind, Powers, Trend};
pub use release::assets::AssetNames;
pub use release::candidate::{AbortSpec, CandidateSpec};
pub use release::capture::CaptureSpec;
pub use release::change::{Change, Release, ReleaseNote};
pub use release::cors::CorsSpec;
pub use release::document::{Document, Faults};
pub use release::expectation::Expectation;
pub use release::format::Head;
pub use release::http_grants::read_http;
pub use release::limits::{LimitRange, LimitsSpec, limit_ranges};
pub use release::log_error::LogError;
pub use release::model_config::{
    BatchingSpec, CutSpec, FormatSpec, GraphOptimizationSpec, InputSpec, LABELS_MAX, LabelFiles,
    Labels, ModelConfig, OutputSpec, PadSpec, ProviderName, QueuePolicySpec, SizeSpec, Sizes,
    TimeoutActionSpec,
};
pub use release::named_version::{InvalidNamedVersion, NamedVersion};
pub use release::oip::{OipDatatype, OipEncoding, OipInput, OipOutput, OipSpec};
pub use release::origins::read_redirects;
pub use release::pipeline::{PipelineDocument, PipelineSpec};
pub use release::plugin_signers::{InvalidSigner, Signer, read_signers};
pub use release::program::{ModelKey, ProgramParts, ProgramSpec};
pub use release::quota::QuotaSpec;
pub use release::sample::{Sample, SampleRequest};
pub use release::store_grants::{StoreGrant, StoreGrants, read_stores};
pub use release::tenant::{BatchWith, GivenKey, KEYS_MAX, SentKey, TenantDocument, TenantSpec};
pub use release::token::{ROOT, Role, TOKENS_MAX, TokenDocument, TokenSpec, rfc3339};
pub use release::version_policy::{MODEL_VERSIONS_MAX, PLUGIN_VERSIONS_MAX, VersionPolicy};
pub use schema::{
    DigestText, ErrorCodeText, ModelNameText, NameText, NamedModelText, NamedVersionText,
    add as add_schema,
};
pub use serving::Serving;
pub use token_scope::TokenScope;
pub use too_many_versions::TooManyVersions;
pub use verdict::{SampleAnswer, SampleFailure};
