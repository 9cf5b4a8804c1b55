//! The server from outside: the real binary, real plugins and models, real HTTP.
//!
//! Each test starts a server of its own on free ports, with its own data directory, and kills it
//! when it ends, so tests run side by side and in any order. No test sleeps: a server prints when
//! it listens, and everything else is an answer to a request.
//!
//! `support` has the parts that they share; each of the other folders has the tests of one plane or
//! one part of the server. `cargo xtask test` builds the plugins and fetches ONNX Runtime for them.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod support;

mod admin;
mod cli;
mod data;
mod models;
mod observe;
mod oip;
mod plugins;
mod releases;
mod replicas;
mod tls;
