//! The values of all metrics at one moment, asked of the parts that own them.
//!
//! In reading order: `requests` for tenants and their pipelines, `models` for models and their
//! queues, `server` for releases, plugins and connections, `process` for the operating system's
//! view, `memory` for what holds the memory, `gpu` for NVIDIA's driver; `scrape` makes text of all.
//!
//! Refuses to know who reads the values: `admin` answers them as text.
//!
//! Invariant: looking changes nothing that serves, and takes no lock for longer than one look at
//! one queue.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod gpu;
mod memory;
mod models;
mod observer;
mod parts;
mod process;
mod requests;
mod scrape;
mod server;

pub use self::memory::{MemoryFigures, model_bytes, plugin_file_bytes};
pub use self::observer::Observer;
pub use self::parts::{Heap, Parts};
pub use self::process::ProcessFigures;
pub use self::scrape::Scrapes;
