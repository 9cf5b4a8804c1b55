//! Both ends of a pipeline: a plugin's request from the head and the body of an HTTP request, and
//! the answer from a plugin's response. With or without a connection, a pipeline gets the same
//! request and gives the same answer.
//!
//! `request` makes the one, with `form` for multipart bodies, and `response` makes the other.

mod form;
mod request;
mod response;

pub use self::request::{media_type, query, request_for_plugin};
pub use self::response::answer_from_plugin;
