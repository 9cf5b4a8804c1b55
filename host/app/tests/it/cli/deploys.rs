//! `gristmill deploy` and `gristmill diff`: a manifest against a real server.

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::support::admin_api::{digest, read};
use crate::support::cli::Cli;
use crate::support::files;
use crate::support::proxy::Proxy;
use crate::support::server::Server;
use crate::support::setup::Setup;
use crate::support::words::assert_names;

const KEY: &str = "the-key-of-acme-for-ci";

const MANIFEST: &str = r#"
[models.digits]
file = "models/digits.onnx"
config = { max_batch_size = 32 }

[tenants.acme]
default_pipeline = "main"
models = ["digits"]
api_keys = [{ name = "ci", env = "ACME_CI_KEY" }]

[tenants.acme.plugins.reader]
file = "reader.wasm"

[tenants.acme.pipelines.main]
pre = "reader"
model = "digits"
post = "reader"
settings = { threshold = 0.5 }
"#;

/// A folder with the manifest and its files, for this server.
fn acme(server: &Server) -> Cli {
    let cli = Cli::of(server).with("ACME_CI_KEY", KEY);
    cli.write("gristmill.deploy.toml", MANIFEST);
    cli.write("models/digits.onnx", files::model("digits"));
    cli.write("reader.wasm", files::plugin("digits"));
    cli
}

/// Change a text in the manifest.
fn edit(cli: &Cli, old: &str, new: &str) {
    let path = cli.folder().join("gristmill.deploy.toml");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(old), "{old:?} is missing from {text}");
    fs::write(path, text.replace(old, new)).unwrap();
}

/// The label that acme's clients get.
#[track_caller]
fn label(server: &Server) -> Value {
    server.data.with_token(KEY).post("/v1/acme/infer", &files::digit(4)).ok()["label"].clone()
}

/// The first characters of a file's digest.
fn short(file: &[u8]) -> String {
    digest(file)[..19].to_owned()
}

/// The calls in the server's log that send a part of a file.
fn parts_sent(server: &Server) -> usize {
    // The last line is there when that of a later call is.
    server.admin.get("/admin/v1/nothing-of-the-deploy");
    server.logs("nothing-of-the-deploy");
    server.log().lines().filter(|line| line.contains("PATCH")).count()
}

#[test]
fn a_manifest_is_deployed_once_and_then_its_edits() {
    let server = Server::start();
    let cli = acme(&server);
    let (model, plugin) = (files::model("digits"), files::plugin("digits"));
    let expected = format!(
        "\
+ model digits
    digest: {}
+ model config digits
    max_batch_size: 32
+ tenant acme
    default_pipeline: \"main\"
    models: [\"digits\"]
+ key acme/ci
+ plugin acme/reader
    digest: {}
+ pipeline acme/main
    model: \"digits\"
    post: \"reader\"
    pre: \"reader\"
    settings.threshold: 0.5
",
        short(&model),
        short(&plugin)
    );
    let mut all = String::new();
    let mut run = |arguments: &[&str]| {
        let ended = cli.run(arguments);
        all += &format!("{}{}", ended.out, ended.stderr);
        ended
    };
    for command in [&["diff"][..], &["deploy", "--dry-run"]] {
        let shown = run(command);
        assert!(shown.code == Some(2) && shown.out.starts_with(&expected), "{shown:?}");
    }
    let unasked = run(&["deploy"]);
    assert_eq!(unasked.code, Some(1));
    // Before it asks, it says what may be done that could not be done before.
    let power =
        "power:\n  + tenant acme: may now run models digits\n  + plugin acme/reader: imports ";
    let power = format!("{expected}{power}");
    assert_names(&unasked.stderr, &[&power, "there is no terminal to ask at: give --yes"]);
    assert_eq!(server.release(), 0);

    let first = run(&["deploy", "--yes", "--message", "the first"]);
    assert_eq!((first.code, first.out.as_str()), (Some(0), "release 1 serves\n"), "{first:?}");
    assert_eq!(label(&server), 4);
    assert_eq!(read(&server, "releases/1")["message"], "the first");

    // The same again: no file is sent, and no release is made.
    let sent = parts_sent(&server);
    assert_eq!(sent, 2, "each file was sent once, for the dry run");
    for command in [&["deploy", "--yes"][..], &["diff"], &["deploy", "--dry-run", "--prune"]] {
        let again = run(command);
        let expected = (Some(0), "nothing to change\n", "");
        assert_eq!((again.code, again.out.as_str(), again.stderr.as_str()), expected);
    }
    assert_eq!((server.release(), parts_sent(&server)), (1, sent));

    edit(&cli, "threshold = 0.5", "threshold = 0.7");
    edit(&cli, "{ max_batch_size = 32 }", "{ max_batch_size = 16, instances = 2 }");
    let hostile = files::plugin("hostile");
    cli.write("reader.wasm", &hostile);
    let expected = format!(
        "\
~ model config digits
    instances: \"auto\" -> 2
    max_batch_size: 32 -> 16
~ plugin acme/reader
    digest: {} -> {}
~ pipeline acme/main
    settings.threshold: 0.5 -> 0.7
",
        short(&plugin),
        short(&hostile)
    );
    let shown = run(&["diff"]);
    let power = "power:\n  + plugin acme/reader: imports ";
    assert!(shown.out.starts_with(&format!("{expected}{power}")), "{shown:?}");
    let sizes = format!("its size is {} bytes (was {})", hostile.len(), plugin.len());
    assert_names(&shown.out, &["gristmill:plugin/store", "for the first time", &sizes]);
    assert_eq!(shown.code, Some(2));
    let second = run(&["deploy", "--yes"]);
    assert_eq!((second.code, second.out.as_str()), (Some(0), "release 2 serves\n"), "{second:?}");
    assert!(second.stderr.contains(&expected), "{second:?}");
    let release = read(&server, "releases/2");
    let kinds = release["changes"].as_array().unwrap().iter().map(|change| &change["kind"]);
    let kinds: Vec<_> = kinds.collect();
    // The key has the same value, so it is not part of it.
    assert_eq!(kinds, ["put_model_config", "put_plugin", "put_pipeline"], "{release}");
    let answer = server.data.with_token(KEY).post("/v1/acme/infer", b"");
    assert_eq!(answer.text(), "harmless");

    all += &server.log();
    assert!(!all.contains(KEY) && !all.contains(&digest(KEY.as_bytes())[7..]), "{all}");
}

#[test]
fn a_key_is_replaced_and_another_one_stays() {
    let server = Server::start();
    let cli = acme(&server);
    cli.ok(&["deploy", "--yes"]);
    server.put_json("tenants/acme/keys/web", &json!({ "key": "the-key-of-acme-for-web" }));
    let new = "the-new-key-of-acme-for-ci";
    let cli = cli.with("ACME_CI_KEY", new);
    let shown = cli.run(&["diff"]);
    assert_eq!((shown.code, shown.out.as_str()), (Some(2), "~ key acme/ci: replaced\n"));
    assert_names(&shown.stderr, &["kept (--prune deletes it): key acme/web"]);
    cli.ok(&["deploy", "--yes"]);
    let call = |key: &str| server.data.with_token(key).post("/v1/acme/infer", &files::digit(4));
    assert_eq!((call(KEY).status, call(new).status), (401, 200));
    assert_eq!(call("the-key-of-acme-for-web").status, 200);
    // A key that the server has needs no value.
    edit(&cli, r#"{ name = "ci", env = "ACME_CI_KEY" }"#, r#"{ name = "ci" }, { name = "web" }"#);
    assert_eq!(cli.ok(&["deploy", "--yes"]), "nothing to change\n");
    edit(&cli, r#"{ name = "web" }"#, r#"{ name = "none" }"#);
    let error = cli.refused(&["diff"]);
    assert_names(
        &error,
        &["gristmill.deploy.toml:9: tenants.acme.api_keys", "no key \"none\"", "env"],
    );
}

#[test]
fn what_the_manifest_does_not_name_is_pruned_only_if_that_is_asked_for() {
    let server = Server::start();
    let cli = acme(&server);
    // Parts of one manifest, in a folder.
    let text = fs::read_to_string(cli.folder().join("gristmill.deploy.toml")).unwrap();
    let (models, tenants) = text.split_once("[tenants.acme]").unwrap();
    let models = models.replace("models/digits", "../models/digits");
    let tenants = tenants.replace("reader.wasm", "../reader.wasm");
    cli.write("production/models.toml", models);
    cli.write("production/acme.toml", format!("[tenants.acme]{tenants}"));
    cli.ok(&["deploy", "production", "--yes"]);
    server.plugin("acme", "old", "digits");
    server.pipeline("acme", "old", &json!({ "pre": "old", "model": "digits", "post": "old" }));
    server.put_json("tenants/acme/keys/old", &json!({ "key": "the-old-key-of-acme" }));
    server.digits("other");
    let before = server.release();
    let kept = cli.run(&["deploy", "production", "--yes"]);
    assert_eq!((kept.code, kept.out.as_str()), (Some(0), "nothing to change\n"));
    let named = "not in the manifest, and kept (--prune deletes it): key acme/old, pipeline \
                 acme/old, plugin acme/old\n";
    assert_eq!((kept.stderr.as_str(), server.release()), (named, before));
    let pruned = cli.json(&["deploy", "production", "--yes", "--prune"]);
    assert_eq!((&pruned["release"], &pruned["kept"]), (&json!(before + 1), &json!([])));
    let gone = pruned["differences"].as_array().unwrap().iter();
    let gone: Vec<_> = gone.filter(|one| one["after"].is_null()).map(|one| &one["kind"]).collect();
    assert_eq!(gone, ["key", "plugin", "pipeline"], "{pruned}");
    let items = |list: &str| read(&server, list)["items"].as_array().unwrap().len();
    for list in ["plugins", "pipelines", "keys"] {
        assert_eq!(items(&format!("tenants/acme/{list}")), 1);
    }
    // Other tenants are not the manifest's.
    assert_eq!((items("tenants/other/plugins"), label(&server)), (1, json!(4)));
    assert_eq!(cli.json(&["diff", "production", "--prune"])["differences"], json!([]));
}

#[test]
fn a_tenants_own_people_deploy_without_its_document() {
    let server = Server::start();
    server.keyed_tenant("acme", KEY);
    server.model("digits");
    let cli = acme(&server);
    let document = read(&server, "tenants/acme");
    let text = MANIFEST.split_once("[tenants.acme.plugins.reader]").unwrap().1;
    cli.write("gristmill.deploy.toml", format!("[tenants.acme.plugins.reader]{text}"));
    cli.ok(&["deploy", "--yes"]);
    assert_eq!((read(&server, "tenants/acme"), label(&server)), (document, json!(4)));
    edit(&cli, "tenants.acme", "tenants.none");
    let error = cli.refused(&["deploy", "--yes"]);
    assert_names(&error, &["plugin none/reader (gristmill.deploy.toml:1)", "no tenant \"none\""]);
}

#[test]
fn a_deploy_token_brings_its_tenant_to_the_whole_manifest() {
    let server = Server::start();
    let cli = acme(&server);
    // Only the operators' token may configure models.
    edit(&cli, "config = { max_batch_size = 32 }\n", "");
    cli.ok(&["deploy", "--yes"]);
    let token = json!({ "role": "deploy", "tenants": ["acme"] });
    let made = server.admin.put_json("/admin/v1/tokens/of-acme", &token).ok();
    let cli = cli.with("GRISTMILL_ADMIN_TOKEN", made["secret"].as_str().unwrap());
    assert_eq!(cli.ok(&["deploy", "--yes"]), "nothing to change\n");
    // Another tenant's release is not among those that the token shows.
    server.open_tenant("other");
    edit(&cli, "threshold = 0.5", "threshold = 0.7");
    cli.write("reader.wasm", files::plugin("hostile"));
    assert_eq!(cli.ok(&["deploy", "--yes"]), "release 4 serves\n");
    edit(&cli, "default_pipeline", "weight = 2\ndefault_pipeline");
    assert_names(&cli.refused(&["deploy", "--yes"]), &["403", "tenant acme"]);
    assert!(cli.ok(&["status"]).contains("acme    pipeline  main"));
}

#[test]
fn all_faults_of_a_manifest_are_named_before_the_server_is_asked() {
    let cli = Cli::new()
        .with("GRISTMILL_ADMIN_URL", "127.0.0.1:1")
        .with("GRISTMILL_ADMIN_TOKEN", "the-token-of-nothing");
    let error = cli.refused(&["deploy"]);
    assert_names(&error, &["gristmill.deploy.toml: No such file"]);
    cli.write("gristmill.deploy.toml", MANIFEST);
    let error = cli.refused(&["deploy", "--yes"]);
    let expected = [
        "error: the manifest is wrong:",
        "gristmill.deploy.toml:3: models.digits.file is \"models/digits.onnx\": there is no file",
        "gristmill.deploy.toml:9: tenants.acme.api_keys[0].env: the variable ACME_CI_KEY is not set",
        "gristmill.deploy.toml:12: tenants.acme.plugins.reader.file is \"reader.wasm\"",
    ];
    assert_names(&error, &expected);
    assert_eq!(error.lines().count(), 4, "{error}");
}

#[test]
fn a_refusal_names_the_thing_and_its_line() {
    let server = Server::start();
    let cli = acme(&server);
    edit(&cli, "default_pipeline", "weight = 0\ncolour = \"red\"\ndefault_pipeline");
    edit(&cli, "threshold = 0.5 }", "threshold = 0.5 }\nlimits = { cpu_ms = 1 }");
    let error = cli.refused(&["deploy", "--yes"]);
    assert_names(
        &error,
        &[
            "cannot make the release: 422",
            "tenant acme (gristmill.deploy.toml:6).document: weight is 0",
            "unknown key \"colour\"",
            "pipeline acme/main (gristmill.deploy.toml:16).document",
            "cpu_ms is 1",
        ],
    );
    assert!(!error.contains("changes["), "{error}");
    assert_eq!(server.release(), 0);
    let cli = acme(&server);
    cli.write("reader.wasm", "not a plugin");
    assert_names(&cli.refused(&["deploy", "--yes"]), &["422", "plugin \"reader\""]);
}

#[test]
fn another_release_in_between_is_noticed() {
    let server = Server::start();
    let cli = acme(&server);
    // While the changes are tried, another tenant is made: they are found anew.
    let admin = server.admin.clone();
    let between = |call: &'static str, tenant: &'static str| {
        let (admin, is_first) = (admin.clone(), AtomicBool::new(true));
        Proxy::start(server.admin.address(), move |piece, _| {
            let is_call = piece.windows(call.len()).any(|part| part == call.as_bytes());
            if is_call && is_first.swap(false, Ordering::Relaxed) {
                let path = format!("/admin/v1/tenants/{tenant}");
                admin.put_json(&path, &json!({ "open": true })).ok();
            }
            true
        })
    };
    let proxy = between("releases?dry_run=true", "early");
    let through = cli.with("GRISTMILL_ADMIN_URL", &proxy.address);
    assert_eq!(through.ok(&["deploy", "--yes"]), "release 2 serves\n");
    // After they were shown: nothing is changed.
    edit(&through, "threshold = 0.5", "threshold = 0.7");
    let proxy = between("releases?dry_run=false", "late");
    let through = through.with("GRISTMILL_ADMIN_URL", &proxy.address);
    let error = through.refused(&["deploy", "--yes"]);
    let named =
        ["another release was made meanwhile, so nothing was changed: run the command again"];
    assert_names(&error, &named);
    assert_eq!(server.release(), 3);
    assert_eq!(through.ok(&["deploy", "--yes"]), "release 4 serves\n");
}

#[test]
fn a_folder_is_built_once_for_all_tenants_that_have_it() {
    let server = Server::start();
    let cli = Cli::of(&server);
    let builds = cli.folder().join("builds");
    let cli = cli.with("GRISTMILL_BUILD_DIR", builds.to_str().unwrap());
    cli.write("digits.onnx", files::model("digits"));
    for file in ["Makefile", "plugin.c"] {
        let path = format!("{}/../../plugins/c/digits/{file}", env!("CARGO_MANIFEST_DIR"));
        cli.write(&format!("reader/{file}"), fs::read(path).unwrap());
    }
    let tenant = |name: &str| {
        format!(
            "[tenants.{name}]\nopen = true\nplugins.reader.folder = \"reader\"\n\
             pipelines.main = {{ pre = \"reader\", model = \"digits\", post = \"reader\" }}\n"
        )
    };
    let model = "[models.digits]\nfile = \"digits.onnx\"\n";
    cli.write("all.toml", [model, &tenant("acme"), &tenant("other")].concat());
    let ended = cli.run(&["deploy", "all.toml", "--yes"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "release 1 serves\n"), "{ended:?}");
    assert_eq!(ended.stderr.matches("building reader\n").count(), 1, "{ended:?}");
    for tenant in ["acme", "other"] {
        let path = format!("/v1/{tenant}/infer");
        assert_eq!(server.data.post(&path, &files::digit(4)).ok()["label"], 4);
    }
    assert_eq!(cli.ok(&["deploy", "all.toml", "--yes"]), "nothing to change\n");
}

#[test]
fn a_folder_whose_sources_are_the_same_changes_nothing() {
    let server = Setup::new().with_runtimes().start();
    server.model("digits");
    // In Python nothing is built, JavaScript is bundled, and a component is not built again.
    for (tenant, folder, plugin, file, is_built) in [
        ("python", "python/digits", "digits-python", "app.py", true),
        ("js", "js/digits", "digits-js", "plugin.js", true),
        ("component", "hostile/js", "hostile-js", "plugin.js", false),
    ] {
        // The server has a build of the folder, which another machine may have made.
        server.open_tenant(tenant);
        server.plugin(tenant, "reader", plugin);
        let before = server.release();
        let cli = Cli::of(&server);
        let source = format!("{}/../../plugins/{folder}", env!("CARGO_MANIFEST_DIR"));
        let copied =
            Command::new("cp").args(["-r", &source]).arg(cli.folder().join("reader")).status();
        assert!(copied.unwrap().success());
        // Without the tools nothing can be built in another language.
        let cli = match tenant {
            "js" => cli.with_tools(),
            _ => {
                let builds = cli.folder().join("builds");
                cli.with("GRISTMILL_BUILD_DIR", builds.to_str().unwrap()).with("PATH", "/none")
            }
        };
        let text = format!("[tenants.{tenant}.plugins.reader]\nfolder = \"reader\"\n");
        cli.write("gristmill.deploy.toml", text);
        for command in [&["deploy", "--yes"][..], &["diff"]] {
            let ended = cli.run(command);
            assert_eq!(
                (ended.code, ended.out.as_str()),
                (Some(0), "nothing to change\n"),
                "{tenant}"
            );
            assert_eq!(ended.stderr.contains("building reader"), is_built, "{}", ended.stderr);
        }
        assert_eq!(server.release(), before);
        // Another source is another build.
        let path = cli.folder().join("reader").join(file);
        fs::write(&path, [&fs::read(&path).unwrap()[..], b"\n"].concat()).unwrap();
        if is_built {
            assert!(cli.ok(&["deploy", "--yes"]).ends_with("serves\n"));
        } else {
            assert_names(&cli.refused(&["deploy", "--yes"]), &["building reader", "is missing"]);
        }
    }
}
