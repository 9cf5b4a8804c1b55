//! The command line, and settings with which no server starts.

mod assets;
mod bench;
mod command_line;
mod contexts;
mod deploys;
mod doctor;
mod fsck;
mod kv;
mod model_import;
mod model_push;
mod nouns;
mod packages;
mod plugin_dev;
mod plugin_new;
mod plugin_test;
mod push_pipeline;
mod registries;
mod start;
mod status_page;
mod up;
