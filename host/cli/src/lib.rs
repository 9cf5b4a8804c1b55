//! The command line of Gristmill without the server: commands that are clients of a server, and
//! tools that make plugins, models and manifests from files. [`commands`] lists them and [`run`]
//! runs one. The binary adds the commands that start a server or read its data directory.
//!
//! In reading order: `contexts` has the servers that the user named, `access` and `trust` find the
//! address, the token and the files of TLS, `admin` makes the calls, `change` makes a release of
//! what a command found, with `names` and `edit`; `output` and `progress` show results. Each
//! command has a file of its name. `oci` fetches plugins from registries, `signature` reads their
//! signatures. `plugin` has the tools for plugins, `deploy` brings a server to
//! what a manifest says, `bench` measures a server and explains the result, and `demo` starts one
//! to try; `own_server` is how a command starts one. [`request_run`] runs a request through a
//! pipeline without a server, and `child` starts the processes that compile a plugin without one.
//! [`doctor`] and `local` have the client's part of `gristmill doctor` and `gristmill up`.
//!
//! Refuses to know the configuration and the data directory of a server.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod access;
mod admin;
mod args;
mod ask;
mod asset;
mod bench;
mod candidate;
mod change;
mod child;
mod completions;
mod content;
mod context;
mod contexts;
mod defaults;
mod demo;
mod deploy;
mod differences;
pub mod doctor;
mod edit;
mod exit;
mod file_upload;
mod get;
mod grant;
mod key;
mod kv;
mod local;
mod logs;
mod model;
mod model_file;
mod names;
mod oci;
pub mod output;
mod own_server;
mod pipeline;
mod plugin;
mod profile;
mod progress;
mod put;
mod release_flags;
mod releases;
pub mod request_run;
mod requests;
mod rollback;
mod samples;
mod signature;
mod status;
mod tenant;
mod tls;
pub mod token;
mod trust;
mod usage;

use anyhow::{Result, bail};
use clap::{ArgMatches, Command};

pub use self::child::runner_config;
pub use self::exit::{Exit, FAILED};
pub use self::local::{LOCAL, LocalServer, Replaced};
pub use self::progress::Progress;

/// The commands, in the order of the help.
pub fn commands() -> [Command; 27] {
    [
        demo::command(),
        plugin::command(),
        deploy::command(),
        deploy::diff_command(),
        status::command(),
        tenant::command(),
        pipeline::command(),
        key::command(),
        grant::command(),
        grant::revoke_command(),
        get::command(),
        put::command(),
        releases::command(),
        usage::command(),
        requests::command(),
        profile::command(),
        bench::command(),
        logs::command(),
        rollback::command(),
        candidate::command(),
        samples::command(),
        model::command(),
        kv::command(),
        asset::command(),
        context::command(),
        tls::command(),
        completions::command(),
    ]
}

/// Run the one of [`commands`] that `matches` name. `program` is the whole command line, which
/// `completions` completes.
///
/// # Errors
/// Something was refused or failed, or it is none of these commands.
pub fn run(matches: &ArgMatches, program: fn() -> Command) -> Result<Exit> {
    match matches.subcommand() {
        Some(("deploy", matches)) => deploy::run(matches),
        Some(("diff", matches)) => deploy::diff(matches),
        Some((name, matches)) => run_plain(name, matches, program).map(|()| Exit::Done),
        None => no_such_command().map(|()| Exit::Done),
    }
}

/// Run a command that ends well in only one way.
fn run_plain(name: &str, matches: &ArgMatches, program: fn() -> Command) -> Result<()> {
    match name {
        "demo" => demo::run(matches),
        "plugin" => plugin::run(matches),
        "status" => status::run(matches),
        "tenant" => tenant::run(matches),
        "pipeline" => pipeline::run(matches),
        "key" => key::run(matches),
        "grant" => grant::run(matches),
        "revoke" => grant::revoke(matches),
        "get" => get::run(matches),
        "put" => put::run(matches),
        "releases" => releases::run(matches),
        "usage" => usage::run(matches),
        "requests" => requests::run(matches),
        "profile" => profile::run(matches),
        "bench" => bench::run(matches),
        "logs" => logs::run(matches),
        "rollback" => rollback::run(matches),
        "candidate" => candidate::run(matches),
        "samples" => samples::run(matches),
        "model" => model::run(matches),
        "kv" => kv::run(matches),
        "asset" => asset::run(matches),
        "context" => context::run(matches),
        "tls" => tls::run(matches),
        "completions" => completions::run(matches, program()),
        _ => no_such_command(),
    }
}

fn no_such_command() -> Result<()> {
    bail!("no such command; see gristmill --help")
}
