//! What each tenant used: sums of the charges of its requests, by hour, pipeline and model.
//!
//! In reading order: `counter` is what requests add to, `hour` names the hours, `file` keeps the
//! sums of one hour on disk, `store` brings them together.
//!
//! Refuses to know prices, and who may see the sums.
//!
//! Invariants:
//! - a charge is counted exactly once: a sum is exactly the sum of the charges that receipts show;
//! - counting takes no lock;
//! - what was written stays written: a file is replaced as a whole.

mod counter;
mod file;
mod hour;
mod store;

pub use self::counter::{Counter, Key, Use};
pub use self::file::UsageError;
pub use self::hour::{Hour, InvalidHour};
pub use self::store::{Filter, Row, Rows, UsageStore};
