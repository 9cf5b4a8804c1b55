//! `gristmill profile`: where a server spends its CPU time.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{ArgMatches, Command, value_parser};

use crate::admin::{self, Admin};
use crate::args::option;

pub(crate) fn command() -> Command {
    Command::new("profile")
        .about("Record where a server spends its CPU time")
        .after_help(
            "Examples:\n  \
             gristmill profile --seconds 30 --file cpu.svg\n  \
             gristmill profile --file cpu.pb.gz && go tool pprof -http : cpu.pb.gz\n\n\
             A file that ends in .svg is a flame graph, which a browser shows: threads at the \
             bottom, and above them the functions that they called, as wide as the CPU time \
             that they took. One that ends in .pb.gz is for pprof. Functions of plugins have their \
             names, unless these were stripped from the component. The token needs the role admin.",
        )
        .args([
            option("seconds", "SECONDS")
                .value_parser(value_parser!(u32).range(1..=60))
                .default_value("10")
                .help("How long to record"),
            option("file", "FILE")
                .value_parser(file)
                .default_value("profile.svg")
                .help("Where to write the profile: *.svg or *.pb.gz"),
        ])
        .args(admin::arguments())
}

fn file(text: &str) -> Result<PathBuf, String> {
    match text.ends_with(".svg") || text.ends_with(".pb.gz") {
        true => Ok(text.into()),
        false => Err("the name must end in .svg or .pb.gz".into()),
    }
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let admin = Admin::of(matches)?;
    let file = matches.get_one::<PathBuf>("file").context("FILE is missing")?;
    let seconds = matches.get_one::<u32>("seconds").copied().unwrap_or(10);
    let is_svg = Path::new(file).extension().is_some_and(|end| end == "svg");
    let (format, media_type) = match is_svg {
        true => ("svg", "image/svg+xml"),
        false => ("pprof", "application/vnd.google.protobuf+gzip"),
    };
    eprintln!("recording {seconds} s of {}", admin.address());
    let path = format!("debug/profile?seconds={seconds}&format={format}");
    let profile = admin.file(&path, media_type).context("cannot record a profile")?;
    fs::write(file, profile).with_context(|| format!("cannot write {}", file.display()))?;
    println!("written to {}", file.display());
    Ok(())
}
