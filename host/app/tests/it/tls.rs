//! TLS: on the planes, on the command line, and its files.

mod clients;
mod files;
mod planes;
mod self_signed;
