//! `cargo xtask`: demo, test and bench, each from a fresh clone. Missing tools are installed or
//! named.

#![forbid(unsafe_code)]

mod admin;
mod bench;
mod conformance;
mod demo;
mod deny;
mod docs;
mod layers;
mod notice;
mod server;
mod setup;
mod shell;
mod test;

use anyhow::{Result, bail};

const HELP: &str = "\
The project's tasks. Each works from a fresh clone and installs what it needs.

Usage: cargo xtask <TASK>

Tasks:
  demo           Build the server and its sample plugins, start it with two tenants, show them
                 share a batch, print lines to paste; Ctrl-C stops it
  test           Every check that CI runs: format, layers, dependencies, NOTICE, clippy, the
                 README's tables, tests
  test --busy    The tests alone, three times, beside a thread for each core that keeps it busy
  layers         The check of layers alone: floors of crates, circles between files
  deny           The check of dependencies alone: licences, bans and sources, by deny.toml
  deny advisories
                 The same, and known faults of dependencies: fetches a database from GitHub
  notice         Write NOTICE: the packages in the server's binary, and their licences
  docs           Write the README's tables of settings, limits and error codes
  bench [NAME]... [--no-build] [--binaries FOLDER]
                 Measure and print a table whose rows end in `reached` or `missed`;
                 NAME is one of sandbox, batch, load, oip, neighbour, compare, gpu; without it
                 all but compare and gpu run; gpu needs an NVIDIA GPU and a library for it in
                 ORT_DYLIB_PATH. --no-build measures what an earlier run built, --binaries what
                 is in another folder, target/debug for example
  bench neighbour [--only CASE]...
                 A tenant beside hostile ones; CASE is a case, or the beginning of some
  bench compare --before SERVER --after SERVER [--only CASE]...
                 The throughput of two servers' binaries, by turns
  conformance    Run the onnx package's backend node tests on every backend
";

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["demo"] => demo::run(),
        ["test"] => test::run(),
        ["layers"] => layers::check(),
        ["docs"] => docs::run(),
        ["deny"] => deny::check(),
        ["deny", "advisories"] => deny::check_with_advisories(),
        ["notice"] => notice::run(),
        ["test", "--busy"] => test::run_busy(),
        ["conformance"] => conformance::run(),
        ["bench", ref names @ ..] => bench::run(names),
        [] | ["help" | "-h" | "--help"] => {
            print!("{HELP}");
            Ok(())
        }
        _ => bail!("unknown task {:?}\n\n{HELP}", args.join(" ")),
    }
}
