//! `gristmill`: one binary to serve, to bring a server to what a manifest says, to make, build and
//! push plugins and models, to read back what is on a server and how it does, to go back to an
//! earlier release, to end the trial of a candidate, to check a store, and for admin tokens.

mod ask;
mod bench;
mod candidate;
mod child;
mod completions;
mod config;
mod content;
mod context;
mod contexts;
mod data_dir;
mod defaults;
mod deploy;
mod differences;
mod exit;
mod file_upload;
mod fsck;
mod get;
mod hash_key;
mod logs;
mod model;
mod model_file;
mod plugin;
mod process;
mod profile;
mod progress;
mod put;
mod reference;
mod release_flags;
mod releases;
mod request_run;
mod requests;
mod rollback;
mod samples;
mod serve;
mod status;
mod token;
mod usage;

use clap::{ArgMatches, Command};

use self::exit::{Exit, FAILED};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ! {
    process::prepare_environment();
    let matches = command().get_matches();
    let ended = match matches.subcommand() {
        Some(("deploy", matches)) => deploy::run(matches),
        Some(("diff", matches)) => deploy::diff(matches),
        Some((name, matches)) => run(name, matches).map(|()| Exit::Done),
        None => unreachable_subcommand().map(|()| Exit::Done),
    };
    let code = match ended {
        Ok(exit) => exit.code(),
        // Only the causes are printed: returning the error would print a backtrace with
        // RUST_BACKTRACE=1.
        Err(error) => {
            eprintln!("error: {}", plugin::output::escaped(&format!("{error:#}")));
            FAILED
        }
    };
    process::end(code)
}

/// Run a command that ends well in only one way.
fn run(name: &str, matches: &ArgMatches) -> anyhow::Result<()> {
    match name {
        "serve" => serve::run(matches),
        "bench" => bench::run(matches),
        "candidate" => candidate::run(matches),
        "child" => child::run(),
        "completions" => completions::run(matches, command()),
        "context" => context::run(matches),
        "get" => get::run(matches),
        "model" => model::run(matches),
        "profile" => profile::run(matches),
        "put" => put::run(matches),
        "requests" => requests::run(matches),
        "plugin" => run_plugin(matches),
        "fsck" => fsck::run(matches),
        "releases" => releases::run(matches),
        "usage" => usage::run(matches),
        "logs" => logs::run(matches),
        "rollback" => rollback::run(matches),
        "samples" => samples::run(matches),
        "reference" => reference::run(matches),
        "status" => status::run(matches),
        "token" => token::run(matches),
        _ => unreachable_subcommand(),
    }
}

fn run_plugin(matches: &ArgMatches) -> anyhow::Result<()> {
    match matches.subcommand() {
        Some(("new", matches)) => plugin::new::run(matches),
        Some(("build", matches)) => plugin::build::run(matches),
        Some(("check", matches)) => plugin::check::run(matches),
        Some(("push", matches)) => plugin::push::run(matches),
        Some(("list", matches)) => plugin::list::run(matches),
        Some(("logs", matches)) => plugin::logs::run(matches),
        Some(("test", matches)) => plugin::test::run(matches),
        _ => unreachable_subcommand(),
    }
}

fn unreachable_subcommand() -> anyhow::Result<()> {
    anyhow::bail!("no such command; see gristmill --help")
}

fn command() -> Command {
    Command::new("gristmill")
        .version(env!("CARGO_PKG_VERSION"))
        .about(
            "A multi-tenant inference host: tenants' sandboxed plugins around one shared batcher",
        )
        .after_help(
            "Start with `gristmill serve`. Without configuration it keeps its data in \
             ./gristmill-data, serves tenants on 127.0.0.1:8080, gRPC on 127.0.0.1:8082 and the \
             admin API on 127.0.0.1:8081, and prints an admin token at its first start.\n\n\
             Examples:\n  \
             gristmill serve --data-dir /var/lib/gristmill\n  \
             gristmill plugin push path/to/plugin --tenant acme\n  \
             gristmill deploy\n\n\
             Errors go to standard error. Exit codes: 0 if the command did what it says, 1 if \
             something was refused or failed, 2 for a wrong command line; `diff` and `deploy \
             --dry-run` also end with 2 if something differs.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(serve::command())
        .subcommand(child::command())
        .subcommand(
            Command::new("plugin")
                .about("Make, build, check, test, push and list plugins, and show their lines")
                .subcommand_required(true)
                .arg_required_else_help(true)
                .subcommand(plugin::new::command())
                .subcommand(plugin::build::command())
                .subcommand(plugin::check::command())
                .subcommand(plugin::test::command())
                .subcommand(plugin::push::command())
                .subcommand(plugin::list::command())
                .subcommand(plugin::logs::command()),
        )
        .subcommand(deploy::command())
        .subcommand(deploy::diff_command())
        .subcommand(status::command())
        .subcommand(get::command())
        .subcommand(put::command())
        .subcommand(releases::command())
        .subcommand(usage::command())
        .subcommand(requests::command())
        .subcommand(profile::command())
        .subcommand(bench::command())
        .subcommand(logs::command())
        .subcommand(rollback::command())
        .subcommand(candidate::command())
        .subcommand(samples::command())
        .subcommand(model::command())
        .subcommand(context::command())
        .subcommand(completions::command())
        .subcommand(fsck::command())
        .subcommand(reference::command())
        .subcommand(token::command())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        super::command().debug_assert();
    }
}
