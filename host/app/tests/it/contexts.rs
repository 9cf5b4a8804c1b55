//! Contexts: servers by name, with the places of their tokens.

use std::fs;
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
    let said = add("one", &one, ["--token-file", "token"]);
    assert_names(&said, &["added context one, which is the current one, in ", "config.toml"]);
    let said = add("other", &other, ["--token-env", "OTHER_TOKEN"]);
    assert!(said.starts_with("added context other, in "), "{said}");

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
    let said = cli.refused(&["get", "tenants", "--context", "other"]);
    assert_names(&said, &["no context \"other\": known are one"]);
    assert_names(&cli.refused(&["context", "show"]), &["no context is the current one"]);
}

#[test]
fn the_variable_names_a_context_and_tokens_go_to_their_own_server() {
    let (one, other) = (Server::start(), Server::start());
    one.open_tenant("of-one");
    let cli = Cli::new().with("GRISTMILL_CONTEXT", "one");
    cli.write("token", ADMIN_TOKEN);
    let said = cli.refused(&["get", "tenants"]);
    assert_names(&said, &["no context \"one\": `gristmill context add` makes one"]);
    let admin = one.admin.address();
    cli.ok(&["context", "add", "one", "--admin-url", admin, "--token-file", "token"]);
    assert_eq!(cli.json(&["get", "tenants"])[0]["name"], "of-one");
    let said = cli.refused(&["get", "tenants", "--admin", other.admin.address()]);
    assert_names(&said, &["the token of context one is sent only to", other.admin.address()]);
    assert!(!other.log().contains("GET"), "it was not asked");

    cli.write("token", "");
    let said = cli.refused(&["status"]);
    assert_names(&said, &["the token of context one is empty or cannot be sent in a header"]);
    fs::remove_file(cli.folder().join("token")).unwrap();
    let said = cli.refused(&["status"]);
    assert_names(&said, &["cannot read the token of context one: ", "/token: No such file"]);
    let bare = Cli::new();
    assert_names(&bare.refused(&["status"]), &["no token: give GRISTMILL_ADMIN_TOKEN, a context"]);
    bare.write("contexts/config.toml", "current = 'x'\ntoken = 'secret'\n");
    let said = bare.refused(&["status"]);
    assert_names(&said, &["config.toml: unknown key \"token\"; known are current, contexts"]);
    assert_eq!(bare.run(&["context", "add", "A"]).code, Some(2));
    let wrong = ["context", "add", "A b", "--admin-url", "x:1"];
    assert_names(&bare.refused(&wrong), &["NAME: \"A b\" is not a valid name"]);
}
