//! `gristmill`: one binary to serve, to make, build and push plugins, to read back what is on a
//! server, to go back to an earlier release, to check a store, and for admin tokens.

mod child;
mod config;
mod data_dir;
mod fsck;
mod get;
mod hash_key;
mod plugin;
mod process;
mod reference;
mod releases;
mod rollback;
mod serve;
mod token;

use clap::{ArgMatches, Command};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ! {
    process::prepare_environment();
    let matches = command().get_matches();
    let ended = match matches.subcommand() {
        Some(("serve", matches)) => serve::run(matches),
        Some(("child", _)) => child::run(),
        Some(("get", matches)) => get::run(matches),
        Some(("plugin", matches)) => run_plugin(matches),
        Some(("fsck", matches)) => fsck::run(matches),
        Some(("releases", matches)) => releases::run(matches),
        Some(("rollback", matches)) => rollback::run(matches),
        Some(("reference", matches)) => reference::run(matches),
        Some(("token", matches)) => token::run(matches),
        _ => unreachable_subcommand(),
    };
    let code = match ended {
        Ok(()) => 0,
        // Only the causes are printed: returning the error would print a backtrace with
        // RUST_BACKTRACE=1.
        Err(error) => {
            eprintln!("error: {}", plugin::output::escaped(&format!("{error:#}")));
            1
        }
    };
    process::end(code)
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
             gristmill plugin push path/to/plugin --tenant acme\n\n\
             Errors go to standard error. The exit code is 1, or 2 for a wrong command line.",
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
        .subcommand(get::command())
        .subcommand(releases::command())
        .subcommand(rollback::command())
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
