//! The admin plane: uploads and changes under `/admin/v1`, and the status.
//!
//! In reading order: `plane` answers a request, `routes` finds the resource at a path, `resource`
//! has one file for each resource, `receive` reads the bodies of requests, `answer` is the answer
//! of a resource and `body` the body of it, `conditions` reads `If-Match` and `If-None-Match`,
//! `audit` writes a line of the log for each call. `caller` finds out whose token a call has,
//! `permission` is the table of what the roles may do, `attempts` slows wrong tokens down, and
//! `busy` bounds the changes of one token.
//!
//! Refuses to know how a change is made: `control` makes it.
//!
//! Invariants:
//! - no body is read before the request's token was checked;
//! - no resource is asked before the token was found to have the permission that it needs.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod answer;
mod attempts;
mod audit;
mod body;
mod busy;
mod caller;
mod conditions;
mod permission;
mod plane;
mod receive;
mod resource;
mod routes;
mod state;
mod terms;
mod wait;

pub use body::AdminBody;
pub use plane::{AdminKeys, AdminParts, AdminPlane};
pub use state::UploadLimits;
