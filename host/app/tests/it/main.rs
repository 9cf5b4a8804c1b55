//! The server from outside: the real binary, real plugins and models, real HTTP.
//!
//! Each test starts a server of its own on free ports, with its own data directory, and kills it
//! when it ends, so tests run side by side and in any order. No test sleeps: a server prints when
//! it listens, and everything else is an answer to a request.
//!
//! `support` has the parts that they share; the other files are the tests. `cargo xtask test`
//! builds the plugins and fetches ONNX Runtime for them.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod support;

mod access_log;
mod admin_calls;
mod answers;
mod api_document;
mod api_keys;
mod backends;
mod bad_changes;
mod bad_guests;
mod bad_languages;
mod bad_models;
mod bad_plugins;
mod bad_requests;
mod bad_uploads;
mod batching;
mod bench;
mod blobs;
mod candidates;
mod captured;
mod command_line;
mod compiled_code;
mod compiling;
mod connections;
mod contexts;
mod contract;
mod costly_pictures;
mod costly_uploads;
mod dashboards;
mod deletions;
mod deploy_tokens;
mod deploys;
mod durability;
mod edits;
mod exported_models;
mod fault_pointers;
mod fsck;
mod fuzz_inputs;
mod http2_floods;
mod init;
mod inside;
mod instance_reuse;
mod kept_releases;
mod languages;
mod leaks;
mod limits;
mod logging;
mod long_calls;
mod memory;
mod metrics;
mod mixed_rows;
mod model_names;
mod model_push;
mod neighbours;
mod oip_abuse;
mod oip_budget;
mod oip_clients;
mod oip_messages;
mod oip_perf_analyzer;
mod oip_rules;
mod oip_surface;
mod photos;
mod pictures;
mod plugin_lines;
mod plugin_test;
mod quotas;
mod raw_requests;
mod read_back;
mod release_log;
mod releases;
mod replicas;
mod roles;
mod samples;
mod schemathesis;
mod serving;
mod shutdown;
mod start;
mod status_page;
mod stock_tools;
mod store_faults;
mod straight_line;
mod swap;
mod tls;
mod tls_clients;
mod tls_files;
mod token;
mod tokens;
mod traces;
mod uploads;
mod usage;
mod versions;
mod warm_up;
mod wasi;
mod wasip2;
