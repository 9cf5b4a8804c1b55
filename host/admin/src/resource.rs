//! The resources of the admin API, one file each. Each also describes its operations, for the
//! API's document. `document`, `page`, `receipt`, `changes` and `change_schema` have what several
//! of them share.

mod asset;
mod blob;
mod candidate;
mod captured;
mod change_schema;
mod changes;
mod content;
mod document;
mod events;
mod key;
mod list;
mod metrics;
mod model;
mod model_config;
mod own_token;
mod page;
mod pipeline;
mod plugin;
mod plugin_logs;
mod profile;
mod query;
mod receipt;
mod release;
mod releases;
mod replicas;
mod requests;
mod rollback;
mod slowest_requests;
mod status;
mod store;
mod tenant;
mod tenant_document;
mod tenant_logs;
mod token;
mod trial;
mod usage;

use std::pin::Pin;
use std::sync::Arc;

use gristmill_core::{ErrorCode, Name};
use gristmill_transport::{Allowed, Problem};
use http::Method;

pub(crate) use self::asset::Asset;
pub(crate) use self::blob::Blob;
pub(crate) use self::candidate::{Candidate, CandidateEnd, End};
pub(crate) use self::captured::Captured;
pub(crate) use self::content::Content;
pub(crate) use self::events::Events;
pub(crate) use self::key::Key;
pub(crate) use self::list::List;
pub(crate) use self::metrics::Metrics;
pub(crate) use self::model::Model;
pub(crate) use self::model_config::ModelConfig;
pub(crate) use self::own_token::OwnToken;
pub(crate) use self::pipeline::Pipeline;
pub(crate) use self::plugin::Plugin;
pub(crate) use self::plugin_logs::PluginLogs;
pub(crate) use self::profile::Profile;
pub(crate) use self::query::none as no_parameters;
pub(crate) use self::release::Release;
pub(crate) use self::releases::Releases;
pub(crate) use self::requests::Requests;
pub(crate) use self::rollback::Rollback;
pub(crate) use self::slowest_requests::SlowestRequests;
pub(crate) use self::status::Status;
pub(crate) use self::store::{Store, StoreValue};
pub(crate) use self::tenant::Tenant;
pub(crate) use self::tenant_logs::TenantLogs;
pub(crate) use self::token::{Rotation, Token};
pub(crate) use self::trial::Trial;
pub(crate) use self::usage::Usage;
use crate::answer::Outcome;
use crate::permission::Permission;
use crate::receive::Received;
use crate::state::AdminState;

/// A request of a caller who has the permission for it.
pub(crate) struct Asked<'a> {
    pub(crate) state: &'a Arc<AdminState>,
    pub(crate) method: &'a Method,
    pub(crate) received: Received<'a>,
}

/// An answer that is being made.
pub(crate) type Answering<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// One resource, by its path.
pub(crate) trait Resource: Send {
    /// The methods that it takes.
    fn allowed(&self) -> Allowed;

    /// What a request with an allowed method needs.
    fn permission(&self, method: &Method) -> Permission<'_>;

    /// Answer a request whose method is allowed, from a caller who has the permission for it.
    ///
    /// Not an `async fn` of `async_trait`, which gives each reference a lifetime of its own, with
    /// bounds. With bounds the compiler would look anew at all types of the server for each
    /// resource, to show that the future is `Send`.
    fn answer<'a>(&'a self, asked: Asked<'a>) -> Answering<'a>;
}

/// Whether a request with this method changes nothing.
fn is_read(method: &Method) -> bool {
    [Method::GET, Method::HEAD].contains(method)
}

/// A name in the path. `what` is named in the error.
fn name(what: &str, text: &str) -> Result<Name, Problem> {
    text.parse()
        .map_err(|error| Problem::new(ErrorCode::InvalidRequest, format!("{what}: {error}")))
}

/// The name of a model in the path.
fn model_name(text: &str) -> Result<Name, Problem> {
    Name::of_model(text)
        .map_err(|error| Problem::new(ErrorCode::InvalidRequest, format!("model: {error}")))
}
