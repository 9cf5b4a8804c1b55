//! Tables in files: rows of numbers by key, from CSV, Parquet and NumPy's `.npy`.
//!
//! The file belongs to a tenant, so nothing in it is believed before it is checked. Between its
//! parts the work asks whether it may go on ([`Work::check`]), and it says how much memory it takes
//! before it takes it ([`Work::reserve`]). Refuses to know wasmtime, budgets and tenants.
//!
//! Invariants:
//! - the memory of a CSV file is known from its length, its lines and its heading: at most eight
//!   times its bytes, and 80 for each column; an `.npy` takes none besides the file; that of a
//!   Parquet file is known from its footer, but for the keys and for a page of each kind;
//! - numbers are float32 when they leave a table, whatever the file has;
//! - a key is in a table once.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod cells;
mod csv;
mod error;
mod index;
mod npy;
mod parquet;
mod read;
mod table;

pub use cells::{Cell, CellError, Cells};
pub use error::{Stopped, TableError, Work};
pub use table::{Key, Table};
