//! `gristmill doctor`: what it finds, and what it says to do.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread;

use serde_json::Value;

use crate::support::cli::Cli;
use crate::support::files;
use crate::support::s3::SECRET;
use crate::support::server::Server;
use crate::support::setup::{ADMIN_TOKEN, Setup};
use crate::support::words::assert_names;

const FREE: [&str; 6] =
    ["--listen", "127.0.0.1:0", "--grpc-listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];

/// What was found about one thing: its state and its text.
#[track_caller]
fn found<'a>(findings: &'a Value, subject: &str) -> (&'a str, &'a str) {
    let finding = findings.as_array().unwrap().iter().find(|one| one["subject"] == subject);
    let finding = finding.unwrap_or_else(|| panic!("no {subject:?} in {findings}"));
    (finding["state"].as_str().unwrap(), finding["text"].as_str().unwrap())
}

#[test]
fn a_machine_and_a_server_that_are_well() {
    let server = Server::start();
    let library = files::onnxruntime();
    let cli = Cli::of(&server).with("ORT_DYLIB_PATH", library.to_str().unwrap());
    let findings = cli.json(&[&["doctor"][..], &FREE].concat());
    let (state, text) = found(&findings, "onnxruntime");
    assert_eq!(state, "ok", "{text}");
    assert_names(text, &["libonnxruntime", "providers: ", "cpu, tract"]);
    for subject in ["listen", "grpc_listen", "admin_listen", "store", "clock"] {
        assert_eq!(found(&findings, subject).0, "ok", "{findings}");
    }
    let (state, text) = found(&findings, "token");
    assert_eq!(state, "ok");
    assert_names(text, &[server.admin.authority(), "role admin"]);
    assert_eq!(found(&findings, "version").0, "ok");
    for subject in ["runtimes", "open files", "memory", "data_dir"] {
        assert_ne!(found(&findings, subject).0, "fault", "{findings}");
    }
    assert!(!findings.to_string().contains(ADMIN_TOKEN));
    let lines = cli.ok(&[&["doctor"][..], &FREE].concat());
    assert_eq!(lines.lines().count(), findings.as_array().unwrap().len(), "{lines}");
    assert!(lines.starts_with("ok       onnxruntime"), "{lines}");
    assert!(!cli.folder().join("gristmill-data").exists(), "nothing is made");
}

#[test]
fn each_fault_has_a_cure_and_the_exit_code_says_that_there_are_some() {
    let server = Server::start();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let cli = Cli::of(&server);
    cli.write("file", "");
    let mut flags = FREE;
    flags[1] = &address;
    let others =
        ["--data-dir", "file/data", "--onnxruntime-library", "none.so", "--token", "wrong"];
    let ended = thread::scope(|scope| {
        // It closes both connections, one for each plane, without an answer.
        scope.spawn(|| taken.incoming().take(2).for_each(drop));
        cli.run(&[&["doctor"][..], &flags, &others, &["--output", "json"]].concat())
    });
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.ends_with(" faults\n"), "{ended:?}");
    let findings: Value = serde_json::from_str(&ended.out).unwrap();
    for (subject, named) in [
        ("listen", address.as_str()),
        ("onnxruntime", "none.so"),
        ("data_dir", "cannot be written"),
        ("token", "refuses it: 403"),
    ] {
        let (state, text) = found(&findings, subject);
        assert_eq!(state, "fault", "{findings}");
        assert_names(text, &[named]);
    }
    let cure = |subject: &str| {
        let mut all = findings.as_array().unwrap().iter();
        all.find(|one| one["subject"] == subject).unwrap()["cure"].as_str().unwrap().to_owned()
    };
    assert_eq!(cure("listen"), "choose another address with --listen");

    // Settings that are wrong are one fault, and a server that does not run is none.
    let bare = Cli::new();
    let ended = bare.run(&["doctor", "--listen", "nowhere", "--admin", "127.0.0.1:1"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_names(&ended.out, &["fault    settings", "listen is \"nowhere\"", "warning  server"]);
    assert_eq!(ended.stderr, "error: 1 fault\n");
}

#[test]
fn a_limit_on_addresses_with_which_no_server_starts_is_a_fault_with_a_cure() {
    let cli = Cli::new();
    let gristmill = cli.command(&[&["doctor"][..], &FREE].concat());
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -v 1073741824 && exec \"$0\" \"$@\""]).current_dir(cli.folder());
    shell.arg(gristmill.get_program()).args(gristmill.get_args());
    for (name, value) in gristmill.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let ended = shell.output().unwrap();
    let out = String::from_utf8(ended.stdout).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{out}");
    assert_names(
        &out,
        &["fault    ulimit -v    only 1048576 MiB of addresses", "LimitAS=infinity"],
    );
    let setup = Setup::new().address_space_kib(1 << 30);
    assert_names(&setup.start_refused(), &["cannot set up the sandbox: `gristmill doctor`"]);
}

#[test]
fn an_address_of_another_server_is_told_from_one_of_its_own() {
    let server = Server::start();
    let cli = Cli::of(&server);
    let data = server.data.authority();
    let mut flags = FREE;
    flags[1] = data;
    let ended = cli.run(&[&["doctor"][..], &flags].concat());
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let named = format!("fault    listen       a Gristmill server listens at {data}");
    assert_names(&ended.out, &[&named, "end it, or choose another address with --listen"]);
    let data_dir = server.data_dir();
    let own_data = ["--data-dir", data_dir.to_str().unwrap()];
    let lines = cli.ok(&[&["doctor"][..], &flags, &own_data].concat());
    assert_names(&lines, &[&format!("ok       listen       {data} is in use, and process ")]);
}

/// The arguments for a store.
fn of_store(url: &str) -> Vec<&str> {
    [&["doctor", "--hash-key-file", "hash-key", "--store", url][..], &FREE].concat()
}

/// Answer one call as S3 does that lacks a right.
fn refuse(stream: &TcpStream) {
    let head = BufReader::new(stream).lines().map_while(Result::ok);
    head.take_while(|line| !line.is_empty()).for_each(drop);
    let answer = "HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let mut stream = stream;
    stream.write_all(answer.as_bytes()).unwrap();
}

#[test]
fn a_shared_store_is_asked_and_none_is_made() {
    let s3 = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", s3.local_addr().unwrap());
    // It ends with the tests.
    thread::spawn(move || {
        while let Ok((stream, _)) = s3.accept() {
            refuse(&stream);
        }
    });
    let cli = Cli::new()
        .with("AWS_ENDPOINT", &endpoint)
        .with("AWS_ALLOW_HTTP", "true")
        .with("AWS_REGION", "us-east-1")
        .with("AWS_ACCESS_KEY_ID", "the-access-key")
        .with("AWS_SECRET_ACCESS_KEY", SECRET);
    cli.write("hash-key", "0123456789abcdef".repeat(4));
    let ended = cli.run(&[&of_store("s3://mill/grist")[..], &["--output", "json"]].concat());
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let findings: Value = serde_json::from_str(&ended.out).unwrap();
    let (state, text) = found(&findings, "store");
    assert_eq!(state, "fault", "{findings}");
    assert_names(text, &["s3://mill/grist: ", "403"]);
    assert!(!ended.out.contains(SECRET), "{ended:?}");

    let folder = cli.folder().join("shared");
    let url = format!("file://{}", folder.display());
    let of_folder = || found(&cli.json(&of_store(&url)), "store").0.to_owned();
    assert_eq!(of_folder(), "warning");
    assert!(!folder.exists(), "nothing is made");
    fs::create_dir(&folder).unwrap();
    assert_eq!(of_folder(), "ok");
}
