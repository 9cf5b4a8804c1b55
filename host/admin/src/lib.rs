//! The admin plane: uploads and changes under `/admin/v1`, and the status.
//!
//! In reading order: `plane` answers a request, `routes` finds the resource at a path, `resource`
//! has one file for each resource, `receive` reads the bodies of requests, `answer` is the answer
//! of a resource and `body` the body of it, `conditions` reads `If-Match` and `If-None-Match`,
//! `plugin_signature` the signature of an uploaded plugin,
//! `audit` writes a line of the log for each call. `caller` finds out whose token a call has,
//! `permission` is the table of what the roles may do, `attempts` slows wrong tokens down, and
//! `busy` bounds the changes of one token.
//!
//! [`observe`] asks all parts of the server for the values of metrics and of the status.
//!
//! `openapi` describes the API: an `operation` is what each resource says of itself, `schemas` are
//! those of documents. `docs` is the same as a page for people, and `console` has the files of the
//! console. `public` answers all of them. `trials` are requests that people try, and `events` are
//! for pages that watch the server.
//!
//! Refuses to know how a change is made: `control` makes it.
//!
//! Invariants:
//! - no body is read before the request's token was checked;
//! - no resource is asked before the token was found to have the permission that it needs. No token
//!   is needed for the description of the API and the files of the console, which are the same for
//!   everyone, and for the metrics if they have a listener of their own (`metrics_plane`).

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod answer;
mod attempts;
mod audit;
mod body;
mod busy;
mod caller;
mod change_options;
mod conditions;
mod console;
mod docs;
mod events;
mod metrics_plane;
pub mod observe;
mod openapi;
mod operation;
mod permission;
mod plane;
mod plugin_signature;
mod public;
mod receive;
mod resource;
mod routes;
mod schemas;
mod state;
mod trials;
mod tries;
mod wait;

pub use body::AdminBody;
pub use metrics_plane::MetricsPlane;
pub use openapi::openapi_document;
pub use plane::{AdminKeys, AdminParts, AdminPlane};
pub use state::UploadLimits;
pub use trials::{Trial, Trials, Tried};
