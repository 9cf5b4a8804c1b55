//! `host/deploy`: the Debian package (`cargo xtask deb`), the objects of Kubernetes (`cargo xtask
//! deploy`), and their checks. The scripts in `host/deploy/check` make the checks.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use clap::{Arg, ArgMatches, value_parser};

use crate::build::Built;
use crate::shell::{output, program, run as run_command, step, target};
use crate::{demo, dist, runtimes, setup};

const SCRIPT: &str = "host/deploy/check/check.py";

pub(crate) fn deb_command() -> clap::Command {
    clap::Command::new("deb")
        .about(
            "Pack the server, its systemd unit, the runtimes of languages and the demo's files as \
             a Debian package, into target/deb. The server is that of `cargo xtask dist`, which is \
             built if it is not there",
        )
        .arg(
            Arg::new("from")
                .long("from")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Pack this binary of the server"),
        )
}

pub(crate) fn run_deb(matches: &ArgMatches) -> Result<()> {
    setup::install_wasm_toolchain()?;
    let gristmill = match matches.get_one::<PathBuf>("from") {
        Some(binary) => std::path::absolute(binary)?,
        None => {
            if !dist::built().exists() {
                dist::run()?;
            }
            dist::built()
        }
    };
    // As for a wheel: the binary may be of another machine.
    let builder = setup::build_server()?;
    runtimes::build()?;
    demo::write_files(&setup::build_demo_plugins(&builder)?)?;
    step(&format!("packing {}", gristmill.display()));
    let mut pack = program("python3");
    pack.args(["host/xtask/deb.py", "--version", env!("CARGO_PKG_VERSION")]);
    pack.arg("--binary").arg(gristmill).arg("--out").arg(target().join("deb"));
    for folder in [demo::files(), target().join("runtimes")] {
        pack.arg("--share").arg(folder);
    }
    run_command(&mut pack)
}

/// Write the Kustomize base, which is the rendered chart, and the settings of the chart's schema.
pub(crate) fn write_base() -> Result<()> {
    run_command(&mut script("base")?)
}

/// Check the chart, the compose file, the unit, the Debian package, and a container of the image,
/// with the server of the tests. Returns how many checks passed.
pub(crate) fn check(built: &Built) -> Result<u64> {
    setup::install_container_tools()?;
    let mut check = script("check")?;
    check.arg("--onnxruntime").arg(&built.onnxruntime);
    check.arg("--components").arg(&built.components);
    check.arg("--seccomp").arg(setup::install_seccomp_profile()?);
    check.arg("--shipped").arg(dist::built());
    check.arg("--gristmill").arg(&built.gristmill);
    check.arg("--runtimes").arg(target().join("runtimes"));
    check.arg("--work").arg(target().join("deploy-check"));
    let shown = output(&mut check)?;
    print!("{shown}");
    let passed = shown.lines().last().context("the check printed nothing")?;
    Ok(passed.parse()?)
}

fn script(what: &str) -> Result<Command> {
    let mut script = program(setup::install_kubernetes_schemas()?);
    script.args([SCRIPT, what]).arg("--helm").arg(setup::install_helm()?);
    Ok(script)
}
