//! The command line of Gristmill without the server: commands that are clients of a server, and
//! tools that make plugins, models and manifests from files. [`commands`] lists them and [`run`]
//! runs one. The binary adds the commands that start a server or read its data directory.
//!
//! In reading order: `args` has the forms of arguments, `contexts` the servers that the user named,
//! `access` and `trust` find the address, the token and the files of TLS, `admin` makes the calls,
//! `change` makes a release of what a command found, with `names` and `edit`; `output` and
//! `progress` show results. Each command has a file of its name. `oci` fetches plugins from
//! registries, `signature` reads their signatures. `plugin` has the tools for plugins, `deploy`
//! brings a server to what a manifest says, `bench` measures a server and explains the result, and
//! `demo` starts one to try; `own_server` is how a command starts one. [`request_run`] runs a
//! request through a pipeline without a server, and `child` starts the processes that compile a
//! plugin without one. [`doctor`] and `local` have the client's part of `gristmill doctor` and
//! `gristmill up`.
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
mod folders;
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

use anyhow::{Context, Result};
use clap::{ArgMatches, Command};

use self::Run::{Ending, Plain, Whole};
pub use self::child::runner_config;
pub use self::exit::{Exit, FAILED};
pub use self::local::{LOCAL, LocalServer, Replaced};
pub use self::progress::Progress;

/// What runs a command.
enum Run {
    /// It ends well in only one way.
    Plain(fn(&ArgMatches) -> Result<()>),
    /// It says how it ended.
    Ending(fn(&ArgMatches) -> Result<Exit>),
    /// It gets the whole command line of the program as well.
    Whole(fn(&ArgMatches, Command) -> Result<()>),
}

const COMMANDS: [(fn() -> Command, Run); 27] = [
    (demo::command, Plain(demo::run)),
    (plugin::command, Plain(plugin::run)),
    (deploy::command, Ending(deploy::run)),
    (deploy::diff_command, Ending(deploy::diff)),
    (status::command, Plain(status::run)),
    (tenant::command, Plain(tenant::run)),
    (pipeline::command, Plain(pipeline::run)),
    (key::command, Plain(key::run)),
    (grant::command, Plain(grant::run)),
    (grant::revoke_command, Plain(grant::revoke)),
    (get::command, Plain(get::run)),
    (put::command, Plain(put::run)),
    (releases::command, Plain(releases::run)),
    (usage::command, Plain(usage::run)),
    (requests::command, Plain(requests::run)),
    (profile::command, Plain(profile::run)),
    (bench::command, Plain(bench::run)),
    (logs::command, Plain(logs::run)),
    (rollback::command, Plain(rollback::run)),
    (candidate::command, Plain(candidate::run)),
    (samples::command, Plain(samples::run)),
    (model::command, Plain(model::run)),
    (kv::command, Plain(kv::run)),
    (asset::command, Plain(asset::run)),
    (context::command, Plain(context::run)),
    (tls::command, Plain(tls::run)),
    (completions::command, Whole(completions::run)),
];

/// The commands, in the order of the help.
pub fn commands() -> [Command; 27] {
    COMMANDS.map(|(command, _)| command())
}

/// Run the one of [`commands`] that `matches` name. `program` is the whole command line, which
/// `completions` completes.
///
/// # Errors
/// Something was refused or failed, or it is none of these commands.
pub fn run(matches: &ArgMatches, program: fn() -> Command) -> Result<Exit> {
    const UNKNOWN: &str = "no such command; see gristmill --help";
    let (name, matches) = matches.subcommand().context(UNKNOWN)?;
    let is_it = |(command, _): &(fn() -> Command, Run)| command().get_name() == name;
    let (_, run) = COMMANDS.into_iter().find(is_it).context(UNKNOWN)?;
    match run {
        Plain(run) => run(matches)?,
        Ending(run) => return run(matches),
        Whole(run) => run(matches, program())?,
    }
    Ok(Exit::Done)
}
