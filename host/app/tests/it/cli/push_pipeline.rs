//! `gristmill plugin push --pipeline`: a plugin and its pipeline in one release.

use serde_json::json;

use crate::support::admin_api::read;
use crate::support::cli::Cli;
use crate::support::files;
use crate::support::server::Server;
use crate::support::words::assert_names;

#[test]
fn a_plugin_is_pushed_with_its_pipeline_in_one_release() {
    let server = Server::start();
    server.model("digits");
    server.open_tenant("acme");
    let cli = Cli::of(&server);
    cli.write("digits.wasm", files::plugin("digits"));
    cli.write("other.wasm", files::plugin("hostile"));
    let push = ["plugin", "push", "digits.wasm", "--tenant", "acme", "--pipeline", "main"];
    let error = cli.refused(&push);
    assert_names(&error, &["--model is missing: there is no pipeline main yet"]);
    let error = cli.refused(&[&push[..], &["--model", "digts"]].concat());
    assert_names(&error, &["cannot push digits.wasm as acme/digits", "no model \"digts\""]);
    assert_eq!(server.release(), 2);

    let pushed = cli.ok(&[&push[..], &["--model", "digits", "--message", "first"]].concat());
    assert_eq!(pushed, "acme/digits is live in release 3, in pipeline main\n");
    assert_eq!(read(&server, "releases/3")["message"], "first");
    let answer = server.data.post("/v1/acme/infer/main", &files::digit(4));
    assert_eq!(answer.ok()["label"], 4);

    // Only the plugin changes.
    cli.ok(&["pipeline", "set", "main", "--tenant", "acme", "debug=true"]);
    let next = ["other.wasm", "--name", "digits", "--tenant", "acme", "--pipeline", "main"];
    let pushed = cli.ok(&[&["plugin", "push"][..], &next].concat());
    assert_eq!(pushed, "acme/digits is live in release 5, in pipeline main\n");
    assert_eq!(server.data.post("/v1/acme/infer/main", b"").text(), "harmless");
    let document = read(&server, "tenants/acme/pipelines/main");
    assert_eq!((&document["debug"], &document["model"]), (&json!(true), &json!("digits")));

    let error = cli.refused(&[
        "plugin",
        "push",
        "other.wasm",
        "--tenant",
        "acme",
        "--pipeline",
        "main",
        "--name",
        "new",
    ]);
    assert_names(&error, &["pipeline main is there, and does not run the newest version of new"]);
    let mut misspelt = push;
    misspelt[4] = "acem";
    assert_names(&cli.refused(&misspelt), &["no tenant \"acem\": did you mean \"acme\"?"]);
    let alone = ["plugin", "push", "digits.wasm", "--tenant", "acme", "--model", "digits"];
    assert_eq!(cli.run(&alone).code, Some(2), "--model without --pipeline");
}
