//! `cargo xtask`: the project's tasks, such as demo, test and bench. Each works from a fresh clone:
//! it installs missing tools, or names those that it cannot install.

#![forbid(unsafe_code)]

mod admin;
mod bench;
mod books;
mod build;
mod conformance;
mod console;
mod demo;
mod deny;
mod deploy;
mod dist;
mod docs;
mod fuzz;
mod layers;
mod nightly;
mod notice;
mod runtimes;
mod server;
mod setup;
mod shell;
mod stages;
mod stock;
mod table;
mod test;
mod wheel;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{ArgMatches, Command};

/// A task without arguments: the name, what it does, and how.
type Task = (&'static str, &'static str, fn() -> Result<()>);

const TASKS: [Task; 10] = [
    (
        "runtimes",
        "Build the shared runtimes of languages into target/runtimes, where the server finds them",
        runtimes::run_task,
    ),
    (
        "soak",
        "Kill servers in the middle of 500 deploys, let two replicas race for 1,000 releases, let \
         a tenth of the calls to a store fail, put each of 200 files 16 times at once, try the \
         admin API with 10,000 calls that are made from its description, and send 100,000 requests \
         to models whose rows influence each other",
        test::run_soak,
    ),
    (
        "nightly",
        "What the check of each change has no time for, in one table: other projects' clients and \
         tools, the soak, tests beside a full load, 100,000 histories of two servers, all pages of \
         the books, fuzzing, and known faults of dependencies (about four hours)",
        nightly::run,
    ),
    (
        "layers",
        "Check the layers: floors of crates, circles between files, and the width of comments",
        layers::check,
    ),
    (
        "notice",
        "Write NOTICE: the packages in the server's binary, and their licences",
        notice::run,
    ),
    (
        "docs",
        "Write the tables of settings, limits, error codes and metrics into host/docs/reference, \
         and the OpenAPI document of the admin API",
        docs::run,
    ),
    (
        "deploy",
        "Write the Kustomize base of host/deploy, which is the rendered chart, and the settings in \
         the schema of the chart's values",
        deploy::write_base,
    ),
    (
        "dist",
        "Build the server into target/guided/gristmill, optimised with a profile of the demo's \
         requests: two release builds, about half an hour on 2 cores",
        dist::run,
    ),
    (
        "console",
        "Build the console, a page that the server has in it, into host/console/dist",
        console::build,
    ),
    ("conformance", "Run the onnx package's backend node tests on every backend", conformance::run),
];

fn main() -> ExitCode {
    match run(&command().get_matches()) {
        Ok(()) => ExitCode::SUCCESS,
        // Only the causes are printed: returning the error would print a backtrace with
        // RUST_BACKTRACE=1.
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(matches: &ArgMatches) -> Result<()> {
    let (name, matches) = matches.subcommand().context("no task; see cargo xtask --help")?;
    match name {
        "demo" => demo::run(matches),
        "wheel" => wheel::run(matches),
        "deb" => deploy::run_deb(matches),
        "test" => test::run(matches),
        "bench" => bench::run(matches),
        "fuzz" => fuzz::run(matches),
        "books" => books::run(matches),
        "deny" => deny::run(matches),
        _ => {
            let task = TASKS.iter().find(|(task, ..)| *task == name);
            let (_, _, run) = task.with_context(|| format!("no task {name}"))?;
            run()
        }
    }
}

fn command() -> Command {
    let tasks = TASKS.iter().map(|(name, about, _)| Command::new(*name).about(*about));
    Command::new("xtask")
        .bin_name("cargo xtask")
        .about("The project's tasks. Each works from a fresh clone and installs the tools it needs")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(demo::command())
        .subcommands(tasks)
        .subcommand(wheel::command())
        .subcommand(deploy::deb_command())
        .subcommand(test::command())
        .subcommand(bench::command())
        .subcommand(fuzz::command())
        .subcommand(books::command())
        .subcommand(deny::command())
}

#[cfg(test)]
mod tests {
    use super::command;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }
}
