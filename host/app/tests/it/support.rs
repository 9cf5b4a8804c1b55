//! The parts that the tests share. In reading order: `setup` starts a `server`, whose `process` it
//! is, of which the kernel gives `figures`; `client`, `raw` and `h2` speak to it; `deploy` puts
//! tenants on it; `files` has the plugins, models and pictures, `onnx` makes unusual models,
//! `guests` and `modules` make unusual plugins, `deeds` lists the deeds of the plugin `hostile`;
//! `load` sends many requests at once; `eventually` waits, `words` checks messages.

mod figures;
mod process;

pub(crate) mod client;
pub(crate) mod deeds;
pub(crate) mod deploy;
pub(crate) mod eventually;
pub(crate) mod files;
pub(crate) mod guests;
pub(crate) mod h2;
pub(crate) mod load;
pub(crate) mod modules;
pub(crate) mod onnx;
pub(crate) mod raw;
pub(crate) mod server;
pub(crate) mod setup;
pub(crate) mod words;
