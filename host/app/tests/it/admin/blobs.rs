//! Files that are uploaded before the release that names them: whole, in parts, and cut.

use std::io::Write;
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::support::admin_api::{digest, path, read, upload};
use crate::support::client::TestAnswer;
use crate::support::eventually::eventually;
use crate::support::server::Server;
use crate::support::setup::{ADMIN_TOKEN, Setup};

/// Send a part of a file.
fn part(server: &Server, digest: &str, offset: usize, is_last: bool, bytes: &[u8]) -> TestAnswer {
    let offset = offset.to_string();
    let complete = if is_last { "?1" } else { "?0" };
    let headers = [("upload-offset", offset.as_str()), ("upload-complete", complete)];
    server.admin.send("PATCH", &path(&format!("blobs/{digest}")), &headers, Some(bytes))
}

fn state(server: &Server, digest: &str) -> Value {
    read(server, &format!("blobs/{digest}"))
}

fn stored(server: &Server, digest: &str) -> bool {
    server.data_dir().join("store/blobs").join(&digest[7..]).exists()
}

/// A file of so many bytes.
fn file(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at % 251) as u8).collect()
}

#[test]
fn a_file_arrives_in_parts_and_goes_on_where_it_was_cut() {
    let server = Server::start();
    let file = file(700_000);
    let name = digest(&file);
    let missing = server.admin.get(&path(&format!("blobs/{name}")));
    missing.refused(404, "not_found", &["no blob", &name]);
    let first = part(&server, &name, 0, false, &file[..300_000]).ok();
    assert_eq!(first, json!({ "digest": name, "bytes": 300_000, "complete": false }));
    // The next part is cut.
    let address = server.admin.address().trim_start_matches("http://").to_owned();
    let mut cut = TcpStream::connect(address).unwrap();
    let head = format!(
        "PATCH /admin/v1/blobs/{name} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {ADMIN_TOKEN}\r\n\
         upload-offset: 300000\r\nupload-complete: ?1\r\ncontent-length: 400000\r\n\r\n"
    );
    cut.write_all(head.as_bytes()).unwrap();
    cut.write_all(&file[300_000..600_000]).unwrap();
    let now = || server.admin.get(&path(&format!("blobs/{name}")));
    eventually("the part arrives", || now().status == 409);
    drop(cut);
    eventually("the cut part leaves nothing", || {
        let answer = now();
        answer.status == 200 && answer.ok() == first
    });
    for (offset, bytes) in [(0, 10), (600_000, 100_000)] {
        let wrong = part(&server, &name, offset, false, &file[..bytes]);
        let named = format!("Upload-Offset is {offset}, but 300000 bytes have arrived");
        wrong.refused(409, "conflict", &[&named]);
    }
    assert!(!stored(&server, &name));
    let last = part(&server, &name, 300_000, true, &file[300_000..]).ok();
    assert_eq!(last, json!({ "digest": name, "bytes": 700_000, "complete": true }));
    assert!(stored(&server, &name) && state(&server, &name) == last);
    // A client that did not see the answer sends the last part again.
    assert_eq!(part(&server, &name, 300_000, true, &file[300_000..]).ok(), last);
    let dropped = server.admin.delete(&path(&format!("blobs/{name}")));
    assert_eq!(dropped.ok(), json!({ "digest": name }));
    eventually("the file is removed", || !stored(&server, &name));
    server.admin.delete(&path(&format!("blobs/{name}"))).refused(404, "not_found", &["no blob"]);
}

#[test]
fn all_that_waits_is_bounded_in_bytes() {
    let server = Setup::new().flag("--waiting-bytes-max", "10000").start();
    let files: Vec<_> = (0..3_u8).map(|index| vec![index; 4000]).collect();
    let names: Vec<_> = files.iter().map(|file| digest(file)).collect();
    upload(&server, &files[0]);
    part(&server, &names[1], 0, false, &files[1]).ok();
    let named = ["over 10000 bytes", "waiting_bytes_max"];
    let whole = server.admin.put(&path(&format!("blobs/{}", names[2])), &files[2]);
    whole.refused(409, "conflict", &named);
    part(&server, &names[2], 0, false, &files[2]).refused(409, "conflict", &named);
    // What did not fit leaves nothing, and what waits goes on.
    assert_eq!(state(&server, &names[2])["bytes"], 0);
    part(&server, &names[1], 4000, false, b"more").ok();
    server.admin.delete(&path(&format!("blobs/{}", names[1]))).ok();
    upload(&server, &files[2]);
    // The same file again takes no more room.
    upload(&server, &files[2]);
}

#[test]
fn a_file_that_is_not_what_its_name_says_leaves_nothing() {
    let server = Setup::new().flag("--upload-bytes-max", "1048576").start();
    let (file, other) = (file(1000), digest(b"other"));
    let answer = server.admin.put(&path(&format!("blobs/{other}")), &file);
    answer.refused(422, "unprocessable", &[&digest(&file), &other, "nothing of it is kept"]);
    part(&server, &other, 0, false, &file).ok();
    let answer = part(&server, &other, 1000, true, &file);
    answer.refused(422, "unprocessable", &[&other, "nothing of it is kept"]);
    // Parts are bounded together.
    part(&server, &other, 0, false, &vec![0; 1 << 20]).ok();
    part(&server, &other, 1 << 20, false, &file).refused(
        413,
        "body_too_large",
        &["upload_bytes_max"],
    );
    for (headers, named) in [
        (&[("upload-complete", "?0")][..], "Upload-Offset is missing"),
        (&[("upload-offset", "-1"), ("upload-complete", "?0")], "Upload-Offset is \"-1\""),
        (&[("upload-offset", "0")], "Upload-Complete is missing"),
        (&[("upload-offset", "0"), ("upload-complete", "yes")], "must be ?0, or ?1"),
    ] {
        let to = path(&format!("blobs/{other}"));
        let answer = server.admin.send("PATCH", &to, headers, Some(&file));
        answer.refused(400, "invalid_request", &[named]);
    }
    for wrong in ["sha256:1", "x", "..%2Flog"] {
        let answer = server.admin.put(&path(&format!("blobs/{wrong}")), &file);
        answer.refused(400, "invalid_request", &["digest is", "64 digits"]);
    }
    let late = part(&server, &digest(b"late"), 5, false, &file);
    late.refused(409, "conflict", &["Upload-Offset is 5, but 0 bytes"]);
    assert!(!stored(&server, &other) && !stored(&server, &digest(&file)));
    // Nothing is left of any of it after a restart.
    let named = upload(&server, &file);
    let server = server.kill().start();
    assert!(!stored(&server, &named), "no release names it");
    server.admin.get(&path(&format!("blobs/{other}"))).refused(404, "not_found", &[]);
}

#[test]
fn only_so_many_files_wait_for_more_parts() {
    let server = Server::start();
    let names: Vec<_> = (0..65_u8).map(|index| digest(&[index, index])).collect();
    for (index, name) in names[..64].iter().enumerate() {
        part(&server, name, 0, false, &[index as u8]).ok();
    }
    let answer = part(&server, &names[64], 0, false, &[64]);
    answer.refused(409, "conflict", &["64 files wait for more parts already"]);
    part(&server, &names[3], 1, true, &[3]).ok();
    part(&server, &names[64], 0, false, &[64]).ok();
}
