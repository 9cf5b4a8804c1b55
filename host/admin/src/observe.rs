//! The values of all metrics at one moment, asked of the parts that own them.
//!
//! In reading order: `requests` for tenants and their pipelines, `models` for models and their
//! queues, `server` for releases, plugins and connections, `process` for the operating system's
//! view, `memory` for what holds the memory, `gpu` for NVIDIA's driver; `scrape` makes text of all.
//!
//! Refuses to know who reads the values: resources answer them, and `otlp` pushes them.
//!
//! Invariant: looking changes nothing that serves, and takes no lock for longer than one look at
//! one queue.

mod gpu;
mod memory;
mod models;
mod observer;
mod parts;
mod process;
mod requests;
mod scrape;
mod server;

pub(crate) use self::memory::{MemoryFigures, model_bytes, plugin_file_bytes};
pub use self::observer::Observer;
pub use self::parts::{Heap, Parts};
pub(crate) use self::process::ProcessFigures;
pub use self::scrape::Scrapes;
