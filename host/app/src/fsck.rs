//! `gristmill fsck`: checks what a server keeps in its store, and changes nothing.

use std::path::Path;

use anyhow::{Result, bail};
use clap::{ArgMatches, Command};
use gristmill_cli::Progress;
use gristmill_cli::output::{self, Output};
use gristmill_control::{Finding, StoreCheck, check_store};
use gristmill_store::Store;
use serde_json::json;

use crate::{config, data_dir, hash_key};

pub(crate) fn command() -> Command {
    Command::new("fsck")
        .about("Check the releases and uploaded files of a store; changes nothing")
        .after_help(
            "Examples:\n  \
             gristmill fsck --data-dir /var/lib/gristmill\n  \
             gristmill fsck --store s3://bucket/gristmill --hash-key-file hash-key\n\n\
             It reads every release of the log and every file that a release names, and compares \
             them with their digests. Each finding says what can be done. `error` marks what stops \
             a server from starting; with a `warning` it starts. A plugin or model that a warning \
             names does not serve. The exit code is 1 if there are findings.\n\n\
             A server may run meanwhile. Files that no release names are not looked at: a server \
             removes them when it starts. Files of a store at a URL are fetched, one at a time.",
        )
        .args(config::data_args())
        .arg(output::argument())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let data = config::data(matches)?;
    // Copies of files that are fetched: they are not those of a server, which may be damaged.
    let copies = tempfile::tempdir()?;
    let store = match &data.store {
        Some(url) => Store::open_shared(url, copies.path(), 0)?,
        None => open_local(&data.data_dir)?,
    };
    let hash_key = hash_key::read(&data)?.map(|hasher| hasher.id());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut progress = None;
    let check = runtime.block_on(check_store(&store, hash_key, |read, files| {
        let progress =
            progress.get_or_insert_with(|| Progress::count("reading files", files as u64));
        progress.set(read + 1);
    }));
    drop(progress);
    let check = check?;
    match Output::of(matches) {
        Output::Json => println!("{}", document(&check)),
        Output::Text => print!("{}", text(&check)),
    }
    match check.findings.len() {
        0 => Ok(()),
        1 => bail!("1 finding"),
        findings => bail!("{findings} findings"),
    }
}

fn open_local(data_dir: &Path) -> Result<Store> {
    let folder = data_dir.join("store");
    if !folder.is_dir() {
        bail!(
            "there is no store in {}: name the data directory with --data-dir",
            data_dir.display()
        );
    }
    if let Some(process) = data_dir::held_by(data_dir) {
        eprintln!("a server is running ({process}): its changes during the check may be missed");
    }
    Ok(Store::open_local(&folder)?)
}

fn severity(finding: &Finding) -> &'static str {
    if finding.stops_start { "error" } else { "warning" }
}

fn document(check: &StoreCheck) -> serde_json::Value {
    let findings = check.findings.iter();
    let findings =
        findings.map(|finding| json!({ "severity": severity(finding), "text": finding.text }));
    json!({
        "releases": check.releases,
        "files": check.files,
        "file_bytes": check.file_bytes,
        "findings": findings.collect::<Vec<_>>(),
    })
}

fn text(check: &StoreCheck) -> String {
    let findings = check.findings.iter();
    let findings = findings
        .map(|finding| format!("{}: {}\n", severity(finding), output::escaped(&finding.text)));
    let StoreCheck { releases, files, file_bytes, .. } = check;
    format!(
        "{}releases: {releases}, files: {files} ({file_bytes} bytes)\n",
        String::from_iter(findings)
    )
}
