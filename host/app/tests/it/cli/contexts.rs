//! Contexts: servers by name, with the places of their tokens.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::support::cli::Cli;
use crate::support::server::Server;
use crate::support::setup::ADMIN_TOKEN;
use crate::support::words::assert_names;

#[test]
fn a_command_talks_to_the_context_that_is_chosen() {
    let (one, other) = (Server::start(), Server::start());
    one.open_tenant("of-one");
    other.open_tenant("of-other");
    let cli = Cli::new().with("OTHER_TOKEN", ADMIN_TOKEN);
    cli.write("token", format!("{ADMIN_TOKEN}\n"));
    let add = |name: &str, server: &Server, token: [&str; 2]| {
        let url = server.admin.address().to_owned();
        let url = url.trim_start_matches("http://");
        cli.ok(&[&["context", "add", name, "--admin-url", url][..], &token].concat())
    };
    let output = add("one", &one, ["--token-file", "token"]);
    assert_names(&output, &["added context one, which is the current one, in ", "config.toml"]);
    let output = add("other", &other, ["--token-env", "OTHER_TOKEN"]);
    assert!(output.starts_with("added context other, in "), "{output}");

    let tenants = |cli: &Cli, flags: &[&str]| {
        let items = cli.json(&[&["get", "tenants"], flags].concat());
        items[0]["name"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(tenants(&cli, &[]), "of-one");
    assert_eq!(tenants(&cli, &["--context", "other"]), "of-other");
    cli.ok(&["context", "use", "other"]);
    assert_eq!(tenants(&cli, &[]), "of-other");
    let listed = cli.ok(&["context", "list"]);
    let lines: Vec<_> = listed.lines().collect();
    assert!(lines[0].starts_with("CURRENT  NAME   ADMIN"), "{listed}");
    assert!(lines[1].starts_with("         one    http://127.0.0.1:"), "{listed}");
    assert!(lines[2].starts_with("*        other  http://127.0.0.1:"), "{listed}");
    assert!(lines[1].ends_with("/token") && lines[2].ends_with("$OTHER_TOKEN"), "{listed}");
    let shown = cli.json(&["context", "show"]);
    let admin = other.admin.address();
    assert_eq!(
        shown,
        json!({ "name": "other", "current": true, "admin_url": admin,
        "token_env": "OTHER_TOKEN" })
    );

    let file = cli.folder().join("contexts/config.toml");
    let text = fs::read_to_string(&file).unwrap();
    assert!(!text.contains(ADMIN_TOKEN) && !listed.contains(ADMIN_TOKEN), "{text}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);

    // Variables go before the current context, and a context on the command line before them.
    let cli = cli
        .with("GRISTMILL_ADMIN_URL", one.admin.address())
        .with("GRISTMILL_ADMIN_TOKEN", ADMIN_TOKEN);
    assert_eq!(tenants(&cli, &[]), "of-one");
    assert_eq!(tenants(&cli, &["--context", "other"]), "of-other");
    assert_eq!(
        tenants(
            &cli,
            &["--context", "other", "--admin", one.admin.address(), "--token", ADMIN_TOKEN]
        ),
        "of-one"
    );

    cli.ok(&["context", "delete", "other"]);
    let error = cli.refused(&["get", "tenants", "--context", "other"]);
    assert_names(&error, &["no context \"other\": known are one"]);
    assert_names(&cli.refused(&["context", "show"]), &["no context is the current one"]);
}

/// A server of another's: it takes one connection, and notes what is sent.
fn listener() -> (String, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let seen = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut sent = Vec::new();
        while !sent.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            if socket.read(&mut byte).unwrap() == 0 {
                break;
            }
            sent.push(byte[0]);
        }
        let _ = socket.write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n");
        String::from_utf8(sent).unwrap()
    });
    (address, seen)
}

#[test]
fn the_environments_token_goes_to_no_other_server_than_its_own() {
    let server = Server::start();
    let (other, seen) = listener();
    let cli = Cli::new()
        .with("GRISTMILL_ADMIN_TOKEN", ADMIN_TOKEN)
        .with("OTHER_TOKEN", "the-token-of-the-other-server");
    let add = ["context", "add", "other", "--admin-url", other.as_str()];
    cli.ok(&[&add[..], &["--token-env", "OTHER_TOKEN"]].concat());
    cli.refused(&["get", "tenants"]);
    let seen = seen.join().unwrap();
    assert!(seen.contains("Bearer the-token-of-the-other-server"), "{seen}");
    assert!(!seen.contains(ADMIN_TOKEN), "{seen}");

    // Without a token of its own it gets none: nothing listens there any more.
    cli.ok(&add);
    let error = cli.refused(&["get", "tenants"]);
    let reason = "that in GRISTMILL_ADMIN_TOKEN did not come with this address";
    assert_names(&error, &[&format!("no token for http://{other}"), reason]);
    let cli = cli.with("GRISTMILL_ADMIN_URL", server.admin.address());
    for flag in [["--context", "other"], ["--admin", other.as_str()]] {
        let error = cli.refused(&[&["get", "tenants"][..], &flag].concat());
        let reason = "that in GRISTMILL_ADMIN_TOKEN is sent only to http://127.0.0.1:";
        assert_names(&error, &[&format!("no token for http://{other}"), reason]);
    }
    cli.ok(&["get", "tenants"]);
}

#[test]
fn commands_say_which_server_they_change() {
    let server = Server::start();
    let cli = Cli::of(&server);
    let admin = server.admin.address();
    let made = cli.run(&["token", "create", "ci", "--role", "read"]);
    assert_eq!(made.stderr, format!("server: {admin} (GRISTMILL_ADMIN_URL)\n"));
    cli.write("token", ADMIN_TOKEN);
    cli.ok(&["context", "add", "here", "--admin-url", admin, "--token-file", "token"]);
    let expected = format!("server: {admin} (context here)\n");
    let named = ["--context", "here"];
    server.open_tenant("acme");
    cli.write("gristmill.deploy.toml", "[tenants.acme]\nopen = true\nweight = 2\n");
    for command in [
        &["token", "rotate", "ci"][..],
        &["token", "delete", "ci"],
        &["deploy", "--yes"],
        &["rollback", "--to", "1", "--yes"],
        &["candidate", "abort", "none", "--tenant", "acme"],
        &["tenant", "create", "more", "--open"],
        &["pipeline", "set", "main", "--tenant", "acme", "debug=true"],
        &["key", "create", "web", "--tenant", "acme"],
        &["grant", "store", "features:read", "--tenant", "acme"],
        &["revoke", "store", "features", "--tenant", "acme"],
    ] {
        let ended = cli.run(&[command, &named].concat());
        assert!(ended.stderr.starts_with(&expected), "{command:?}: {ended:?}");
    }
    // A command that only reads says nothing.
    assert_eq!(cli.run(&["status", "--context", "here"]).stderr, "");
}

#[test]
fn a_context_of_production_asks_before_it_is_changed() {
    let server = Server::start();
    server.open_tenant("acme");
    let cli = Cli::new();
    cli.write("token", ADMIN_TOKEN);
    let admin = server.admin.address();
    let add = ["context", "add", "prod", "--admin-url", admin, "--token-file", "token"];
    let added = cli.ok(&[&add[..], &["--confirm"]].concat());
    assert_names(&added, &["added context prod", "; commands ask before they change it"]);
    assert_eq!(cli.json(&["context", "show"])["confirm"], true);
    for command in [
        &["tenant", "create", "new", "--open"][..],
        &["put", "tenant", "acme", "weight=2"],
        &["token", "create", "ci", "--role", "read"],
        &["plugin", "push", "none.wasm", "--tenant", "acme"],
    ] {
        let error = cli.refused(command);
        let named =
            "context prod was added with --confirm: there is no terminal to ask at: give --yes";
        assert_names(&error, &[named]);
    }
    assert_eq!(server.release(), 1);
    // Commands that only read ask nothing, and --yes answers.
    assert_eq!(cli.json(&["tenant", "list"]).as_array().unwrap().len(), 1);
    cli.ok(&["tenant", "create", "new", "--open", "--yes"]);
    assert_eq!(server.release(), 2);
    assert_names(&cli.ok(&add), &["changed context prod", "; commands do not ask any more"]);
    cli.ok(&["tenant", "delete", "new"]);
}

#[test]
fn the_variable_names_a_context_and_tokens_go_to_their_own_server() {
    let (one, other) = (Server::start(), Server::start());
    one.open_tenant("of-one");
    let cli = Cli::new().with("GRISTMILL_CONTEXT", "one");
    cli.write("token", ADMIN_TOKEN);
    let error = cli.refused(&["get", "tenants"]);
    assert_names(&error, &["no context \"one\": `gristmill context add` makes one"]);
    let admin = one.admin.address();
    cli.ok(&["context", "add", "one", "--admin-url", admin, "--token-file", "token"]);
    assert_eq!(cli.json(&["get", "tenants"])[0]["name"], "of-one");
    let error = cli.refused(&["get", "tenants", "--admin", other.admin.address()]);
    assert_names(
        &error,
        &["the token of context one is sent only to", other.admin.address(), "give --token"],
    );
    assert!(!other.log().contains("GET"), "it was not asked");

    cli.write("token", "");
    let error = cli.refused(&["status"]);
    assert_names(&error, &["the token of context one is empty or cannot be sent in a header"]);
    fs::remove_file(cli.folder().join("token")).unwrap();
    let error = cli.refused(&["status"]);
    assert_names(&error, &["cannot read the token of context one: ", "/token: No such file"]);
    let bare = Cli::new();
    assert_names(&bare.refused(&["status"]), &["no token: give GRISTMILL_ADMIN_TOKEN, a context"]);
    bare.write("contexts/config.toml", "current = 'x'\ntoken = 'secret'\n");
    let error = bare.refused(&["status"]);
    assert_names(&error, &["config.toml: unknown key \"token\"; known are current, contexts"]);
    assert_eq!(bare.run(&["context", "add", "A"]).code, Some(2));
    let wrong = ["context", "add", "A b", "--admin-url", "x:1"];
    assert_names(&bare.refused(&wrong), &["NAME: \"A b\" is not a valid name"]);
}
