//! What an operator sees of a server: metrics, traces, usage and the log.

mod access_log;
mod dashboards;
mod inside;
mod logging;
mod metrics;
mod traces;
mod usage;
