//! `gristmill fsck`: what it finds in a store, and that it changes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::server::Server;
use crate::support::setup::Setup;

/// What the command printed on standard output, and whether it found nothing.
fn check(setup: &Setup) -> (Value, bool) {
    let data_dir = setup.data_dir();
    let arguments = ["fsck", "--output", "json", "--data-dir", data_dir.to_str().unwrap()];
    let before = files_of(&data_dir.join("store"));
    let output = setup.run(&arguments);
    assert_eq!(files_of(&data_dir.join("store")), before, "it changes nothing");
    let report = serde_json::from_slice(&output.stdout);
    let report = report.unwrap_or_else(|error| panic!("{error}: {output:?}"));
    (report, output.status.success())
}

/// All files below a folder, with their bytes.
fn files_of(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.append(&mut files_of(&path));
        } else {
            let bytes = fs::read(&path).unwrap();
            files.insert(path, bytes);
        }
    }
    files
}

/// The findings' severities, and their texts.
#[track_caller]
fn findings(setup: &Setup) -> Vec<(String, String)> {
    let (report, is_clean) = check(setup);
    let findings = report["findings"].as_array().unwrap().iter();
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
    let findings: Vec<_> = findings.map(|one| (text(one, "severity"), text(one, "text"))).collect();
    assert_eq!(is_clean, findings.is_empty());
    findings
}

/// Each finding has its severity and the words.
#[track_caller]
fn assert_found(setup: &Setup, expected: &[(&str, &[&str])]) {
    let findings = findings(setup);
    assert_eq!(findings.len(), expected.len(), "{findings:#?}");
    for ((severity, text), (expected, words)) in findings.iter().zip(expected) {
        assert_eq!(severity, expected, "{text}");
        for word in *words {
            assert!(text.contains(word), "{word:?} is not in {text:?}");
        }
    }
}

fn release(setup: &Setup, number: u64) -> PathBuf {
    setup.data_dir().join(format!("store/log/{number:020}.json"))
}

fn cut(file: &Path) {
    let bytes = fs::read(file).unwrap();
    fs::write(file, &bytes[..bytes.len() / 2]).unwrap();
}

#[test]
fn a_store_without_faults_also_while_a_server_runs() {
    let server = Server::start();
    server.digits("acme");
    let last = server.release();
    let (report, is_clean) = check(server.setup());
    assert!(is_clean, "{report}");
    assert_eq!((&report["releases"], &report["files"]), (&last.into(), &2.into()));
    assert!(report["file_bytes"].as_u64().unwrap() > 10_000);
    let setup = server.kill();
    assert_eq!(findings(&setup), []);
    let data_dir = setup.data_dir();
    let output = setup.run(&["fsck", "--data-dir", data_dir.to_str().unwrap()]);
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.starts_with(&format!("releases: {last}, files: 2 (")), "{stdout}");
}

#[test]
fn every_damaged_release_and_file_is_named_with_a_cure() {
    let server = Server::start();
    server.digits("acme");
    for tenant in ["one", "two", "three"] {
        server.open_tenant(tenant);
    }
    let last = server.release();
    let setup = server.kill();
    let blobs = setup.data_dir().join("store/blobs");
    let blobs = || fs::read_dir(&blobs).unwrap().map(|entry| entry.unwrap().path());
    let of = |bytes: &[u8]| blobs().find(|path| fs::read(path).unwrap() == bytes).unwrap();
    let (model, plugin) =
        (of(&crate::support::files::model("digits")), of(&crate::support::files::plugin("digits")));
    fs::remove_file(&model).unwrap();
    cut(&plugin);
    assert_eq!(findings(&setup).len(), 2);
    let all_findings = findings(&setup);
    for (words, name) in [
        ("model \"digits\": the server has no file", model.file_name().unwrap()),
        ("plugin \"digits\" of tenant \"acme\": sha256:", plugin.file_name().unwrap()),
    ] {
        let (severity, text) = all_findings.iter().find(|(_, text)| text.contains(words)).unwrap();
        let name = name.to_str().unwrap();
        assert_eq!(severity, "warning");
        assert!(text.contains(&format!("put it back as blobs/{name}")), "{text}");
    }

    // The server would stop at the first of these two.
    cut(&release(&setup, last - 2));
    fs::copy(release(&setup, 1), release(&setup, last)).unwrap();
    fs::write(release(&setup, last).with_file_name("notes.txt"), "mine").unwrap();
    let all_findings = findings(&setup);
    let errors: Vec<_> = all_findings.iter().filter(|(severity, _)| severity == "error").collect();
    let [(_, first), (_, second)] = &errors[..] else { panic!("{all_findings:#?}") };
    let cannot = |number: u64| format!("release {number} in the log cannot be used");
    assert!(first.starts_with(&cannot(last - 2)), "{first}");
    assert!(
        first.contains(&format!("to serve the state of release {} (keep", last - 3)),
        "{first}"
    );
    assert!(second.starts_with(&cannot(last)), "{second}");
    assert!(second.contains("it says that it is release 1"), "{second}");
    assert!(all_findings.iter().any(|(_, text)| text.contains("notes.txt is not a release")));
    // What the server says at its start names the command.
    let error = setup.start_refused();
    assert!(error.contains(&cannot(last - 2)) && error.contains("gristmill fsck"), "{error}");
}

#[test]
fn a_gap_and_a_log_that_is_too_short() {
    let server = Server::start();
    for tenant in ["one", "two", "three"] {
        server.open_tenant(tenant);
    }
    let setup = server.kill();
    let away = setup.data_dir().join("away.json");
    fs::rename(release(&setup, 3), &away).unwrap();
    assert_found(&setup, &[("error", &["ends with release 2", "release 3 is missing"])]);
    fs::rename(&away, release(&setup, 3)).unwrap();
    fs::rename(release(&setup, 2), &away).unwrap();
    let gap = "release 2 is missing, release 3 is there";
    assert_found(&setup, &[("error", &["the release log has a gap", gap])]);
    fs::rename(&away, release(&setup, 2)).unwrap();
    assert_eq!(setup.start().release(), 3);
}

#[test]
fn a_folder_without_a_store_is_named_and_stays_as_it_is() {
    let setup = Setup::new();
    let data_dir = setup.data_dir();
    let output = setup.run(&["fsck", "--data-dir", data_dir.to_str().unwrap()]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && error.contains("there is no store in"), "{error}");
    assert!(!data_dir.exists());
}
