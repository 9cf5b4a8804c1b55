//! `gristmill doctor`: looks at what a server and the commands need, and says what to do about
//! each thing that is not as it should be. It changes nothing.
//!
//! `settings` are the parts of a server that settings name, `machine` is what the machine gives;
//! `gristmill_cli::doctor` asks the server that commands would call.

mod machine;
mod settings;

use anyhow::{Result, bail};
use clap::{ArgMatches, Command};
use gristmill_cli::doctor::{self, Finding};

use crate::config::{self, Config};

pub(crate) fn command() -> Command {
    Command::new("doctor")
        .about("Look at what a server and the commands need, and say what to do about it")
        .after_help(
            "Examples:\n  \
             gristmill doctor\n  \
             gristmill doctor --config /etc/gristmill.toml\n  \
             gristmill doctor --context production --output json\n\n\
             With the flags, the variables and the file of `gristmill serve` it looks at the \
             settings, the library of ONNX Runtime, the runtimes of languages, the addresses, the \
             limits of `ulimit`, memory, the data directory and the store; with those of other \
             commands at their server, the token, the clock and the version. Each line begins with \
             ok, warning or fault, and says what to do. Nothing is changed.\n\n\
             The exit code is 1 if something is a fault: a server would not start, or a command \
             would not work.",
        )
        .args(config::args())
        .args(doctor::arguments())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let mut findings = match Config::resolve(matches, &[]) {
        Ok(config) => of_server(&config),
        Err(faults) => {
            vec![Finding::fault(
                "settings",
                faults.to_string(),
                "a server does not start with them",
            )]
        }
    };
    findings.extend(doctor::server(matches, env!("CARGO_PKG_VERSION")));
    doctor::print(&findings, matches);
    match findings.iter().filter(|finding| finding.is_fault()).count() {
        0 => Ok(()),
        1 => bail!("1 fault"),
        faults => bail!("{faults} faults"),
    }
}

/// What a server with these settings finds.
fn of_server(config: &Config) -> Vec<Finding> {
    let mut findings = vec![settings::onnxruntime(config), settings::runtimes(config)];
    findings.extend(machine::addresses(config));
    findings.extend([
        machine::open_files(),
        machine::address_space(),
        machine::memory(config),
        machine::data_dir(config),
        settings::store(config),
    ]);
    findings
}
