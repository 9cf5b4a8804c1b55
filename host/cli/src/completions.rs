//! `gristmill completions`: scripts that complete commands and flags in a shell.

use anyhow::{Context, Result};
use clap::{ArgMatches, Command, value_parser};
use clap_complete::{Shell, generate};

use crate::args::word;

pub(crate) fn command() -> Command {
    Command::new("completions")
        .about("Print the script that completes commands and flags in a shell")
        .after_help(
            "Examples:\n  \
             gristmill completions bash > ~/.local/share/bash-completion/completions/gristmill\n  \
             gristmill completions zsh > \"${fpath[1]}/_gristmill\"\n  \
             gristmill completions fish > ~/.config/fish/completions/gristmill.fish\n  \
             gristmill completions powershell >> $PROFILE",
        )
        .arg(word("shell", "SHELL").value_parser(value_parser!(Shell)).help("The shell"))
}

/// `whole` is the command line of the program.
pub(crate) fn run(matches: &ArgMatches, mut whole: Command) -> Result<()> {
    let shell = matches.get_one::<Shell>("shell").context("SHELL is missing")?;
    let mut script = Vec::new();
    generate(*shell, &mut whole, "gristmill", &mut script);
    print!("{}", String::from_utf8(script)?);
    Ok(())
}
