//! `cargo xtask fuzz`: runs the fuzz targets of `host/fuzz`, each for a while.
//!
//! A target is a program with libFuzzer in it. It changes inputs, keeps those that reach new code,
//! and stops at the first one that breaks what must hold. `report` reads what libFuzzer prints.

mod report;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use anyhow::{Context, Result, bail};
use clap::builder::PossibleValue;
use clap::{Arg, ArgMatches, Command, value_parser};

use self::report::Report;
use crate::setup;
use crate::shell::{cargo, program, root, run as run_command, step, succeeds, target};

/// A program of `host/fuzz`.
#[derive(Clone, Copy)]
pub(crate) struct FuzzTarget {
    name: &'static str,
    /// The bytes that it gets, and what must hold for them.
    about: &'static str,
    /// The longest input that is tried.
    bytes_max: u32,
}

pub(crate) const TARGETS: [FuzzTarget; 6] = [
    FuzzTarget {
        name: "tensors",
        about: "calls of the host's functions, as no compiler makes them: each ends as the guest's \
                own failure, and gives back what it held",
        bytes_max: 2 << 10,
    },
    FuzzTarget {
        name: "images",
        about: "pictures: decoding takes the memory that it said, and shows no earlier owner's \
                bytes",
        bytes_max: 32 << 10,
    },
    FuzzTarget {
        name: "multipart",
        about: "forms: the parts lie in the body, and another parser finds the same ones",
        bytes_max: 8 << 10,
    },
    FuzzTarget {
        name: "admission",
        about: "uploaded plugins: refused for their own fault, or loaded with what the check found",
        bytes_max: 32 << 10,
    },
    FuzzTarget {
        name: "artifacts",
        about: "compiled code on disk: a changed file is never loaded",
        bytes_max: 1 << 10,
    },
    FuzzTarget {
        name: "messages",
        about: "requests of the Open Inference Protocol: an answer made of one is well-formed",
        bytes_max: 8 << 10,
    },
];

/// The platform that is built for. Naming it keeps the counters out of build scripts and macros.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// What libFuzzer needs of the compiler: counters, a table of their places, and the operands of
/// comparisons. `fuzzing` makes decoders ignore checksums, which no mutation gets right.
const FLAGS: [&str; 6] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// An input that takes longer, and a program that takes more memory, are findings.
const SECONDS_PER_INPUT_MAX: u32 = 20;
const MEMORY_MIB_MAX: u32 = 3 << 10;

/// How much of its log is shown if a target finds something.
const SHOWN_LINES: usize = 40;

pub(crate) fn command() -> Command {
    let targets = TARGETS.map(|target| PossibleValue::new(target.name).help(target.about));
    Command::new("fuzz")
        .about("Give hostile bytes to the server's readers, a minute each")
        .long_about(
            "Give hostile bytes to the parts of the server that read bytes of strangers, and stop \
             where one of them breaks what must hold.",
        )
        .after_long_help(
            "The targets are in host/fuzz. They are compiled with counters that tell libFuzzer \
             which code an input reaches, by the same stable compiler as the server, into \
             target/fuzz. The first build takes about ten minutes on two cores. A C++ compiler is \
             needed.\n\n\
             A finding is written to target/fuzz/findings/TARGET, and the command fails. Then:\n  \
             1. see it again:  cargo xtask fuzz TARGET --input target/fuzz/findings/TARGET/crash-...\n  \
             2. fix the server;\n  \
             3. keep the input: copy it to host/fuzz/corpus/TARGET under a name that says what it \
             showed.\n\
             The kept inputs are where each run begins, and `cargo xtask test` gives them to the \
             same functions. What runs find besides stays in target/fuzz/corpus, so the next run \
             goes on where this one ended.",
        )
        .arg(
            Arg::new("target")
                .value_name("TARGET")
                .num_args(0..)
                .value_parser(targets)
                .help("What to run, one after the other; all if none is named"),
        )
        .arg(
            Arg::new("seconds")
                .long("seconds")
                .value_name("N")
                .value_parser(value_parser!(u32).range(1..))
                .default_value("60")
                .help("How long each target runs"),
        )
        .arg(
            Arg::new("input")
                .long("input")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .requires("target")
                .help("Give the target this one input, and print what happens"),
        )
}

/// Run the targets that are named.
///
/// # Errors
/// A tool is missing, a target does not compile, or an input broke what must hold.
pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let names: Vec<&String> = matches.get_many("target").into_iter().flatten().collect();
    let is_wanted =
        |target: &&FuzzTarget| names.is_empty() || names.iter().any(|name| *name == target.name);
    let targets: Vec<_> = TARGETS.iter().filter(is_wanted).collect();
    let input = matches.get_one::<PathBuf>("input");
    if input.is_some() && targets.len() != 1 {
        bail!("--input needs one target, and {} are named", targets.len());
    }
    let programs = build(&targets)?;
    if let (Some(input), [target]) = (input, &targets[..]) {
        // Cargo runs this program, and others are run from the root: the path is the caller's.
        let input = fs::canonicalize(input).with_context(|| input.display().to_string())?;
        return run_command(program(programs.join(target.name)).arg(input));
    }
    let seconds = matches.get_one::<u32>("seconds").copied().unwrap_or(60);
    let mut reports = Vec::new();
    for target in targets {
        step(&format!("fuzzing {}, {seconds} s: {}", target.name, target.about));
        let report = fuzz(target, &programs, seconds)?;
        println!("{:<10} {report}", target.name);
        reports.push((target.name, report));
    }
    let found = reports.iter().filter(|(_, report)| report.finding.is_some());
    let found: Vec<_> = found.map(|(name, _)| *name).collect();
    if !found.is_empty() {
        bail!("inputs broke what must hold, of {}: see above", found.join(", "));
    }
    Ok(())
}

/// Compile the targets. Returns the folder of their programs.
fn build(targets: &[&FuzzTarget]) -> Result<PathBuf> {
    if !succeeds(program("c++").arg("--version")) {
        setup::install_packages(&["g++"])?;
    }
    step("building the fuzz targets (the first time takes about 10 minutes on 2 cores)");
    let folder = target().join("fuzz");
    let mut build = cargo();
    build.args(["build", "--release", "--locked", "--manifest-path", "host/fuzz/Cargo.toml"]);
    build.args(["--target", PLATFORM, "--target-dir"]).arg(&folder);
    build.args(targets.iter().flat_map(|target| ["--bin", target.name]));
    run_command(build.env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\u{1f}")))?;
    Ok(folder.join(PLATFORM).join("release"))
}

/// Run one target for so many seconds.
fn fuzz(target: &FuzzTarget, programs: &Path, seconds: u32) -> Result<Report> {
    let FuzzTarget { name, bytes_max, .. } = target;
    let folder = |kind: &str| -> Result<PathBuf> {
        let folder = self::target().join("fuzz").join(kind).join(name);
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        Ok(folder)
    };
    let findings = folder("findings")?;
    let mut fuzz = program(programs.join(name));
    // New inputs go to the first folder.
    fuzz.arg(folder("corpus")?).arg(format!("host/fuzz/corpus/{name}"));
    fuzz.arg(format!("-artifact_prefix={}/", findings.display()));
    fuzz.args([format!("-max_total_time={seconds}"), format!("-max_len={bytes_max}")]);
    fuzz.arg(format!("-timeout={SECONDS_PER_INPUT_MAX}"));
    fuzz.args([format!("-rss_limit_mb={MEMORY_MIB_MAX}"), "-print_final_stats=1".into()]);
    let words = format!("host/fuzz/dictionaries/{name}.txt");
    if root().join(&words).exists() {
        fuzz.arg(format!("-dict={words}"));
    }
    // The next run removes the files that this one leaves, but not while this one runs.
    let temporary = folder("tmp")?;
    let running = File::create(temporary.with_extension("lock"))?;
    if running.try_lock().is_err() {
        bail!("{name} is being fuzzed by another command: wait for its end");
    }
    fs::remove_dir_all(&temporary).and_then(|()| fs::create_dir(&temporary))?;
    fuzz.env("TMPDIR", temporary);
    // Large blocks go back to the system at once. glibc would keep ever more of them in pieces.
    fuzz.env("MALLOC_MMAP_THRESHOLD_", (1 << 20).to_string());
    let mut child = fuzz.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let printed = child.stderr.take().context("no standard error")?;
    let log = folder("logs")?.join("log.txt");
    let lines = follow(BufReader::new(printed), &log)?;
    let mut report = Report::of(&lines);
    let status = child.wait()?;
    if !status.success() {
        explain(status, &lines, &mut report);
    }
    Ok(report)
}

/// Read to the end, and keep all of it in the file `log`. Signs of life are shown.
fn follow(printed: impl BufRead, log: &Path) -> Result<Vec<String>> {
    let mut log = File::create(log)?;
    let mut lines = Vec::new();
    for line in printed.split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        writeln!(log, "{line}")?;
        if line.starts_with('#') && line.contains("pulse") {
            eprintln!("{line}");
        }
        lines.push(line);
    }
    Ok(lines)
}

/// Show why a target ended early.
fn explain(status: ExitStatus, lines: &[String], report: &mut Report) {
    let last = &lines[lines.len().saturating_sub(SHOWN_LINES)..];
    eprintln!("{}", last.join("\n"));
    report.finding.get_or_insert_with(|| format!("it ended with {status}"));
}
