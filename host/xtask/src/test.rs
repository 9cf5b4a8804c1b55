//! `cargo xtask test`: every check that CI runs.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};

use crate::shell::{self, cargo, step, target};
use crate::{deny, docs, layers, notice, setup};

pub(crate) fn run() -> Result<()> {
    step("layers");
    layers::check()?;
    step("format");
    check_format()?;
    step("dependencies");
    deny::check()?;
    let built = setup::build_all()?;
    step("the README's tables");
    docs::check(&built.gristmill)?;
    step("NOTICE");
    notice::check()?;
    setup::install_clients()?;
    setup::install_perf_analyzer()?;
    step("clippy");
    shell::run(cargo().args([
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "--deny",
        "warnings",
    ]))?;
    step("tests of the SDK, its examples among them");
    let mut sdk = cargo();
    sdk.args(["test", "--manifest-path", "sdk/rust/Cargo.toml"]);
    let sdk = run_tests(sdk.env("CARGO_TARGET_DIR", target().join("sdk")))?;
    step("tests");
    let host = run_tests(&mut host_tests(&built)?)?;
    let (passed, failed) = (sdk.passed + host.passed, sdk.failed + host.failed);
    println!("{passed} passed, {failed} failed");
    if !sdk.succeeded || !host.succeeded {
        bail!("tests failed");
    }
    Ok(())
}

/// Run the tests several times beside a full load: a busy machine could make them fail.
pub(crate) fn run_busy() -> Result<()> {
    const ROUNDS: usize = 3;
    let built = setup::build_all()?;
    let mut tests = host_tests(&built)?;
    let cores = std::thread::available_parallelism()?.get();
    for round in 1..=ROUNDS {
        step(&format!("tests beside {cores} busy threads, {round} of {ROUNDS}"));
        let tally = beside_full_load(cores, || run_tests(&mut tests))?;
        println!("{} passed, {} failed", tally.passed, tally.failed);
        if !tally.succeeded {
            bail!("tests failed on a busy machine, in round {round}");
        }
    }
    Ok(())
}

/// Run `work` while this process keeps this many cores busy.
fn beside_full_load<T>(cores: usize, work: impl FnOnce() -> T) -> T {
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let result = work();
        ended.store(true, Ordering::Relaxed);
        result
    })
}

/// The tests of this workspace.
fn host_tests(built: &setup::Built) -> Result<Command> {
    let mut tests = cargo();
    tests
        .args(["test", "--workspace", "--no-fail-fast"])
        .env("GRISTMILL_TEST_COMPONENTS", &built.components)
        .env("GRISTMILL_TEST_CLIENTS", setup::install_clients()?)
        .env("GRISTMILL_TEST_PERF_ANALYZER", setup::install_perf_analyzer()?)
        .env("ORT_DYLIB_PATH", &built.onnxruntime);
    Ok(tests)
}

fn check_format() -> Result<()> {
    for workspace in ["Cargo.toml", "plugins/Cargo.toml", "sdk/rust/Cargo.toml"] {
        shell::run(cargo().args(["fmt", "--all", "--check", "--manifest-path", workspace]))?;
    }
    Ok(())
}

/// The totals of a run of `cargo test`, over all of its binaries.
#[derive(Default)]
struct Tally {
    passed: u64,
    failed: u64,
    succeeded: bool,
}

/// Run `cargo test`, its output passed on and counted.
fn run_tests(command: &mut Command) -> Result<Tally> {
    let mut child = command.stdout(Stdio::piped()).spawn().context("cannot run cargo test")?;
    let stdout = child.stdout.take().context("no standard output")?;
    let mut tally = Tally::default();
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        println!("{line}");
        if let Some((passed, failed)) = counts(&line) {
            tally.passed += passed;
            tally.failed += failed;
        }
    }
    tally.succeeded = child.wait()?.success();
    Ok(tally)
}

/// Passed and failed, from a line such as `test result: ok. 3 passed; 0 failed; 0 ignored; ..`.
fn counts(line: &str) -> Option<(u64, u64)> {
    let rest = line.strip_prefix("test result: ")?;
    let number = |word: &str| {
        let part = rest.split([';', '.']).find(|part| part.trim().ends_with(word))?;
        part.split_whitespace().next()?.parse().ok()
    };
    Some((number(" passed")?, number(" failed")?))
}

#[cfg(test)]
mod tests {
    use super::counts;

    #[test]
    fn test_results_are_counted() {
        let line = "test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.22s";
        assert_eq!(counts(line), Some((3, 1)));
        assert_eq!(counts("test a::b ... ok"), None);
    }
}
