//! The values of all metrics at one moment, asked of the parts that own them.
//!
//! In reading order: `requests` for tenants and their pipelines, `models` for models and their
//! queues, `server` for releases, plugins and connections, `process` for the operating system's
//! view, `memory` for what holds the memory, `gpu` for NVIDIA's driver; `scrape` makes text of all.
//!
//! Refuses to know who reads the values: resources answer them, and `otlp` pushes them.
//!
//! Invariant: reading changes nothing that serves, and takes no lock for longer than one reading of
//! one queue.

mod gpu;
mod memory;
mod models;
mod observed;
mod observer;
mod process;
mod requests;
mod scrape;
mod server;

pub(crate) use self::memory::{MemoryFigures, model_bytes, plugin_file_bytes};
pub use self::observed::{Heap, Observed};
pub use self::observer::Observer;
pub(crate) use self::process::ProcessFigures;
pub use self::scrape::Scrapes;
