//! Starting: configuration that is refused, and the admin token of a first start.

use std::fs;
use std::net::TcpListener;

use crate::server::{Server, Setup};

#[track_caller]
fn assert_names(said: &str, named: &[&str]) {
    for name in named {
        assert!(said.contains(name), "{name:?} is missing from:\n{said}");
    }
}

#[test]
fn every_fault_of_the_configuration_is_named_at_once() {
    let setup = Setup::new()
        .flag("--listen", "nowhere")
        .flag("--drain-timeout-s", "99999")
        .flag("--log-format", "xml")
        .flag("--concurrent-plugin-calls", "none");
    let data_dir = setup.data_dir();
    let said = setup.refused();
    let named = [
        "the configuration is wrong",
        "listen is \"nowhere\"",
        "drain_timeout_s is 99999: must be 0 to 3600",
        "log_format is \"xml\"",
        "concurrent_plugin_calls is \"none\"",
    ];
    assert_names(&said, &named);
    assert!(!data_dir.exists(), "nothing is touched before the configuration is right");
}

#[test]
fn a_configuration_file_is_read_and_its_faults_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("gristmill.toml");
    let path = file.to_str().unwrap();
    fs::write(&file, "liten = 'x'\nadmin_token = 'short'\n").unwrap();
    let said = Setup::new().without_admin_token().flag("--config", path).refused();
    assert_names(&said, &[path, "unknown key \"liten\"", "admin_token is shorter than 16"]);

    fs::write(&file, "admin_token = 'from-the-file-1234'\n").unwrap();
    let server = Setup::new().without_admin_token().flag("--config", path).start();
    let admin = server.admin.with_token("from-the-file-1234");
    assert_eq!(admin.get("/admin/v1/status").status, 200);
}

#[test]
fn a_configured_library_that_cannot_be_used() {
    let directory = tempfile::tempdir().unwrap();
    let (missing, text) = (directory.path().join("missing.so"), directory.path().join("text.so"));
    fs::write(&text, "no library").unwrap();
    for library in [missing, text] {
        let library = library.to_str().unwrap();
        let said = Setup::new().flag("--onnxruntime-library", library).refused();
        assert_names(&said, &["ONNX Runtime library", library]);
    }
}

#[test]
fn a_port_that_is_taken() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (flag, setting) in [("--listen", "listen"), ("--admin-listen", "admin_listen")] {
        let said = Setup::new().flag(flag, &address).refused();
        assert_names(&said, &[&format!("{setting} {address}"), "in use"]);
    }
}

#[test]
fn the_first_start_makes_an_admin_token_and_shows_it_once() {
    let mut server = Setup::new().without_admin_token().start();
    let line = server.stdout_line();
    let token = line.strip_prefix("admin token ").unwrap().split(' ').next().unwrap().to_owned();
    assert!(token.starts_with("gma_") && token.len() > 60, "{line}");
    let status = |server: &Server, token: &str| {
        server.admin.with_token(token).get("/admin/v1/status").status
    };
    assert_eq!((status(&server, &token), status(&server, "gma_another-token")), (200, 403));
    server.signal_terminate();
    let (rest, _, setup) = server.wait();
    assert_eq!(rest, "", "nothing more is said");

    let server = setup.start();
    assert_eq!((status(&server, &token), status(&server, "gma_another-token")), (200, 403));
    assert!(!server.log().contains(&token), "the token is in the log");
    server.signal_terminate();
    let (rest, _, setup) = server.wait();
    assert_eq!(rest, "", "the token is shown again");
    assert_no_file_holds(&setup, &token);
}

/// The token itself is not kept, only its digest.
#[track_caller]
fn assert_no_file_holds(setup: &Setup, token: &str) {
    let files = fs::read_dir(setup.data_dir()).unwrap().map(|entry| entry.unwrap().path());
    let mut texts = 0;
    for file in files.filter(|path| path.is_file()) {
        assert!(!fs::read_to_string(&file).unwrap().contains(token), "{}", file.display());
        texts += 1;
    }
    assert!(texts > 0, "the digest is kept");
}
