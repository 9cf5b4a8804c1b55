//! `gristmill model push` and `list`: uploads in parts, over connections that are cut, too.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::admin_api::{digest, path, read};
use crate::support::cli::Cli;
use crate::support::files;
use crate::support::onnx;
use crate::support::proxy::Proxy;
use crate::support::server::Server;
use crate::support::words::assert_names;

/// The size of the first part, and of what a request has besides.
const FIRST_PART: usize = 1 << 20;
const HEADS: usize = 64 << 10;

#[test]
fn a_model_is_pushed_with_its_configuration_in_one_release() {
    let server = Server::start();
    let cli = Cli::of(&server);
    cli.write("digits.onnx", files::model("digits"));
    cli.write("config.toml", "max_batch_size = 8\n");
    let push = ["model", "push", "digits.onnx", "--name", "digits"];
    let with_config = [&push[..], &["--config", "config.toml", "--message", "why"]].concat();
    assert_names(&cli.ok(&with_config), &["digits is live in release 1, run by "]);
    assert_eq!(read(&server, "models/digits/config")["max_batch_size"], 8);
    assert_eq!(read(&server, "releases/1")["message"], "why");
    // Without --config the configuration stays.
    let again = cli.json(&push);
    assert_eq!((&again["release"], &again["changed"]), (&json!(1), &json!(false)));
    assert_eq!(again["digest"], digest(&files::model("digits")));
    assert_eq!(read(&server, "models/digits/config")["max_batch_size"], 8);

    let table = cli.ok(&["model", "list"]);
    let lines: Vec<_> = table.lines().collect();
    assert!(lines[0].starts_with("NAME    DIGEST") && lines.len() == 2, "{table}");
    assert!(
        lines[1].starts_with("digits  sha256:")
            && lines[1].contains(" ready  input FP32 [-1,1,28,28] -> "),
        "{table}"
    );
    let listed = cli.json(&["model", "list"]);
    assert_eq!((&listed[0]["name"], &listed[0]["version"]), (&json!("digits"), &json!(1)));

    // The number of a version can be chosen.
    cli.write("next.onnx", onnx::doubling(2));
    let push_next = ["model", "push", "next.onnx", "--name", "next", "--version", "40"];
    cli.ok(&push_next);
    assert_eq!(read(&server, "models/next")["version"], 40);
    cli.ok(&[&push_next[..5], &["--version", "41"]].concat());
    assert_eq!(read(&server, "models/next")["version"], 41);
    cli.write("next.onnx", onnx::doubling(3));
    let error = cli.refused(&push_next);
    assert_names(&error, &["422", "version is 40", "newest version of model \"next\" is 41"]);

    // Another model does not fit those who use it.
    server.open_tenant("acme");
    server.plugin("acme", "digits", "digits");
    let uses = json!({ "pre": "digits", "model": "digits", "post": "digits" });
    server.pipeline("acme", "digits", &uses);
    cli.write("digits.onnx", files::model("ranker"));
    let error = cli.refused(&push);
    assert_names(&error, &["cannot push digits.onnx as model digits: 409", "acme/digits"]);
    cli.ok(&[&push[..], &["--force"]].concat());
    cli.write("config.toml", "max_batch_size = 'many'\ncolour = 1\n");
    let error = cli.refused(&with_config);
    assert_names(&error, &["422", "max_batch_size", "unknown key \"colour\""]);
    cli.write("digits.onnx", "not a model");
    assert_names(&cli.refused(&push), &["422", "model \"digits\""]);
}

#[test]
fn an_upload_goes_on_after_its_connection_was_cut() {
    let server = Server::start();
    let file = onnx::large(8 << 20, 1);
    // The second of its parts is cut in the middle, and so is the one after it.
    let cuts = AtomicUsize::new(0);
    let proxy = Proxy::start(server.admin.address(), move |_, sent| {
        let is_cut = match cuts.load(Ordering::Relaxed) {
            0 => sent > 2 * FIRST_PART,
            1 => sent > 5 * FIRST_PART / 2,
            _ => false,
        };
        cuts.fetch_add(usize::from(is_cut), Ordering::Relaxed);
        !is_cut
    });
    let cli = Cli::of(&server).with("GRISTMILL_ADMIN_URL", &proxy.address);
    cli.write("large.onnx", &file);
    let pushed = cli.run(&["model", "push", "large.onnx", "--name", "large"]);
    assert_eq!(pushed.code, Some(0), "{pushed:?}");
    assert_names(&pushed.stderr, &["uploaded large.onnx, 8.00 MiB"]);
    assert_eq!(read(&server, "models/large")["digest"], digest(&file));
    // What had arrived whole was not sent again.
    let sent = proxy.sent();
    assert!(sent > file.len() && sent < file.len() + 2 * FIRST_PART + HEADS, "{sent}");
}

/// Send the first part of a file that has this digest.
fn begin(server: &Server, digest: &str, part: &[u8]) -> Value {
    let headers = [("upload-offset", "0"), ("upload-complete", "?0")];
    server.admin.send("PATCH", &path(&format!("blobs/{digest}")), &headers, Some(part)).ok()
}

#[test]
fn an_upload_goes_on_where_an_earlier_command_ended() {
    let server = Server::start();
    let file = onnx::large(4 << 20, 2);
    begin(&server, &digest(&file), &file[..3 << 20]);
    let proxy = Proxy::start(server.admin.address(), |_, _| true);
    let cli = Cli::of(&server).with("GRISTMILL_ADMIN_URL", &proxy.address);
    cli.write("large.onnx", &file);
    cli.ok(&["model", "push", "large.onnx", "--name", "large"]);
    assert!(proxy.sent() < file.len() - (3 << 20) + HEADS, "{}", proxy.sent());
    // A file that the server has is not sent at all.
    let before = proxy.sent();
    cli.ok(&["model", "push", "large.onnx", "--name", "other"]);
    assert!(proxy.sent() - before < HEADS, "{}", proxy.sent() - before);

    // Wrong parts that were sent under its name are replaced.
    for (seed, wrong) in [(3, 1 << 20), (4, 5 << 20)] {
        let file = onnx::large(4 << 20, seed);
        begin(&server, &digest(&file), &vec![7; wrong]);
        cli.write("large.onnx", &file);
        cli.ok(&["model", "push", "large.onnx", "--name", "large"]);
        assert_eq!(read(&server, "models/large")["digest"], digest(&file));
    }
}

#[test]
fn a_file_that_is_refused_is_not_tried_again_and_again() {
    let server = crate::support::setup::Setup::new().flag("--waiting-bytes-max", "2000000").start();
    let cli = Cli::of(&server);
    cli.write("large.onnx", onnx::large(4 << 20, 5));
    let error = cli.refused(&["model", "push", "large.onnx", "--name", "large"]);
    assert_names(&error, &["cannot upload large.onnx: 409", "waiting_bytes_max"]);
    let missing = cli.refused(&["model", "push", "none.onnx", "--name", "large"]);
    assert_names(&missing, &["none.onnx: No such file"]);
}
