//! The admin plane: uploads and changes under `/admin/v1`, and the status.
//!
//! In reading order: `plane` answers a request, `routes` finds the resource at a path, `resource`
//! has one file for each resource, `receive` reads the bodies of requests, `answer` is the answer
//! of a resource and `body` the body of it, `conditions` reads `If-Match` and `If-None-Match`,
//! `audit` writes a line of the log for each call.
//!
//! Refuses to know how a change is made: `control` makes it.
//!
//! Invariant: no body is read before the request's admin token was checked.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod answer;
mod audit;
mod body;
mod conditions;
mod plane;
mod receive;
mod resource;
mod routes;
mod state;
mod terms;

pub use body::AdminBody;
pub use plane::{AdminParts, AdminPlane};
pub use state::UploadLimits;
