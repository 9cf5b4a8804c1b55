//! The release log: changed and missing releases are found when the server starts. Also the files
//! that killed processes and refused uploads leave in the store.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use crate::support::files;
use crate::support::server::Server;
use crate::support::setup::Setup;
use crate::support::words::assert_names;

/// A data directory with four releases, each a tenant.
fn four_releases() -> Setup {
    let server = Server::start();
    for weight in 1..=4 {
        let tenant = json!({ "open": true, "weight": weight * 100 });
        server.put_json(&format!("tenants/tenant-{weight}"), &tenant);
    }
    server.kill()
}

fn file(setup: &Setup, number: u64) -> PathBuf {
    setup.data_dir().join(format!("store/log/{number:020}.json"))
}

#[track_caller]
fn assert_start_refused(setup: &Setup, named: &[&str]) {
    assert_names(&setup.start_refused(), named);
}

#[test]
fn a_release_that_is_missing_in_the_middle() {
    let setup = four_releases();
    let away = setup.data_dir().join("away.json");
    fs::rename(file(&setup, 2), &away).unwrap();
    let named = ["the release log has a gap", "release 2 is missing, releases 3 to 4 are there"];
    assert_start_refused(&setup, &named);
    fs::rename(&away, file(&setup, 2)).unwrap();
    assert_eq!(setup.start().release(), 4, "nothing was made of the gap");
}

#[test]
fn the_first_release_is_missing() {
    let setup = four_releases();
    fs::remove_file(file(&setup, 1)).unwrap();
    assert_start_refused(&setup, &["release 1 is missing, releases 2 to 4 are there"]);
}

#[test]
fn a_digit_that_was_changed() {
    let setup = four_releases();
    for (number, from, to) in [(2, "200", "201"), (4, "400", "401")] {
        let path = file(&setup, number);
        let text = fs::read_to_string(&path).unwrap();
        let weight = |digits: &str| format!("\"weight\": {digits}");
        assert_eq!(text.matches(&weight(from)).count(), 1, "{text}");
        fs::write(&path, text.replace(&weight(from), &weight(to))).unwrap();
        let release = format!("release {number} in the log cannot be used");
        assert_start_refused(&setup, &[&release, "its content was changed"]);
        fs::write(&path, text).unwrap();
    }
    assert_eq!(setup.start().release(), 4);
}

#[test]
fn releases_in_each_others_places() {
    let setup = four_releases();
    let (two, three) = (fs::read(file(&setup, 2)).unwrap(), fs::read(file(&setup, 3)).unwrap());
    fs::write(file(&setup, 2), three).unwrap();
    fs::write(file(&setup, 3), two).unwrap();
    assert_start_refused(
        &setup,
        &["release 2 in the log cannot be used", "it says that it is release 3"],
    );
}

#[test]
fn a_release_of_another_log() {
    let setup = four_releases();
    let other = Server::start();
    for tenant in ["a", "b", "c"] {
        other.open_tenant(tenant);
    }
    fs::copy(file(&other.kill(), 3), file(&setup, 3)).unwrap();
    assert_start_refused(
        &setup,
        &["release 3 in the log cannot be used", "does not follow release 2"],
    );
}

#[test]
fn half_a_release() {
    let setup = four_releases();
    let whole = fs::read(file(&setup, 4)).unwrap();
    fs::write(file(&setup, 4), &whole[..whole.len() / 2]).unwrap();
    assert_start_refused(&setup, &["release 4 in the log cannot be used", "EOF"]);
}

/// The file that says where the log ends.
fn end_of(setup: &Setup) -> PathBuf {
    setup.data_dir().join("store/log-end.json")
}

#[test]
fn the_newest_releases_are_missing() {
    let setup = four_releases();
    let away = |number| setup.data_dir().join(format!("away-{number}.json"));
    let cure = ["put the files of the release log back", "remove the file log-end.json"];
    fs::rename(file(&setup, 4), away(4)).unwrap();
    assert_start_refused(
        &setup,
        &["shorter than it was: it ends with release 3, and release 4 is missing"],
    );
    assert_start_refused(&setup, &cure);
    fs::rename(file(&setup, 3), away(3)).unwrap();
    assert_start_refused(&setup, &["it ends with release 2, and releases 3 to 4 are missing"]);
    fs::rename(away(3), file(&setup, 3)).unwrap();
    fs::rename(away(4), file(&setup, 4)).unwrap();
    assert_eq!(setup.start().release(), 4, "nothing was lost");
}

#[test]
fn all_releases_are_missing() {
    let setup = four_releases();
    fs::remove_dir_all(setup.data_dir().join("store/log")).unwrap();
    assert_start_refused(&setup, &["it ends with release 0, and releases 1 to 4 are missing"]);
}

#[test]
fn a_shorter_log_is_served_once_its_end_is_forgotten() {
    let setup = four_releases();
    fs::remove_file(file(&setup, 4)).unwrap();
    fs::remove_file(end_of(&setup)).unwrap();
    let server = setup.start();
    assert_eq!(server.release(), 3);
    assert_eq!(server.open_tenant("other"), 4);
    // The log ends there from now on.
    let setup = server.kill();
    fs::remove_file(file(&setup, 4)).unwrap();
    assert_start_refused(&setup, &["it ends with release 3, and release 4 is missing"]);
}

#[test]
fn a_log_that_goes_beyond_the_end_that_was_remembered() {
    let setup = four_releases();
    let end = fs::read(end_of(&setup)).unwrap();
    let server = setup.start();
    server.open_tenant("other");
    // The state after a crash between writing a release and writing the file with the end.
    let setup = server.kill();
    fs::write(end_of(&setup), end).unwrap();
    let server = setup.start();
    assert_eq!(server.release(), 5);
    let setup = server.kill();
    fs::remove_file(file(&setup, 5)).unwrap();
    assert_start_refused(&setup, &["it ends with release 4, and release 5 is missing"]);
}

#[test]
fn a_log_that_was_replaced_as_a_whole() {
    let (setup, other) = (four_releases(), four_releases());
    for number in 1..=4 {
        fs::copy(file(&other, number), file(&setup, number)).unwrap();
    }
    assert_start_refused(&setup, &["release 4 in the log is not the one that this server wrote"]);
}

#[test]
fn a_log_whose_end_was_never_remembered() {
    let setup = four_releases();
    fs::remove_file(end_of(&setup)).unwrap();
    let server = setup.start();
    assert_eq!(server.release(), 4);
    let setup = server.kill();
    assert!(end_of(&setup).is_file());
    fs::write(end_of(&setup), "{").unwrap();
    assert_start_refused(&setup, &["log-end.json is damaged", "remove the file log-end.json"]);
}

/// A release in the format of earlier versions.
fn old_release(number: u64, tenant: &str) -> String {
    let changes = json!([{ "kind": "put_tenant", "tenant": tenant, "spec": { "open": true } }]);
    json!({ "number": number, "published_at_ms": 5, "changes": changes }).to_string()
}

#[test]
fn a_log_of_an_older_version_is_read_and_goes_on_with_digests() {
    let setup = Setup::new();
    fs::create_dir_all(file(&setup, 1).parent().unwrap()).unwrap();
    for (number, tenant) in [(1, "acme"), (2, "other")] {
        fs::write(file(&setup, number), old_release(number, tenant)).unwrap();
    }
    let server = setup.start();
    assert_eq!(server.release(), 2);
    assert_eq!(server.open_tenant("third"), 3);
    assert_eq!(server.open_tenant("fourth"), 4);
    let server = server.kill().start();
    let tenants = server.status()["tenants"].as_object().unwrap().len();
    assert_eq!((server.release(), tenants), (4, 4));

    let setup = server.kill();
    fs::write(file(&setup, 2), old_release(2, "forged")).unwrap();
    assert_start_refused(
        &setup,
        &["release 3 in the log cannot be used", "does not follow release 2"],
    );
    fs::write(file(&setup, 2), old_release(2, "other")).unwrap();
    fs::write(file(&setup, 4), old_release(4, "stripped")).unwrap();
    assert_start_refused(&setup, &["release 4 in the log cannot be used", "it has no digest"]);
}

#[test]
fn a_release_of_a_newer_version() {
    let setup = four_releases();
    let newer = json!({ "format": 12, "anything": [] }).to_string();
    fs::write(file(&setup, 5), newer).unwrap();
    assert_start_refused(&setup, &["release 5 in the log cannot be used", "its format is 12"]);
}

fn blobs(setup: &Setup) -> Vec<PathBuf> {
    let entries = fs::read_dir(setup.data_dir().join("store/blobs"));
    entries.into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn leftovers_of_killed_writes_are_removed_at_the_start() {
    let server = Server::start();
    server.model("digits");
    let setup = server.kill();
    let [kept] = &blobs(&setup)[..] else { panic!("{:?}", blobs(&setup)) };
    let begun = PathBuf::from(format!("{}#1", kept.display()));
    let unnamed = kept.with_file_name("0".repeat(64));
    let release = PathBuf::from(format!("{}#1", file(&setup, 2).display()));
    for path in [&begun, &unnamed, &release] {
        fs::write(path, "left").unwrap();
    }
    let server = setup.start();
    server.logs("removed files of interrupted writes and refused uploads from the store");
    for path in [begun, unnamed, release] {
        assert!(!path.exists(), "{}", path.display());
    }
    assert!(kept.is_file());
    assert_eq!(server.status()["models"]["digits"]["state"], "ready");
}

#[test]
fn the_files_of_refused_uploads_are_removed() {
    let server = Server::start();
    server.digits("acme");
    let before = blobs(server.setup());
    let put = |path: &str, file: &[u8]| server.admin.put(&format!("/admin/v1/{path}"), file);
    put("models/broken", b"no model at all").refused(422, "invalid_model", &[]);
    let wrong_role = files::plugin("ranker-pre");
    put("tenants/acme/plugins/digits", &wrong_role).refused(422, "unprocessable", &[]);
    // This one is known to an earlier release.
    put("tenants/nobody/plugins/digits", &files::plugin("digits")).refused(404, "not_found", &[]);
    let mut after = blobs(server.setup());
    after.sort();
    let mut before = before;
    before.sort();
    assert_eq!(after, before);
    server.assert_reads("acme", 4);
}

#[test]
fn a_disk_that_refuses_a_write_changes_nothing_and_names_no_path() {
    let server = Server::start();
    server.open_tenant("acme");
    let blobs = server.setup().data_dir().join("store/blobs");
    let _ = fs::remove_dir_all(&blobs);
    fs::write(&blobs, "no folder").unwrap();
    let answer = server.admin.put("/admin/v1/models/digits", &files::model("digits"));
    let text = "the server cannot write to its storage: the change is not made";
    let detail = answer.refused(500, "internal", &[text]);
    assert!(!detail.contains('/'), "{detail}");
    assert_eq!(server.release(), 1);
    server.logs("change failed");
    fs::remove_file(&blobs).unwrap();
    server.model("digits");
    assert_eq!(server.release(), 2);
}
