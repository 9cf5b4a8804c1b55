//! Compiling happens in child processes, within limits, while everything else continues.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::eventually::{eventually, eventually_some};
use crate::support::raw::{self, Raw};
use crate::support::server::Server;
use crate::support::setup::Setup;
use crate::support::{files, guests, load};

/// The path of the plugin that takes long to compile.
const BOMB_PATH: &str = "tenants/acme/plugins/bomb";

/// Wait until a plugin is being compiled. Returns the child's process id.
#[track_caller]
fn until_compiling(server: &Server) -> u32 {
    let is_running = |job: &Value| job["state"] == "running" && job["job"] == "compile-plugin";
    eventually("a plugin is being compiled", || {
        server.status()["jobs"].as_array().unwrap().iter().any(is_running)
    });
    eventually_some("it has a child", || server.children().first().copied())
}

/// Wait until this process has ended.
#[track_caller]
fn until_gone(process: u32) {
    eventually("the child has ended", || {
        let status = fs::read_to_string(format!("/proc/{process}/status"));
        status.map_or(true, |status| status.contains("State:\tZ"))
    });
}

#[test]
fn a_bomb_ends_at_its_limit_and_holds_nobody_up() {
    let server = Setup::new().flag("--compile-timeout-s", "2").start();
    server.digits("acme");
    let put = |name: &str, file: &[u8]| {
        server.admin.put(&format!("/admin/v1/tenants/acme/plugins/{name}"), file)
    };
    let answers = load::under_load(
        1,
        |_| server.assert_reads("acme", 3),
        |served| {
            thread::scope(|scope| {
                let bombs = [guests::bomb(), guests::variant(&guests::bomb(), 1)];
                let bombs = bombs.map(|bomb| scope.spawn(move || put("bomb", &bomb)));
                until_compiling(&server);
                // Requests are answered while it is being compiled, and changes made.
                served.iter().take(20).for_each(drop);
                server.open_tenant("other");
                put("small", &guests::variant(&files::plugin("bench-guest"), 1)).ok();
                bombs.map(|bomb| bomb.join().unwrap())
            })
        },
    );
    for answer in answers {
        let detail =
            answer.refused(422, "invalid_plugin", &["plugin \"bomb\": compilation failed"]);
        // On a very busy machine a child of low priority does not get its 2 s in 20.
        let ends = ["it used up its 2 s of CPU time", "it took longer than 20 s"];
        assert!(ends.iter().any(|end| detail.contains(end)), "{detail}");
    }
    assert_eq!(server.status()["jobs"], Value::Array(Vec::new()));
}

#[test]
fn compiling_has_a_limit_of_memory_and_gives_back_what_it_took() {
    let server = Setup::new().flag("--compile-memory-bytes", "67108864").start();
    server.digits("acme");
    let path = "/admin/v1/tenants/acme/plugins/large";
    let file = guests::large();
    let refused = server.admin.put(path, &file);
    let named = ["compilation failed", "67108864 bytes of memory", "compile_memory_bytes"];
    let detail = refused.refused(422, "invalid_plugin", &named);
    assert!(!detail.contains("compile_timeout_s"), "{detail}");
    server.assert_reads_digits("acme");

    let server = Server::start();
    server.digits("acme");
    server.assert_reads_digits("acme");
    let before = server.resident_bytes();
    for number in 0..2 {
        let answer = server.admin.put(path, &guests::variant(&file, number));
        answer.refused(422, "invalid_plugin", &["does not fit the contract"]);
    }
    let after = server.resident_bytes();
    // Compiling in the server's own process left 300 MB when the component was twice as large.
    assert!(after < before + (64 << 20), "{} MB more", (after - before) >> 20);
}

#[test]
fn a_child_ends_with_its_client() {
    let server = Server::start();
    server.open_tenant("acme");
    let bomb = guests::bomb();
    let mut request = Raw::sent(&server.admin, &raw::upload(BOMB_PATH, bomb.len()));
    request.send(&bomb);
    let child = until_compiling(&server);
    drop(request);
    until_gone(child);
    assert_eq!(server.status()["jobs"], Value::Array(Vec::new()));
}

#[test]
fn a_termination_ends_children_at_once() {
    let server = Setup::new().flag("--drain-timeout-s", "100").start();
    server.open_tenant("acme");
    let admin = server.admin.clone();
    let (bomb, next) = (guests::bomb(), guests::variant(&guests::bomb(), 1));
    let path = "/admin/v1/tenants/acme/plugins/bomb";
    let (one, other) = (admin.clone(), admin);
    let uploads = [
        thread::spawn(move || one.put(path, &bomb)),
        thread::spawn(move || other.put(path, &next)),
    ];
    let child = until_compiling(&server);
    eventually("both jobs are there", || server.status()["jobs"].as_array().unwrap().len() == 2);
    let begun = Instant::now();
    server.signal_terminate();
    let (_, status, _) = server.wait();
    assert_eq!(status.code(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(50), "it took {:?}", begun.elapsed());
    until_gone(child);
    for upload in uploads {
        upload.join().unwrap().refused(503, "unavailable", &["the server is shutting down"]);
    }
}

#[test]
fn a_child_ends_with_a_server_that_is_killed() {
    let server = Server::start();
    server.open_tenant("acme");
    let bomb = guests::bomb();
    let mut request = Raw::sent(&server.admin, &raw::upload(BOMB_PATH, bomb.len()));
    request.send(&bomb);
    let child = until_compiling(&server);
    let setup = server.kill();
    until_gone(child);
    // The next start removes the file that the child had begun to write.
    let compiled = setup.data_dir().join("compiled");
    let server = setup.start();
    let aside = files_below(&compiled).into_iter().filter(|path| path.ends_with(".tmp"));
    assert_eq!(aside.collect::<Vec<_>>(), Vec::<String>::new());
    assert_eq!(server.release(), 1);
}

fn files_below(folder: &std::path::Path) -> Vec<String> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(files_below(&path)),
            false => files.push(path.to_string_lossy().into_owned()),
        }
    }
    files
}

#[test]
fn a_child_has_a_low_priority_and_nothing_of_the_server() {
    let server = Server::start();
    server.open_tenant("acme");
    let admin = server.admin.clone();
    let upload = thread::spawn(move || {
        admin.put("/admin/v1/tenants/acme/plugins/bomb", &guests::bomb());
    });
    let child = until_compiling(&server);
    let read = |name: &str| fs::read_to_string(format!("/proc/{child}/{name}")).unwrap();
    // The nineteenth field of the line is its nice value, the seventeenth after its name.
    let nice = || read("stat").rsplit(") ").next().unwrap().split(' ').nth(16).unwrap().to_owned();
    assert_eq!(nice(), "10", "from its first instruction on");
    // Until then it is a copy of the server.
    eventually("it runs its own program", || read("cmdline").split('\0').nth(1) == Some("child"));
    assert_eq!(read("environ"), "MIMALLOC_ARENA_EAGER_COMMIT=0\0");
    assert_eq!(fs::read_link(format!("/proc/{child}/cwd")).unwrap().to_str(), Some("/"));
    let data = server.data_dir().to_string_lossy().into_owned();
    let open = fs::read_dir(format!("/proc/{child}/fd")).unwrap();
    let open = open.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
    let open: Vec<_> = open.filter(|path| path.starts_with(&data)).collect();
    // Only the file for its answer, which is its standard output.
    assert_eq!(open.len(), 1, "{open:?}");
    server.kill();
    drop(upload);
}
