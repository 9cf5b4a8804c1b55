//! The Open Inference Protocol, over HTTP and gRPC.

mod abuse;
mod budget;
mod clients;
mod messages;
mod named;
mod perf_analyzer;
mod rules;
mod surface;
