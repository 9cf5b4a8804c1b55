//! The options of the benchmarks, from the command line.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, value_parser};

/// The options of `cargo xtask bench`.
pub(super) struct Options {
    /// Whether everything is built first.
    pub(super) build: bool,
    /// The folder whose binaries are measured in place of release binaries.
    pub(super) binaries: Option<PathBuf>,
    pub(super) only: Vec<String>,
    /// The servers that `compare` compares; for `pace`, an earlier one.
    pub(super) before: Option<PathBuf>,
    pub(super) after: Option<PathBuf>,
    /// What the program `gpu` printed on another machine. It is recorded, nothing is measured.
    pub(super) lines: Option<PathBuf>,
    /// Whether one short round of each side is enough, and less data.
    pub(super) quick: bool,
    /// The products in the store of the job `recommend`.
    pub(super) products: Option<u32>,
}

/// All options. The help does not show those that are not `shown`.
pub(super) fn arguments(shown: &[&str]) -> [Arg; 8] {
    let path = |name: &'static str, value: &'static str| {
        Arg::new(name).long(name).value_name(value).value_parser(value_parser!(PathBuf))
    };
    let all = [
        Arg::new("no-build")
            .long("no-build")
            .action(ArgAction::SetTrue)
            .help("Measure the binaries of an earlier run"),
        path("binaries", "FOLDER")
            .help("Measure the binaries of this folder: target/debug after `cargo build --bins`"),
        Arg::new("only").long("only").value_name("CASE").action(ArgAction::Append).help(
            "Run this case; may be repeated. A folder of benches/peers, a model of sizes, a case \
             of control (swaps, tenants, candidates), a job (photo, ocr, recommend, embed) or a \
             part of jobs (buckets, infer, tokenizer, large-photo), or the beginning of a row's \
             name",
        ),
        path("before", "SERVER").help("The binary of an earlier server"),
        path("after", "SERVER").help("The binary of a later server"),
        path("lines", "FILE")
            .help("Record what target/release/gpu printed on another machine; measure nothing"),
        Arg::new("quick").long("quick").action(ArgAction::SetTrue).help(
            "One short round of each side and 20,000 products, to try it; nothing is recorded",
        ),
        Arg::new("products")
            .long("products")
            .value_name("N")
            .value_parser(value_parser!(u32).range(50..=10_000_000))
            .help("The products in Redis for the job recommend; 1,000,000 by default"),
    ];
    all.map(|argument| {
        let is_shown =
            ["no-build", "binaries"].iter().chain(shown).any(|name| *name == argument.get_id());
        argument.hide(!is_shown)
    })
}

impl Options {
    pub(super) fn of(matches: &ArgMatches) -> Self {
        let path = |name| matches.get_one::<PathBuf>(name).cloned();
        let (binaries, lines) = (path("binaries"), path("lines"));
        let only = matches.get_many("only").into_iter().flatten().cloned().collect();
        Self {
            build: !matches.get_flag("no-build") && binaries.is_none() && lines.is_none(),
            binaries,
            only,
            before: path("before"),
            after: path("after"),
            lines,
            quick: matches.get_flag("quick"),
            products: matches.get_one("products").copied(),
        }
    }
}
