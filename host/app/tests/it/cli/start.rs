//! Starting: configuration, addresses and directories that are refused.

use std::fs;
use std::net::TcpListener;

use crate::support::server::Server;
use crate::support::setup::Setup;
use crate::support::words::assert_names;

#[test]
fn every_fault_of_the_configuration_is_named_at_once() {
    let setup = Setup::new()
        .flag("--listen", "nowhere")
        .flag("--drain-timeout-s", "99999")
        .flag("--log-format", "xml")
        .flag("--concurrent-plugin-calls", "none")
        .flag("--admin-token", "a token with an \u{e4}");
    let data_dir = setup.data_dir();
    let error = setup.start_refused();
    let named = [
        "the configuration is wrong",
        "listen is \"nowhere\"",
        "drain_timeout_s is 99999: must be 0 to 3600",
        "log_format is \"xml\"",
        "concurrent_plugin_calls is \"none\"",
        "admin_token cannot be sent in a header",
    ];
    assert_names(&error, &named);
    assert!(!data_dir.exists(), "nothing is touched before the configuration is right");
}

#[test]
fn a_start_that_fails_is_told_in_json_where_the_log_is() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let setup = Setup::new().flag("--log-format", "json").flag("--listen", &address);
    let error = setup.start_refused();
    let mut lines = error.lines().map(|line| serde_json::from_str(line).expect(&error));
    let line: serde_json::Value = lines.next_back().unwrap();
    assert_eq!(line["level"], "ERROR");
    assert_names(line["message"].as_str().unwrap(), &["listen", &address, "in use"]);
}

#[test]
fn a_configuration_file_is_read_and_its_faults_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("gristmill.toml");
    let path = file.to_str().unwrap();
    fs::write(&file, "liten = 'x'\nadmin_token = 'short'\n").unwrap();
    let error = Setup::new().without_admin_token().flag("--config", path).start_refused();
    assert_names(&error, &[path, "unknown key \"liten\"", "admin_token is shorter than 16"]);

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
        let error = Setup::new().flag("--onnxruntime-library", library).start_refused();
        assert_names(&error, &["ONNX Runtime library", library]);
    }
}

#[test]
fn a_port_that_is_taken() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (flag, setting) in [("--listen", "listen"), ("--admin-listen", "admin_listen")] {
        let error = Setup::new().flag(flag, &address).start_refused();
        let named = format!("cannot listen on {setting} {address}");
        assert_names(&error, &[&named, &format!("choose another address with {flag}"), "in use"]);
    }
}

#[test]
fn a_data_directory_is_used_by_one_server_at_a_time() {
    let mut server = Server::start();
    server.open_tenant("acme");
    let error = server.setup().start_refused();
    let named =
        ["is in use by process ", "stop that server, or choose another directory with --data-dir"];
    assert_names(&error, &named);
    server.assert_alive();
    server.open_tenant("other");
    let server = server.kill().start();
    assert_eq!(server.release(), 2, "a lock ends with its process");
}
