//! `gristmill`: one binary for the server and for the command line. This crate starts and
//! configures the server, and has the commands that read or change its data directory; all others
//! are those of `gristmill_cli`.

mod child;
mod config;
mod data_dir;
mod doctor;
mod fsck;
mod hash_key;
mod process;
mod reference;
mod serve;
mod token;
mod up;

use anyhow::Result;
use clap::{ArgMatches, Command};
use gristmill_cli::{Exit, FAILED, output};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ! {
    process::prepare_environment();
    let matches = command().get_matches();
    let code = match run(&matches) {
        Ok(exit) => exit.code(),
        // Only the causes are printed: returning the error would print a backtrace with
        // RUST_BACKTRACE=1.
        Err(error) => {
            eprintln!("error: {}", output::escaped(&format!("{error:#}")));
            FAILED
        }
    };
    process::end(code)
}

fn run(matches: &ArgMatches) -> Result<Exit> {
    let ended = match matches.subcommand() {
        Some(("up", matches)) => up::run(matches),
        Some(("serve", matches)) => serve::run(matches),
        Some(("doctor", matches)) => doctor::run(matches),
        Some(("child", _)) => child::run(),
        Some(("fsck", matches)) => fsck::run(matches),
        Some(("reference", matches)) => reference::run(matches),
        Some(("token", matches)) => token::run(matches),
        _ => return gristmill_cli::run(matches, command),
    };
    ended.map(|()| Exit::Done)
}

fn command() -> Command {
    Command::new("gristmill")
        .version(env!("CARGO_PKG_VERSION"))
        .about(
            "A multi-tenant inference host: tenants' sandboxed plugins around one shared batcher",
        )
        .after_help(
            "Start with `gristmill demo`, which has tenants to try, or with `gristmill up`, which \
             serves on this machine, keeps its data in ./gristmill-data, and tells the other \
             commands where it is. `gristmill serve` is for a server of its own. `gristmill doctor` \
             says what is wrong.\n\n\
             Examples:\n  \
             gristmill demo\n  \
             gristmill up\n  \
             gristmill tenant create acme --open\n  \
             gristmill model push digits.onnx --name digits\n  \
             gristmill plugin push path/to/plugin --tenant acme --pipeline main --model digits\n  \
             gristmill deploy\n\n\
             Errors go to standard error. Exit codes: 0 if the command did what it says, 1 if \
             something was refused or failed, 2 for a wrong command line; `diff` and `deploy \
             --dry-run` also end with 2 if something differs.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(up::command())
        .subcommand(serve::command())
        .subcommand(child::command())
        .subcommands(gristmill_cli::commands())
        .subcommand(doctor::command())
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
