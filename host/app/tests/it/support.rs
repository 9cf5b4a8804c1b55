//! The parts that the tests share. In reading order:
//! - `setup` starts a `server`. `process` is its process, `figures` are the kernel's figures of it.
//!   `planes` are those of this process, for tests that need no plugin and no model;
//! - `client`, `raw`, `h2` and `grpc` send requests to it, `load` many at once, `proxy` stands
//!   between; `tls` has certificates; `s3` is an object store whose calls may fail, and `redis`
//!   a store of values by key, `redis_cluster` one on several servers; `registry` has plugins and
//!   signs them; `collector` receives traces;
//! - `cli` runs the command line;
//! - `deploy` puts tenants on it, `stores` those with stores, `recommend` a sample with one,
//!   `admin_api` calls its admin API; `files` has the plugins, models and images;
//! - `onnx` makes unusual models with `protobuf`, `mixing` those whose rows influence each other,
//!   `lengths` those of texts, `guests` and `modules` make unusual plugins, and `deeds` lists the
//!   deeds of the plugin `hostile`;
//! - `eventually` waits, `soak` says how often something is repeated, and `words` checks messages.

mod figures;
mod process;
mod wasm;

pub(crate) mod admin_api;
pub(crate) mod cli;
pub(crate) mod client;
pub(crate) mod collector;
pub(crate) mod deeds;
pub(crate) mod deploy;
pub(crate) mod eventually;
pub(crate) mod files;
pub(crate) mod grpc;
pub(crate) mod guests;
pub(crate) mod h2;
pub(crate) mod inits;
pub(crate) mod lengths;
pub(crate) mod load;
pub(crate) mod mixing;
pub(crate) mod modules;
pub(crate) mod onnx;
pub(crate) mod planes;
#[allow(dead_code, reason = "the file is shared with the benchmarks")]
#[path = "../../../../benches/src/corpus/protobuf.rs"]
pub(crate) mod protobuf;
pub(crate) mod proxy;
pub(crate) mod raw;
pub(crate) mod recommend;
pub(crate) mod redis;
pub(crate) mod redis_cluster;
pub(crate) mod registry;
pub(crate) mod s3;
pub(crate) mod scores;
pub(crate) mod server;
pub(crate) mod service;
pub(crate) mod setup;
pub(crate) mod soak;
pub(crate) mod stores;
pub(crate) mod tls;
pub(crate) mod words;
