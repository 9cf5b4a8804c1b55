//! `cargo xtask`: the project's tasks, such as demo, test and bench. Each works from a fresh clone:
//! it installs missing tools, or names those that it cannot install.

#![forbid(unsafe_code)]

mod admin;
mod bench;
mod books;
mod conformance;
mod demo;
mod deny;
mod dist;
mod docs;
mod fuzz;
mod layers;
mod nightly;
mod notice;
mod server;
mod setup;
mod shell;
mod stock;
mod test;

use anyhow::{Result, bail};

const HELP: &str = "\
The project's tasks. Each works from a fresh clone and installs the tools that it needs.

Usage: cargo xtask <TASK>

Tasks:
  demo           Build the server and its sample plugins, start it with two tenants, show them
                 share a batch, print commands to paste; Ctrl-C stops it
  test           Every check that CI runs: format, layers, dependencies, NOTICE, clippy, the
                 reference tables, the OpenAPI document, the documents' links, tests
  test --busy    Only the tests, three times, while a busy thread on each core slows them down
  soak           Kill servers in the middle of 500 deploys, let two replicas race for 1,000
                 releases, let a tenth of the calls to a store fail, try the admin API with 10,000
                 calls that are made from its description, and send 100,000 requests to models
                 whose rows influence each other
  nightly        What other projects' clients and tools say of the server, in one table: passed,
                 failed, not applicable (about an hour)
  layers         Only the check of layers: floors of crates, circles between files, and the width
                 of comments
  deny           Only the check of dependencies: licences, bans and sources, by deny.toml
  deny advisories [PATH]
                 The same, and known faults of dependencies, from a database on GitHub, or from a
                 copy of it, a clone or an unpacked archive
  notice         Write NOTICE: the packages in the server's binary, and their licences
  docs           Write the tables of settings, limits, error codes and metrics into
                 host/docs/reference, and the OpenAPI document of the admin API
  books [PAGE]...
                 Paste the commands of the books beside a demo, and compare what they print: those
                 of all pages, or of some, such as models/README.md
  bench [NAME]... [--no-build] [--binaries FOLDER]
                 Measure, and print a table. Rows with a target end in `reached` or `missed`.
                 NAME is one of sandbox, batch, load, oip, peers, explain, flames, receipts,
                 generator, neighbour, pace, sizes, control, compare, gpu.
                 Without a name, all but compare and gpu run. --no-build measures the binaries of
                 an earlier run, --binaries those of another folder, target/debug for example
  bench peers [--only PEER]...
                 Compare the throughput with other inference servers, about 35 minutes; PEER is a
                 folder of benches/peers
  bench neighbour [--only CASE]...
                 Measure a tenant while others attack the server; CASE is the name of a case, or
                 the beginning of several names
  bench sizes [--only MODEL]...
                 Compare the sizes that the server chooses for a model with a grid set by hand
  bench control [--only swaps|tenants]
                 Measure releases while requests run, and a server with 10,000 tenants
  bench compare --before SERVER --after SERVER [--only CASE]...
                 Compare the throughput of two binaries of the server
  bench gpu [--lines FILE]
                 Measure ResNet-50 on an NVIDIA GPU, about 12 minutes. ORT_DYLIB_PATH must be the
                 path of a library for it. A GPU in a machine without Rust: run target/release/gpu
                 there, and record here with --lines what it printed
  dist           Build the server into target/guided/gristmill, optimised with a profile of the
                 demo's requests: two release builds, about half an hour on 2 cores
  conformance    Run the onnx package's backend node tests on every backend
  fuzz [TARGET]... [--seconds N]
                 Give hostile bytes to the server's readers, a minute each; `fuzz --help` says more
";

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["demo"] => demo::run(),
        ["test"] => test::run(),
        ["layers"] => layers::check(),
        ["docs"] => docs::run(),
        ["books", ref pages @ ..] => books::run(pages),
        ["dist"] => dist::run_dist(),
        ["deny"] => deny::check(),
        ["deny", "advisories"] => deny::check_with_advisories(),
        ["deny", "advisories", copy] => deny::check_with_copy(copy.as_ref()),
        ["notice"] => notice::run(),
        ["test", "--busy"] => test::run_busy(),
        ["soak"] => test::run_soak(),
        ["nightly"] => nightly::run(),
        ["conformance"] => conformance::run(),
        ["bench", ref names @ ..] => bench::run(names),
        ["fuzz", ref args @ ..] => fuzz::run(args),
        [] | ["help" | "-h" | "--help"] => {
            print!("{HELP}");
            Ok(())
        }
        _ => bail!("unknown task {:?}\n\n{HELP}", args.join(" ")),
    }
}
