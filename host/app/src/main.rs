//! `gristmill`: one binary to serve, and to build and push plugins.

mod child;
mod config;
mod plugin;
mod process;
mod serve;
mod token;

use clap::{ArgMatches, Command};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> anyhow::Result<()> {
    process::prepare_environment();
    let matches = command().get_matches();
    match matches.subcommand() {
        Some(("serve", matches)) => serve::run(matches),
        Some(("child", _)) => child::run(),
        Some(("plugin", matches)) => run_plugin(matches),
        _ => unreachable_subcommand(),
    }
}

fn run_plugin(matches: &ArgMatches) -> anyhow::Result<()> {
    match matches.subcommand() {
        Some(("build", matches)) => plugin::build::run(matches),
        Some(("push", matches)) => plugin::push::run(matches),
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
            "Start with `gristmill serve`; with no configuration at all it keeps its data in \
             ./gristmill-data, serves tenants on 127.0.0.1:8080 and its admin API on \
             127.0.0.1:8081, and prints an admin token at its first start.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(serve::command())
        .subcommand(child::command())
        .subcommand(
            Command::new("plugin")
                .about("Build and push plugins")
                .subcommand_required(true)
                .arg_required_else_help(true)
                .subcommand(plugin::build::command())
                .subcommand(plugin::push::command()),
        )
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        super::command().debug_assert();
    }
}
