//! The compiled code on disk: made once, whole, verified, and removed when it is unused.

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::thread;

use crate::support::deploy::processor;
use crate::support::modules::{ANSWER, Guest, honest};
use crate::support::server::Server;
use crate::support::setup::Setup;
use crate::support::soak::times;
use crate::support::{files, guests};

/// All files of compiled code below the server's data directory.
fn code_of(setup: &Setup) -> Vec<PathBuf> {
    let mut code_files = Vec::new();
    for engine in fs::read_dir(setup.data_dir().join("compiled")).unwrap() {
        let engine = engine.unwrap().path();
        if engine.is_dir() {
            let files = fs::read_dir(engine).unwrap().map(|entry| entry.unwrap().path());
            code_files
                .extend(files.filter(|path| path.extension().is_some_and(|end| end == "code")));
        }
    }
    code_files.sort();
    code_files
}

#[test]
fn the_same_new_file_put_many_times_at_once() {
    let mut server = Server::start();
    server.digits("acme");
    let plugin = files::plugin("bench-guest");
    for round in 0..u32::try_from(times(50, 200)).unwrap() {
        let file = guests::variant(&plugin, round);
        let path = "/admin/v1/tenants/acme/plugins/new";
        let releases: Vec<_> = thread::scope(|scope| {
            let put = || server.admin.put(path, &file).ok()["release"].as_u64().unwrap();
            let puts: Vec<_> = (0..16).map(|_| scope.spawn(put)).collect();
            puts.into_iter().map(|put| put.join().unwrap()).collect()
        });
        assert_eq!(releases, [releases[0]; 16], "round {round}");
    }
    server.assert_alive();
    server.assert_reads_digits("acme");
    // The next release removes the code of all replaced plugins.
    server.open_tenant("other");
    assert_eq!(code_of(&server.kill()).len(), 2);
}

#[test]
fn a_tenants_compiled_code_is_bounded() {
    let server = Server::start();
    server.open_tenant("acme");
    let (plugin, path) = (files::plugin("bench-guest"), "/admin/v1/tenants/acme/plugins");
    server.admin.put(&format!("{path}/first"), &plugin).ok();
    let setup = server.kill();
    let bytes = fs::metadata(&code_of(&setup)[0]).unwrap().len();
    let limit = (bytes * 3 / 2).to_string();
    let server = setup.flag("--tenant-compiled-bytes-max", &limit).start();
    // The same file has the same code.
    server.admin.put(&format!("{path}/again"), &plugin).ok();
    let other = guests::variant(&plugin, 1);
    let before = server.release();
    let refused = server.admin.put(&format!("{path}/second"), &other);
    let sum = format!("would be {} bytes; the limit is {limit}", 2 * bytes);
    let named = ["plugin \"second\"", "tenant \"acme\"", &sum, "tenant_compiled_bytes_max"];
    refused.refused(409, "conflict", &named);
    assert_eq!(server.release(), before);
    // The limit is each tenant's own, and a plugin may replace another.
    server.open_tenant("other");
    server.plugin("other", "mine", "bench-guest");
    server.admin.delete(&format!("{path}/again")).ok();
    server.admin.put(&format!("{path}/first"), &other).ok();
    let third = server.admin.put(&format!("{path}/third"), &guests::variant(&plugin, 2));
    third.refused(409, "conflict", &["plugin \"third\""]);
    // Nothing of the refused ones is left on disk.
    let setup = server.kill();
    assert_eq!(code_of(&setup).len(), 2);
    // A tenant that has too much already can replace a plugin by one that is no larger, but not
    // add one.
    let server = setup.flag("--tenant-compiled-bytes-max", "65536").start();
    server.admin.put(&format!("{path}/first"), &plugin).ok();
    let fourth = server.admin.put(&format!("{path}/fourth"), &other);
    fourth.refused(409, "conflict", &["plugin \"fourth\"", "the limit is 65536 "]);
}

#[test]
fn the_code_of_a_plugin_that_cannot_be_loaded_counts() {
    let server = Server::start();
    server.open_tenant("acme");
    server.plugin("acme", "large", "vocabulary");
    let setup = server.kill();
    let bytes = fs::metadata(&code_of(&setup)[0]).unwrap().len();
    let server = setup
        .flag("--plugin-memory-bytes", "1048576")
        .flag("--tenant-compiled-bytes-max", &bytes.to_string())
        .start();
    server.log_with("not served");
    let small = Guest::pre(|code| {
        honest(code);
        code.i32_const(ANSWER);
    });
    let refused = server.admin.put("/admin/v1/tenants/acme/plugins/small", &small.file());
    refused.refused(409, "conflict", &["plugin \"small\"", "tenant_compiled_bytes_max"]);
    assert_eq!(code_of(&server.kill()).len(), 1);
}

#[test]
fn two_servers_on_one_cache_directory() {
    let cache = tempfile::tempdir().unwrap();
    let setup = || {
        let setup = Setup::new();
        fs::create_dir_all(setup.data_dir()).unwrap();
        symlink(cache.path(), setup.data_dir().join("compiled")).unwrap();
        setup
    };
    let (one, other) = thread::scope(|scope| {
        let other = scope.spawn(|| setup().start());
        (setup().start(), other.join().unwrap())
    });
    let mut servers = [one, other];
    for server in &servers {
        server.digits("acme");
    }
    let plugin = files::plugin("bench-guest");
    for round in 0..20 {
        let file = guests::variant(&plugin, round);
        thread::scope(|scope| {
            for server in &servers {
                scope.spawn(|| server.put("tenants/acme/plugins/new", &file));
            }
        });
    }
    for server in &mut servers {
        server.assert_alive();
        server.assert_reads_digits("acme");
        assert!(!server.log().contains("compiled code unusable"), "{}", server.log());
    }
    let [one, _other] = servers;
    let server = one.kill().start();
    server.assert_reads_digits("acme");
    assert!(!server.log().contains("compiled code unusable"), "{}", server.log());
}

/// A server with two plugins that starts again after their compiled code was damaged.
#[track_caller]
fn spoilt(spoil: impl FnOnce(&Path, &Path)) {
    let server = Server::start();
    server.digits("acme");
    server.hostile("other");
    let setup = server.kill();
    let code = code_of(&setup);
    let [one, other] = &code[..] else { panic!("{code:?}") };
    spoil(one, other);
    let spoilt = fs::read(one).ok();
    let server = setup.start();
    server.assert_reads_digits("acme");
    let answer = server.data.post("/v1/other/infer/hostile", b"");
    assert_eq!((answer.status, answer.text().as_str()), (200, "harmless"));
    let log = server.log_with("compiled code unusable");
    assert_eq!(log.matches("compiled code unusable, compiling anew").count(), 1, "{log}");
    // The code is whole again.
    let server = server.kill().start();
    server.assert_reads_digits("acme");
    assert_eq!(server.log().matches("compiled code unusable").count(), 1, "{}", server.log());
    assert!(fs::read(one).ok() != spoilt);
}

fn overwrite(path: &Path, at: u64, bytes: &[u8]) {
    fs::OpenOptions::new().write(true).open(path).unwrap().write_all_at(bytes, at).unwrap();
}

#[test]
fn damaged_code() {
    spoilt(|code, _| {
        let len = fs::metadata(code).unwrap().len();
        overwrite(code, len / 2, &vec![0xcc; len as usize / 50]);
    });
}

#[test]
fn one_flipped_bit_of_code() {
    spoilt(|code, _| {
        let mut bytes = fs::read(code).unwrap();
        let middle = bytes.len() / 3;
        bytes[middle] ^= 1;
        fs::write(code, bytes).unwrap();
    });
}

#[test]
fn code_with_a_hole() {
    spoilt(|code, _| {
        let len = fs::metadata(code).unwrap().len();
        overwrite(code, len / 4, &vec![0; len as usize / 2]);
    });
}

#[test]
fn truncated_code() {
    spoilt(|code, _| {
        let len = fs::metadata(code).unwrap().len();
        fs::OpenOptions::new().write(true).open(code).unwrap().set_len(len - 4096).unwrap();
    });
}

#[test]
fn empty_code() {
    spoilt(|code, _| fs::write(code, b"").unwrap());
}

#[test]
fn longer_code() {
    spoilt(|code, _| {
        let bytes = fs::read(code).unwrap();
        fs::write(code, [&bytes[..], b"more"].concat()).unwrap();
    });
}

#[test]
fn code_of_another_plugin() {
    spoilt(|code, other| {
        fs::copy(other, code).unwrap();
    });
}

#[test]
fn code_of_another_host() {
    let server = Server::start();
    server.digits("acme");
    let foreign = server.kill();
    let server = Server::start();
    server.digits("acme");
    let setup = server.kill();
    let (from, to) = (&code_of(&foreign)[0], &code_of(&setup)[0]);
    assert_eq!(from.file_name(), to.file_name());
    fs::copy(from, to).unwrap();
    let server = setup.start();
    server.assert_reads_digits("acme");
    server.log_with("its checksum does not match");
}

#[test]
fn the_key_is_its_owners_and_is_made_anew_where_it_is_damaged() {
    let server = Server::start();
    server.digits("acme");
    let setup = server.kill();
    let key = setup.data_dir().join("compiled/key");
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    fs::write(&key, b"short").unwrap();
    let server = setup.start();
    server.assert_reads_digits("acme");
    assert_eq!(fs::read(&key).unwrap().len(), 32);
}

#[test]
fn what_is_left_behind_is_removed() {
    let server = Server::start();
    server.digits("acme");
    let setup = server.kill();
    let compiled = setup.data_dir().join("compiled");
    let engine_folder = code_of(&setup)[0].parent().unwrap().to_owned();
    let (aside, old) = (engine_folder.join("x.tmp"), engine_folder.join("00.cwasm"));
    let engine = compiled.join("0123456789abcdef");
    fs::write(&aside, b"half").unwrap();
    fs::write(&old, b"old").unwrap();
    fs::create_dir(&engine).unwrap();
    fs::write(engine.join("x.cwasm"), b"old").unwrap();
    let server = setup.start();
    assert!([&aside, &old, &engine].iter().all(|path| !path.exists()));
    server.assert_reads_digits("acme");
    // The code of replaced or deleted plugins is removed; that of served plugins stays.
    server.plugin("acme", "spare", "hostile");
    let setup = server.kill();
    assert_eq!(code_of(&setup).len(), 2);
    let server = setup.start();
    assert_eq!(server.admin.delete("/admin/v1/tenants/acme/plugins/spare").status, 200);
    let server = server.kill().start();
    server.assert_reads_digits("acme");
    assert_eq!(code_of(&server.kill()).len(), 1);
}

#[test]
fn a_fault_of_the_host_says_so_and_no_path() {
    let server = Server::start();
    server.digits("acme");
    let compiled = server.data_dir().join("compiled");
    fs::remove_dir_all(&compiled).unwrap();
    let answer = server.admin.put("/admin/v1/tenants/acme/plugins/new", &files::plugin("hostile"));
    let detail = answer.refused(500, "internal", &["compiled code cannot be used"]);
    assert!(!detail.contains('/'), "{detail}");
    server.log_with("No such file or directory");
    server.assert_reads_digits("acme");
    server.pipeline("acme", "again", &processor("digits", serde_json::json!({})));
}
