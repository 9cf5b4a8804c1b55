//! `cargo xtask books`: the commands of the books are pasted beside a demo, and what they print is
//! compared.
//!
//! A page's fenced blocks of `sh` are pasted in their order into one shell, in a fresh folder that
//! has the clone as `gristmill`. The `text` block that follows one is what it prints on standard
//! output; `...` stands for anything on a line, and on a line of its own for any lines. Blocks of
//! other languages are not pasted.

mod page;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use clap::{Arg, ArgMatches};
use gristmill_client::Listen;

use self::page::{Block, Page};
use crate::build::{self, Built};
use crate::server::Server;
use crate::setup::{self, PLUGIN_TOOLS};
use crate::shell::{own_programs, root, step, target};

/// The pages that every check of the project pastes.
const PAGES: [&str; 3] = ["README.md", "host/docs/run.md", "sdk/README.md"];

/// Those for which the check has no time: they build a plugin in each language, and fetch several
/// trainers.
const SLOW_PAGES: [&str; 5] = [
    "models/README.md",
    "sdk/rust/README.md",
    "sdk/python/README.md",
    "sdk/js/README.md",
    "sdk/c/README.md",
];

/// The addresses of the demo, as the pages have them.
const DATA: &str = "127.0.0.1:8080";
const GRPC: &str = "127.0.0.1:8082";
const ADMIN: &str = "127.0.0.1:8081";

/// Seconds that a page may take.
const PAGE_TIME_S: &str = "900";

/// Is printed when all commands of a block have ended well.
const END: char = '\u{1e}';

pub(crate) fn command() -> clap::Command {
    clap::Command::new("books")
        .about("Paste the commands of the books beside a demo, and compare what they print")
        .arg(
            Arg::new("page")
                .value_name("PAGE")
                .num_args(0..)
                .help("A page, such as models/README.md; all if none is named"),
        )
}

/// Paste the pages that are named, or all.
pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let (gristmill, onnxruntime) = build::build_demo()?;
    let components = setup::build_components(&gristmill)?;
    let built = Built { gristmill, components, onnxruntime };
    let pages: Vec<&str> = match matches.get_many::<String>("page") {
        Some(pages) => pages.map(String::as_str).collect(),
        None => [&PAGES[..], &SLOW_PAGES].concat(),
    };
    paste_all(&built, &pages).map(drop)
}

/// Paste the pages that every check pastes. Returns how many blocks were pasted.
pub(crate) fn check(built: &Built) -> Result<u64> {
    paste_all(built, &PAGES)
}

/// Paste the pages for which the check of each change has no time. Returns how many blocks were
/// pasted.
pub(crate) fn paste_slow(built: &Built) -> Result<u64> {
    paste_all(built, &SLOW_PAGES)
}

/// Paste each page beside a demo of its own. Returns how many blocks were pasted.
fn paste_all(built: &Built, pages: &[&str]) -> Result<u64> {
    let mut pasted = 0;
    for page in pages {
        step(&format!("pasting {page}"));
        let began = Instant::now();
        let text = fs::read_to_string(root().join(page)).context(page.to_string())?;
        let blocks = Page::of(&text).with_context(|| page.to_string())?;
        ensure!(!blocks.0.is_empty(), "{page} has no block of sh");
        paste(built, &blocks).with_context(|| page.to_string())?;
        println!("{page}: {} blocks in {} s", blocks.0.len(), began.elapsed().as_secs());
        pasted += blocks.0.len() as u64;
    }
    Ok(pasted)
}

fn paste(built: &Built, page: &Page) -> Result<()> {
    let folder = target().join("books");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let data = target().join("books-data");
    let free = Listen::FREE_PORTS;
    let server = Server::start(&built.gristmill, &data, &built.onnxruntime, free)?;
    server.deploy_demo(&built.components)?;
    symlink(root(), folder.join("gristmill"))?;
    let addresses = [
        (DATA, server.url.trim_start_matches("http://")),
        (GRPC, &server.grpc),
        (ADMIN, server.admin.url.trim_start_matches("http://")),
    ];
    let local = |text: &str| {
        addresses
            .iter()
            .fold(text.to_owned(), |text, (page, own_address)| text.replace(page, own_address))
    };
    let mut script = String::new();
    for Block { commands, .. } in &page.0 {
        script += &format!("{}printf '{END}'\n", local(commands));
    }
    let Printed { out, errors } = shell(&folder, &script, &server.admin.url)?;
    // After the last block comes what its end prints: nothing.
    let shown: Vec<_> = out.split(END).collect();
    for (number, Block { line, commands, prints }) in page.0.iter().enumerate() {
        let shown_here = shown.get(number).copied().unwrap_or_default();
        let has_ended = number + 1 < shown.len();
        ensure!(has_ended, "the block at line {line} failed:\n{commands}\n{shown_here}\n{errors}");
        let Some(prints) = prints.as_deref().map(local) else { continue };
        let fits = page::fits(&prints, shown_here);
        ensure!(fits, "the block at line {line} printed\n{shown_here}\nand not\n{prints}");
    }
    server.end()
}

/// What a script prints on standard output and standard error.
struct Printed {
    out: String,
    errors: String,
}

/// Run a script in this folder, up to the first command that fails.
fn shell(folder: &Path, script: &str, admin: &str) -> Result<Printed> {
    let file = folder.with_extension("sh");
    fs::write(&file, format!("set -eo pipefail\n{script}"))?;
    let contexts = folder.with_extension("contexts");
    let _ = fs::remove_file(&contexts);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [target().join("debug"), own_programs()].into_iter();
    let path = std::env::join_paths(folders.chain(std::env::split_paths(&path)))?;
    let mut bash = Command::new("timeout");
    bash.args([PAGE_TIME_S, "bash"])
        .arg(&file)
        .current_dir(folder)
        .env("PATH", path)
        .env("GRISTMILL_ADMIN_URL", admin)
        .env("GRISTMILL_BUILD_DIR", target().join(PLUGIN_TOOLS))
        .env("GRISTMILL_CONTEXTS", contexts);
    let ended = bash.output().context("cannot run bash")?;
    if ended.status.code() == Some(124) {
        bail!("the page takes longer than {PAGE_TIME_S} s");
    }
    let [out, errors] =
        [ended.stdout, ended.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Ok(Printed { out, errors })
}
