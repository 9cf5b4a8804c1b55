//! `gristmill up`: a server for one person, which the other commands find by themselves.

use std::fs;
use std::io::BufRead;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use gristmill_client::{Addresses, ServerProcess};
use serde_json::json;

use crate::support::cli::Cli;
use crate::support::words::assert_names;

const FREE: [&str; 8] = [
    "--listen",
    "127.0.0.1:0",
    "--grpc-listen",
    "127.0.0.1:0",
    "--admin-listen",
    "127.0.0.1:0",
    // A runtime takes long to compile in the profile of the tests.
    "--prepare-runtimes",
    "false",
];

/// Start it. Returns what it says once it serves.
fn up(cli: &Cli) -> (ServerProcess, Addresses, String) {
    up_in(cli, "data")
}

fn up_in(cli: &Cli, folder: &str) -> (ServerProcess, Addresses, String) {
    let mut command = cli.command(&[&["up", folder][..], &FREE].concat());
    let mut server = ServerProcess::spawn(command.stderr(Stdio::null())).unwrap();
    let addresses = server.wait_until_serving().unwrap();
    let mut next = String::new();
    while !next.contains("Ctrl-C ends the server") {
        assert_ne!(server.stdout.read_line(&mut next).unwrap(), 0, "{next}");
    }
    (server, addresses, next)
}

#[test]
fn other_commands_need_no_flag_and_no_variable() {
    let cli = Cli::new();
    let staging = ["context", "add", "staging", "--admin-url", "127.0.0.1:1"];
    cli.ok(&staging);
    let (server, addresses, next) = up(&cli);
    assert_names(&next, &["local is the current context (before: staging)", "tenant create demo"]);
    assert_names(&next, &["plugin push FOLDER --tenant demo --pipeline main", "/admin/v1/docs"]);
    assert_names(&next, &[&format!("The console is at {}/", addresses.admin)]);
    assert_names(&next, &[&format!("{}/v1/demo/infer/main", addresses.data)]);
    assert!(server.lines.iter().all(|line| !line.contains("admin token")), "{:?}", server.lines);
    let made = cli.run(&["tenant", "create", "demo", "--open"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    assert_names(&made.stderr, &[&format!("server: {} (context local)", addresses.admin)]);
    let file = cli.folder().join("data/admin-token");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let token = fs::read_to_string(&file).unwrap();
    let context = cli.json(&["context", "show"]);
    let shown = json!({ "name": "local", "current": true, "admin_url": addresses.admin,
        "url": addresses.data, "token_file": file.canonicalize().unwrap() });
    assert_eq!(context, shown);
    let contexts = fs::read_to_string(cli.folder().join("contexts/config.toml")).unwrap();
    assert!(!contexts.contains(token.trim()), "{contexts}");
    drop(server);

    // Another start has other ports, and the same token and state.
    let (server, addresses, next) = up(&cli);
    assert!(!next.contains("before"), "{next}");
    assert_eq!(fs::read_to_string(&file).unwrap(), token);
    assert_eq!(cli.json(&["tenant", "list"])[0]["name"], "demo");
    assert_eq!(cli.json(&["token", "show"])["role"], "admin");

    // One of other data takes the context over, and says how to keep the first one.
    let (_other, _, next) = up_in(&cli, "others");
    let file = file.canonicalize().unwrap();
    let Addresses { admin, data, .. } = &addresses;
    let keep = format!("--admin-url {admin} --token-file {} --url {data}", file.display());
    assert_names(&next, &["server of other data before", "gristmill context add NAME", &keep]);
    assert_eq!(cli.json(&["tenant", "list"]), json!([]));
    cli.ok(&[&["context", "add", "first"][..], &keep.split(' ').collect::<Vec<_>>()].concat());
    cli.ok(&["context", "use", "first"]);
    assert_eq!(cli.json(&["tenant", "list"])[0]["name"], "demo");
    assert_eq!(cli.json(&["context", "show"])["url"], *data);
    drop(server);
}

#[test]
fn a_token_that_is_known_only_by_its_hash_must_be_given() {
    let cli = Cli::new();
    fs::create_dir(cli.folder().join("data")).unwrap();
    cli.ok(&["token", "reset", "--data-dir", "data"]);
    let error = cli.refused(&[&["up", "data"][..], &FREE].concat());
    let cure = "give it in GRISTMILL_ADMIN_TOKEN; `gristmill token reset --data-dir data`";
    assert_names(&error, &["the root token of data is kept only as a hash", cure]);

    let cli = cli.with("GRISTMILL_ADMIN_TOKEN", "a-token-that-is-given");
    let (_server, _, next) = up(&cli);
    assert_names(&next, &["with the token in GRISTMILL_ADMIN_TOKEN"]);
    assert_eq!(cli.json(&["context", "show"])["token_env"], "GRISTMILL_ADMIN_TOKEN");
    cli.ok(&["tenant", "list"]);
    assert!(!cli.folder().join("data/admin-token").exists());
}

#[test]
fn a_port_that_is_taken_says_by_which_setting_to_change_it() {
    let cli = Cli::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut flags = FREE;
    flags[5] = &address;
    let error = cli.refused(&[&["up"][..], &flags].concat());
    assert_names(&error, &[&address, "choose another address with --admin-listen", "in use"]);
    assert!(!cli.folder().join("gristmill-data").exists(), "nothing is made before");
    assert!(!cli.folder().join("contexts").exists());
}
