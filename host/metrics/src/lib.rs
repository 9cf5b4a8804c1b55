//! Figures of requests: metrics, and what each tenant used.
//!
//! In reading order: `family` has the list with names, units and attributes; `request` has the
//! figures that requests add to, with `details` and the `histogram`s in them, and `edges` those of
//! all answers; `label_slots` bounds the pipelines that have their own details; `collected` holds
//! the values of one moment, and `text` writes them for Prometheus. [`usage`] sums what is charged,
//! by the hour, and keeps it on disk.
//!
//! Refuses to know tenants' documents, models and connections: `admin::observe` asks their owners.
//!
//! The figures of requests are kept in atomic numbers of our own. The histograms of OpenTelemetry's
//! SDK take a lock for each value and never forget the attributes that they have seen; pipelines
//! come and go here.
//!
//! Invariant: adding a request takes no lock, and its cost does not depend on the number of
//! pipelines.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod collected;
mod details;
mod edges;
pub mod family;
mod histogram;
mod label_slots;
mod request;
mod text;
pub mod usage;

pub use self::collected::{Collected, Distribution, Point, Value};
pub use self::edges::{Edge, EdgeFigures};
pub use self::family::{Family, Kind};
pub use self::histogram::{DURATION_BOUNDS_S, Durations};
pub use self::label_slots::LabelSlots;
pub use self::request::{RequestFigures, RequestTarget, Totals};
pub use self::text::{CONTENT_TYPE, to_text};
