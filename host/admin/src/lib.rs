//! The admin plane: uploads and changes under `/admin/v1`, and the status.
//!
//! In reading order: `plane` answers a request, `routes` says which resource a path leads to,
//! `resource` has one file for each of them, `receive` reads what clients send, `answer` is what a
//! resource gives back, `audit` writes a line of the log for each call.
//!
//! Refuses to know how a change is made: `control` does that.
//!
//! Invariant: nothing is read of a request before its admin token is known to be good.

#![forbid(unsafe_code)]

mod answer;
mod audit;
mod plane;
mod receive;
mod resource;
mod routes;
mod state;

pub use plane::AdminPlane;
pub use state::UploadLimits;
