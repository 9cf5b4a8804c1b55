//! `cargo xtask test`: every check that CI runs.

mod languages;
mod tally;

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail, ensure};
use clap::{Arg, ArgAction, ArgMatches};

pub(crate) use self::tally::Tally;
use self::tally::{Printer, run_tests};
use crate::shell::{self, cargo, cargo_with_clippy, program, step};
use crate::stages::Stages;
use crate::{books, build, console, deny, deploy, docs, layers, notice, setup, wheel};

pub(crate) fn command() -> clap::Command {
    clap::Command::new("test")
        .about(
            "Every check that CI runs: format, layers, dependencies, the console's files, NOTICE, \
             clippy, the reference tables, the OpenAPI document, the documents' links, tests, the \
             wheel, the commands of the books, the chart, the compose file, the Debian package, a \
             container of the image. They need 16 GiB in target",
        )
        .arg(
            Arg::new("busy").long("busy").action(ArgAction::SetTrue).help(
                "Only the tests, three times, while a busy thread on each core slows them down",
            ),
        )
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    if matches.get_flag("busy") { run_busy() } else { run_all() }
}

/// Run every check. Says how long each stage took, also when one cannot run.
fn run_all() -> Result<()> {
    let mut stages = Stages::begin();
    let tally = check_all(&mut stages);
    stages.print();
    conclude(&tally?)
}

fn check_all(stages: &mut Stages) -> Result<Tally> {
    check_room()?;
    step("layers");
    layers::check()?;
    step("format");
    check_format()?;
    step("dependencies");
    deny::check()?;
    stages.ended("layers, format and dependencies");
    step("the console");
    console::check()?;
    stages.ended("the console");
    let built = build::build_all(stages)?;
    step("the reference tables, the OpenAPI document and the links");
    docs::check(&built.gristmill)?;
    step("NOTICE");
    notice::check()?;
    let mut tests = host_tests(&built)?;
    stages.ended("documents and NOTICE");
    step("the benchmarks");
    // The programs that are no tests are not built as benchmarks either.
    let benches = ["build", "--workspace", "--bins", "--bench", "*"];
    shell::run(cargo_with_clippy().args(benches))?;
    stages.ended("building the benchmarks");
    let mut tally = languages::run_all(&built.gristmill)?;
    stages.ended("tests of the SDKs, the plugins and the console");
    step("tests");
    tally += run_cargo(&mut tests)?;
    stages.ended("tests of the host");
    step("the wheel");
    tally += counted(wheel::check(&built));
    stages.ended("the wheel");
    // Each pasted block counts as a test.
    tally += counted(books::check(&built));
    stages.ended("the commands of the books");
    // Last, so that a reader sees what this machine could not run.
    step("the chart, the compose file, the Debian package and a container");
    tally += counted(deploy::check(&built));
    stages.ended("the chart, the compose file, the Debian package and a container");
    Ok(tally)
}

/// The disk space that all builds and tools of the checks take in `target`, about.
const ROOM: u64 = 16 << 30;

/// Check that the disk has room for all, before half an hour of builds.
///
/// # Errors
/// It has not.
fn check_room() -> Result<()> {
    let target = shell::target();
    std::fs::create_dir_all(&target)?;
    let bytes = |command: &mut Command| -> Result<u64> {
        let output = shell::output(command)?;
        let number = output.split_whitespace().find_map(|word| word.parse().ok());
        number.with_context(|| format!("{command:?} says {output:?}"))
    };
    let free = bytes(program("df").args(["--block-size=1", "--output=avail"]).arg(&target))?;
    if free >= ROOM {
        return Ok(());
    }
    // What is there from earlier runs is not needed again.
    let used = ["--block-size=1", "--summarize", "--dereference-args"];
    let there = bytes(program("du").args(used).arg(&target))?;
    ensure!(
        free + there >= ROOM,
        "the checks need about {} GiB in {}: it has {}, and its disk has {} free. Make room, or \
         make it a link to a folder of another disk",
        ROOM >> 30,
        target.display(),
        there >> 30,
        free >> 30
    );
    Ok(())
}

/// The tally of a check that says how many of its parts passed, and ends with the first that fails.
fn counted(checked: Result<u64>) -> Tally {
    match checked {
        Ok(passed) => Tally { passed, ..Tally::default() },
        Err(error) => {
            println!("{error:#}");
            Tally { passed: 0, failed: 1, succeeded: false }
        }
    }
}

/// Run the tests several times beside a full load: a busy machine could make them fail.
fn run_busy() -> Result<()> {
    conclude(&busy(&build::build_all(&mut Stages::begin())?)?)
}

/// The same. Ends with the first round in which a test fails.
pub(crate) fn busy(built: &build::Built) -> Result<Tally> {
    const ROUNDS: usize = 3;
    let mut tests = host_tests(built)?;
    let cores = std::thread::available_parallelism()?.get();
    let mut all = Tally::default();
    for round in 1..=ROUNDS {
        step(&format!("tests beside {cores} busy threads, {round} of {ROUNDS}"));
        all += beside_full_load(cores, || run_cargo(&mut tests))?;
        if !all.succeeded {
            break;
        }
    }
    Ok(all)
}

/// Repeat what only many repetitions prove: kills in the middle of deploys, races of replicas,
/// calls to the store that fail, rows that influence each other, uploads of one file at once, and
/// calls that are made from the descriptions of the server's interfaces.
pub(crate) fn run_soak() -> Result<()> {
    conclude(&soak(&build::build_all(&mut Stages::begin())?, &[], |_| ())?)
}

/// The same, with other tests that repeat what they do. `change` may change the command.
pub(crate) fn soak(
    built: &build::Built,
    others: &[&str],
    change: impl FnOnce(&mut Command),
) -> Result<Tally> {
    let mut tests = host_tests(built)?;
    tests.env("GRISTMILL_TEST_SOAK", "1").args(["--test", "it", "--"]);
    tests.args(["a_kill_in_the_middle", "two_replicas_that_race", "replicas::store_faults"]);
    tests.args(["releases::durability", "admin::schemathesis", "models::mixed_rows"]);
    tests.arg("the_same_new_file_put_many_times_at_once").args(others);
    change(&mut tests);
    step(
        "kills, races, failing stores, rows that meet, and the APIs' descriptions (about an hour)",
    );
    run_cargo(&mut tests)
}

/// Run tests of this workspace.
pub(crate) fn run_cargo(tests: &mut Command) -> Result<Tally> {
    let tally = run_tests(tests, Printer::Cargo)?;
    if tally.succeeded && tally.passed == 0 {
        bail!("no test has these names: {tests:?}");
    }
    Ok(tally)
}

/// Say how many tests passed.
///
/// # Errors
/// Some failed.
fn conclude(tally: &Tally) -> Result<()> {
    println!("{} passed, {} failed", tally.passed, tally.failed);
    if !tally.succeeded {
        bail!("tests failed");
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

/// The tests of this workspace. What they need is installed.
pub(crate) fn host_tests(built: &build::Built) -> Result<Command> {
    let mut tests = cargo_with_clippy();
    // Most tests wait for servers a third of the time.
    let threads = std::thread::available_parallelism()?.get() * 3 / 2;
    tests
        .env("RUST_TEST_THREADS", threads.to_string())
        .args(["test", "--workspace", "--no-fail-fast"])
        .env("GRISTMILL_TEST_COMPONENTS", &built.components)
        .env("GRISTMILL_TEST_CLIENTS", setup::install_clients()?)
        .env("GRISTMILL_TEST_S3", setup::install_s3()?)
        .env("GRISTMILL_TEST_SCHEMATHESIS", setup::install_schemathesis()?)
        .env("GRISTMILL_TEST_PROMETHEUS", setup::install_prometheus()?)
        .env("GRISTMILL_TEST_REDIS", setup::install_redis()?)
        .env("GRISTMILL_TEST_REGISTRY", setup::install_registry()?)
        .env("GRISTMILL_TEST_COLLECTOR", setup::install_collector()?)
        .env("GRISTMILL_TEST_PERF_ANALYZER", setup::install_perf_analyzer()?)
        .env("GRISTMILL_TEST_CONSOLE", console::prepared()?)
        .env("GRISTMILL_TEST_CHROMIUM", setup::install_chromium()?)
        .env("ORT_DYLIB_PATH", &built.onnxruntime);
    Ok(tests)
}

fn check_format() -> Result<()> {
    for workspace in ["Cargo.toml", "plugins/Cargo.toml", "sdk/rust/Cargo.toml"] {
        shell::run(cargo().args(["fmt", "--all", "--check", "--manifest-path", workspace]))?;
    }
    shell::run(cargo().args(["fmt", "--check", "--manifest-path", "host/fuzz/Cargo.toml"]))
}
