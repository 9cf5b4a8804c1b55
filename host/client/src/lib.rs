//! One client of a gristmill server, for the command line, the tasks, the tests and the benchmarks.
//!
//! Owns the address of a plane, HTTP/1.1 to it ([`Client`], [`Connection`]) with or without TLS
//! ([`Tls`]), the admin API ([`AdminClient`]) with uploads in parts ([`Blob`]), the bytes of a
//! request with binary tensors ([`infer_body`]), and a server's process ([`ServerProcess`]) with
//! the lines that announce its addresses ([`Addresses`]).
//!
//! Refuses to know what the command line says about a failure: errors keep their sources, and
//! callers choose the words. Programs that are not asynchronous call through [`block_on`].

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod address;
mod error;
mod tls;

mod answer;
mod connection;

mod client;

mod admin;
mod infer;
mod runtime;

mod part_size;
mod upload;

mod addresses;
mod process;

pub use self::address::{Address, AddressError};
pub use self::addresses::Addresses;
pub use self::admin::{AdminClient, AdminError};
pub use self::answer::{Answer, StatusError};
pub use self::client::{Client, TokenError};
pub use self::connection::Connection;
pub use self::error::ClientError;
pub use self::infer::{BinaryTensor, HEADER_LENGTH, InferBody, infer_body};
pub use self::process::{Listen, ServerProcess, StartError, serve};
pub use self::runtime::block_on;
pub use self::tls::{OwnFiles, Tls, TlsError, TlsFiles, TlsRefusal};
pub use self::upload::{Blob, UploadError};
/// The types of requests and answers.
pub use http;
