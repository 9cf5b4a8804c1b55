//! The command line as a person sees it: each mistake is one line that says what to do, without a
//! backtrace, even if `RUST_BACKTRACE` asks for one.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::admin_api::read;
use crate::support::cli::{Cli, command_refused, gristmill, push_refused};
use crate::support::deploy::processor;
use crate::support::files;
use crate::support::guests::with_endless_type;
use crate::support::server::Server;
use crate::support::setup::{ADMIN_TOKEN, Setup};
use crate::support::words::assert_names;

/// Fails unless it is one line with every one of `named`.
#[track_caller]
fn assert_line_names(text: &str, named: &[&str]) {
    assert_names(text, named);
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn a_plugin_is_pushed_to_an_address_without_a_scheme() {
    let server = Server::start();
    server.digits("acme");
    let address = server.admin.address().strip_prefix("http://").unwrap();
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("digits.wasm"), files::plugin("hostile")).unwrap();
    let push = ["plugin", "push", "digits.wasm", "--tenant", "acme", "--token", ADMIN_TOKEN];
    let pushed = gristmill(directory.path(), &[&push[..], &["--admin", address]].concat());
    let output = String::from_utf8(pushed.stdout).unwrap();
    assert!(output.starts_with("acme/digits is live in release "), "{output}");
    assert_eq!(server.data.post("/v1/acme/infer/digits", b"").text(), "harmless");
}

#[test]
fn a_wrong_flag_is_named_with_its_value() {
    let error = push_refused(&["--tenant", "acme", "--name", "Bad Name"]);
    assert_line_names(&error, &["--name", "\"Bad Name\"", "a-z, 0-9"]);
    let error = push_refused(&["--tenant", "a/../b"]);
    assert_line_names(&error, &["--tenant", "\"a/../b\"", "a-z, 0-9"]);
    let error = push_refused(&["--tenant", "acme", "--admin", "not an address"]);
    assert_line_names(&error, &["--admin is \"not an address\"", "such as http://127.0.0.1:8081"]);
    let error = push_refused(&["--tenant", "acme", "--token", "the-secret\n"]);
    assert_line_names(&error, &["--token", "cannot be sent in a header"]);
    assert!(!error.contains("the-secret"), "{error}");
}

#[test]
fn a_server_that_does_not_run() {
    // The port was bound and closed again, so nothing listens there.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let error = push_refused(&["--tenant", "acme", "--admin", &address]);
    assert_line_names(&error, &[&address, "nothing listens", "does `gristmill serve` run there?"]);
    let error = push_refused(&["--tenant", "acme", "--admin", "no-such-host.invalid:8081"]);
    assert_line_names(&error, &["cannot reach no-such-host.invalid:8081", "--admin"]);
}

#[test]
fn an_address_that_is_not_the_admin_planes() {
    let server = Server::start();
    server.open_tenant("acme");
    let error = push_refused(&["--tenant", "acme", "--admin", &server.grpc]);
    assert_line_names(&error, &[&server.grpc, "is it the port of gRPC?"]);
    let data = server.data.address();
    let error = push_refused(&["--tenant", "acme", "--admin", data]);
    assert_line_names(&error, &["404", "is", "the data plane?", "127.0.0.1:8081"]);
}

#[test]
fn a_server_of_somebody_else() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = other.accept().unwrap();
            // Read the whole request, because closing would otherwise reset the connection.
            let mut reader = std::io::BufReader::new(stream.try_clone().unwrap());
            let mut length = 0;
            loop {
                let mut line = String::new();
                std::io::BufRead::read_line(&mut reader, &mut line).unwrap();
                if let Some(value) = line.to_lowercase().strip_prefix("content-length: ") {
                    length = value.trim().parse().unwrap();
                }
                if line.trim().is_empty() {
                    break;
                }
            }
            std::io::Read::read_exact(&mut reader, &mut vec![0; length]).unwrap();
            let answer = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\nhtml";
            stream.write_all(answer.as_bytes()).unwrap();
        });
        let error = push_refused(&["--tenant", "acme", "--admin", &address]);
        assert_line_names(&error, &["200 OK", &address, "is the admin plane at this address?"]);
    });
}

#[test]
fn a_wrong_token_and_a_tenant_that_is_not_there() {
    let server = Server::start();
    let admin = server.admin.address();
    let wrong = ["--tenant", "acme", "--admin", admin, "--token", "not-the-token-of-this"];
    assert_line_names(&push_refused(&wrong), &["403", "admin token"]);
    let error = push_refused(&["--tenant", "acme", "--admin", admin]);
    assert_line_names(&error, &["404 Not Found: no tenant \"acme\""]);
    assert!(!error.contains("data plane"), "{error}");
}

#[test]
fn a_new_plugin_has_the_files_of_its_language() {
    let directory = tempfile::tempdir().unwrap();
    let builds = directory.path().join("builds");
    let new = |name: &str, language: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gristmill"));
        command.args(["plugin", "new", name, "--language", language]);
        command.current_dir(directory.path()).env("GRISTMILL_BUILD_DIR", &builds);
        command.output().unwrap()
    };
    for (language, file) in
        [("rust", "src/lib.rs"), ("python", "app.py"), ("js", "plugin.js"), ("c", "plugin.c")]
    {
        let name = format!("my-{language}");
        let made = new(&name, language);
        let printed = String::from_utf8(made.stdout).unwrap();
        assert!(made.status.success() && printed.contains(&format!("cd {name}")), "{printed}");
        let folder = directory.path().join(&name);
        assert!(folder.join(file).is_file(), "{language}");
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            if entry.path().is_file() {
                let text = fs::read_to_string(entry.path()).unwrap();
                assert!(!text.contains("{{"), "{}: {text}", entry.path().display());
            }
        }
        let again = String::from_utf8(new(&name, language).stderr).unwrap();
        assert_line_names(&again, &[&name, "is not empty", "--folder"]);
    }
    // The SDKs are unpacked once, for all languages.
    let unpacked = fs::read_dir(&builds).unwrap().map(Result::unwrap);
    assert_eq!(unpacked.filter(|entry| entry.path().is_dir()).count(), 1);
}

#[test]
fn a_component_is_checked() {
    let directory = tempfile::tempdir().unwrap();
    let path = files::plugin_path("digits").canonicalize().unwrap();
    let path = path.to_str().unwrap();
    let checked = gristmill(directory.path(), &["plugin", "check", path, "--output", "json"]);
    let document: Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!(document["world"], "processor");
    assert_eq!(document["contract"], "0.3");
    let exports = document["exports"].as_array().unwrap();
    let is_exported = |name: &str| exports.contains(&json!(name));
    assert!(is_exported("preprocess") && is_exported("postprocess"), "{document}");
    assert_eq!(document["init"], false);
    assert_eq!(document["grants"], json!([]));
    assert!(document["initial_memory_bytes"].as_u64().unwrap() > 0, "{document}");
    assert!(document["compile_ms"].is_u64() && document["size_bytes"].is_u64(), "{document}");
    fs::write(directory.path().join("not.wasm"), "text").unwrap();
    let error = command_refused(directory.path(), &["plugin", "check", "not.wasm"]);
    assert_line_names(&error, &["not.wasm is not a plugin", "not a WebAssembly component"]);
    fs::write(directory.path().join("endless.wasm"), with_endless_type()).unwrap();
    let error = command_refused(directory.path(), &["plugin", "check", "endless.wasm"]);
    assert_line_names(&error, &["endless.wasm is not a plugin", "signal 6 (SIGABRT) ended it"]);
    assert_names(&error, &["overflowed its stack", "build the plugin anew"]);
}

#[test]
fn a_build_reads_no_folder_outside_of_the_plugins() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("plugin");
    fs::create_dir(&folder).unwrap();
    symlink("..", folder.join("link")).unwrap();
    for path in ["/etc", "../plugin/..", "link"] {
        let manifest = format!("[project]\nname = \"sums\"\n[tool.gristmill]\npaths = [{path:?}]");
        fs::write(folder.join("pyproject.toml"), manifest).unwrap();
        let error = command_refused(directory.path(), &["plugin", "build", "plugin"]);
        let named = format!("tool.gristmill.paths has {path:?}");
        assert_line_names(&error, &[&named, "it lies outside of plugin: put a copy there"]);
    }
}

#[test]
fn a_tenants_plugins_are_listed() {
    let server = Server::start();
    server.ranker("acme");
    let directory = tempfile::tempdir().unwrap();
    let list = |tenant: &str, output: &str| {
        let flags = ["--admin", server.admin.address(), "--token", ADMIN_TOKEN];
        let list = ["plugin", "list", "--tenant", tenant, "--output", output];
        gristmill(directory.path(), &[&list[..], &flags].concat())
    };
    let listed: Value = serde_json::from_slice(&list("acme", "json").stdout).unwrap();
    let names: Vec<_> = listed.as_array().unwrap().iter().map(|plugin| &plugin["name"]).collect();
    assert_eq!(names, ["ranker-post", "ranker-pre"]);
    assert_eq!(listed[0]["roles"], json!(["post"]));
    assert_eq!(listed[1]["state"], "ready");
    let table = String::from_utf8(list("acme", "text").stdout).unwrap();
    assert!(table.lines().count() == 3 && table.contains("ranker-pre   sha256:"), "{table}");
    let refused = String::from_utf8(list("globex", "text").stderr).unwrap();
    assert_line_names(&refused, &["there is no tenant \"globex\""]);
}

#[test]
fn all_that_is_on_a_server_is_listed_and_shown() {
    let server = Server::start();
    server.keyed_tenant("acme", "the-key-of-acme-1");
    server.digits_for("acme");
    let directory = tempfile::tempdir().unwrap();
    let get = |what: &[&str]| {
        let flags = ["--admin", server.admin.address(), "--token", ADMIN_TOKEN];
        gristmill(directory.path(), &[&["get"], what, &flags].concat())
    };
    let output = |what: &[&str]| String::from_utf8(get(what).stdout).unwrap();
    let head = |what: &[&str]| output(what).lines().next().unwrap_or_default().to_owned();
    assert_eq!(head(&["tenants"]), "NAME  OPEN   WEIGHT  KEYS  PLUGINS  PIPELINES");
    assert_eq!(output(&["keys", "--tenant", "acme"]), "NAME   VERSION\nkey-1  1\n");
    let pipelines = "NAME    PRE     MODEL   POST\ndigits  digits  digits  digits\n";
    assert_eq!(output(&["pipelines", "--tenant", "acme"]), pipelines);
    assert!(output(&["plugins", "--tenant", "acme"]).contains("\ndigits  sha256:"));
    assert!(output(&["models"]).contains("\ndigits  sha256:"));
    let json = |what: &[&str]| -> Value {
        serde_json::from_slice(&get(&[what, &["--output", "json"]].concat()).stdout).unwrap()
    };
    assert_eq!(json(&["keys", "--tenant", "acme"]), json!([{ "name": "key-1", "version": 1 }]));
    let pipeline = json(&["pipelines", "digits", "--tenant", "acme"]);
    assert_eq!(pipeline["pre"], "digits");
    let shown: Value =
        serde_json::from_str(&output(&["pipelines", "digits", "--tenant", "acme"])).unwrap();
    assert_eq!(shown, pipeline);
    let refused = |what: &[&str]| String::from_utf8(get(what).stderr).unwrap();
    assert_line_names(&refused(&["keys"]), &["--tenant is missing: keys belong to a tenant"]);
    let missing = refused(&["plugins", "none", "--tenant", "acme"]);
    assert_line_names(&missing, &["cannot show none of the plugins", "no plugin \"none\""]);
}

#[test]
fn releases_are_listed_and_gone_back_to() {
    let server = Server::start();
    server.keyed_tenant("acme", "the-key-of-acme-1");
    server.digits_for("acme");
    server.put_json("models/digits/config", &json!({ "max_batch_size": 3 }));
    let directory = tempfile::tempdir().unwrap();
    let run = |what: &[&str]| {
        let flags = ["--admin", server.admin.address(), "--token", ADMIN_TOKEN];
        gristmill(directory.path(), &[what, &flags].concat())
    };
    let printed = |what: &[&str]| String::from_utf8(run(what).stdout).unwrap();
    let refused = |what: &[&str]| {
        let output = run(what);
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    let listed = printed(&["releases", "--limit", "2"]);
    let lines: Vec<_> = listed.lines().collect();
    assert!(lines.len() == 3 && lines[0].starts_with("RELEASE  PUBLISHED"), "{listed}");
    assert!(lines[1].starts_with("5 ") && lines[1].contains("put config of model digits"));
    let release: Value = serde_json::from_str(&printed(&["releases", "5"])).unwrap();
    assert_eq!(release["changes"][0]["document"]["max_batch_size"], 3);
    let back = ["rollback", "--to", "4", "--model", "digits"];
    let expected = "~ model config digits\n    max_batch_size: 3 -> \"auto\"\n";
    assert_eq!(printed(&[&back[..], &["--dry-run"]].concat()), expected);
    let unasked = refused(&back);
    assert!(unasked.contains(expected) && unasked.contains("give --yes"), "{unasked}");
    assert_eq!(server.release(), 5);
    let why = ["--yes", "--message", "too small"];
    assert_eq!(printed(&[&back[..], &why].concat()), "release 6 serves\n");
    let release: Value = serde_json::from_str(&printed(&["releases", "6"])).unwrap();
    assert_eq!(release["message"], "too small");
    assert_eq!(printed(&[&back[..], &["--yes"]].concat()), "nothing differs\n");
    let missing = refused(&["rollback", "--to", "99", "--yes"]);
    assert_line_names(&missing, &["cannot go back to release 99", "no release \"99\""]);
    assert_line_names(&refused(&["releases", "99"]), &["cannot show release 99"]);
}

#[test]
fn a_folder_that_is_no_plugin() {
    let directory = tempfile::tempdir().unwrap();
    let error = command_refused(directory.path(), &["plugin", "build"]);
    assert_line_names(&error, &["no Cargo.toml", "gristmill plugin push FILE"]);
    let package = |name: &str, library: &str| {
        let folder = directory.path().join(name);
        fs::create_dir_all(folder.join("src")).unwrap();
        let text = format!(
            "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n{library}"
        );
        fs::write(folder.join("Cargo.toml"), text).unwrap();
        fs::write(folder.join("src/lib.rs"), "").unwrap();
    };
    package("reader", "[lib]\ncrate-type = [\"cdylib\"]\n");
    package("shared", "");
    fs::write(
        directory.path().join("Cargo.toml"),
        "[workspace]\nresolver = \"2\"\nmembers = [\"reader\", \"shared\"]\n",
    )
    .unwrap();
    let error = command_refused(directory.path(), &["plugin", "build"]);
    assert!(error.contains("is a workspace, not a plugin; build one of its plugins:"), "{error}");
    assert!(
        error.contains("gristmill plugin build ./reader") && !error.contains("shared"),
        "{error}"
    );
    let error = command_refused(directory.path(), &["plugin", "build", "shared"]);
    assert_line_names(&error, &["\"shared\" has no cdylib", "crate-type"]);
}

/// The value of a number or of bytes in the form of the table of limits.
fn number(cell: &str) -> u64 {
    let (number, unit) = cell.split_once(' ').unwrap_or((cell, ""));
    let shift = match unit {
        "" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        other => panic!("unit {other:?}"),
    };
    number.parse::<u64>().unwrap() << shift
}

#[test]
fn the_table_of_limits_says_what_the_server_allows() {
    let directory = tempfile::tempdir().unwrap();
    let table = String::from_utf8(gristmill(directory.path(), &["reference", "limits"]).stdout);
    let server = Server::start();
    server.digits("acme");
    let path = "/admin/v1/tenants/acme/pipelines/limited";
    let mut checked = 0;
    for row in table.unwrap().lines() {
        let cells: Vec<_> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let Some(key) = cells[0].strip_prefix('`').and_then(|key| key.strip_suffix('`')) else {
            continue;
        };
        let (least, most) = cells[2].split_once(" to ").unwrap();
        let most = match most {
            // The largest value is the default.
            "`plugin_memory_bytes`" => number(cells[1]),
            // Those of a server with default settings.
            "`plugin_held_bytes`" => 256 << 20,
            "`passed_bytes`" => 33 << 20,
            cell => number(cell),
        };
        assert!((number(least)..=most).contains(&number(cells[1])), "{row}");
        let put = |value| server.admin.put_json(path, &processor("digits", json!({ key: value })));
        put(most).ok();
        let refused = put(most + 1);
        assert_eq!(refused.status, 422, "{row}: {}", refused.text());
        let range = format!("{} to {most}", number(least));
        assert!(refused.text().contains(&range), "{row}: {}", refused.text());
        checked += 1;
    }
    assert_eq!(checked, 7);
}

#[test]
fn a_server_that_cannot_start_says_so_in_one_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let error =
        Setup::new().variable("RUST_BACKTRACE", "1").flag("--listen", &address).start_refused();
    let last = error.lines().last().unwrap();
    assert!(last.starts_with("error: ") && last.contains(&address), "{error}");
    assert!(!error.to_lowercase().contains("backtrace"), "{error}");
}

#[test]
fn a_misspelt_variable_is_warned_of() {
    let server = Setup::new().variable("GRISTMILL_LISTN", "127.0.0.1:1").start();
    let log = server.log_with("GRISTMILL_LISTN");
    let line = log.lines().find(|line| line.contains("GRISTMILL_LISTN"));
    assert!(line.is_some_and(|line| line.contains("WARN") && line.contains("unknown")), "{log}");
}

#[test]
fn tenants_pipelines_grants_and_keys_are_put_by_their_keys() {
    let server = Server::start();
    server.model("digits");
    let cli = Cli::of(&server).with("WEB_KEY", "the-key-of-acme-1");
    let output = cli.ok(&["put", "tenant", "acme", "open=true", "weight=3"]);
    assert!(output.ends_with("release 2 serves\n"), "{output}");
    server.plugin("acme", "reader", "digits");
    let put = ["put", "pipeline", "digits", "--tenant", "acme"];
    let parts = ["pre=reader", "model=digits", "post=reader", "limits.cpu_ms=2000"];
    cli.ok(&[&put[..], &parts].concat());
    server.assert_reads("acme", 6);
    // What is not named stays.
    cli.ok(&["put", "tenant", "acme", "models+=digits", "--message", "a grant"]);
    let tenant = read(&server, "tenants/acme");
    assert_eq!((&tenant["weight"], &tenant["models"]), (&json!(3), &json!(["digits"])));
    let message = read(&server, &format!("releases/{}", server.release()))["message"].clone();
    assert_eq!(message, "a grant");
    cli.ok(&[&put[..], &["settings.threshold=0.5"]].concat());
    let pipeline = read(&server, "tenants/acme/pipelines/digits");
    assert_eq!((&pipeline["limits"]["cpu_ms"], &pipeline["pre"]), (&json!(2000), &json!("reader")));
    cli.ok(&["put", "tenant", "acme", "open=", "api_keys=[\"the-key-of-acme-0\"]"]);
    cli.ok(&["put", "key", "web", "--tenant", "acme", "--key-env", "WEB_KEY"]);
    let keyed = server.data.with_token("the-key-of-acme-1");
    assert_eq!(keyed.post("/v1/acme/infer/digits", &files::digit(6)).status, 200);
    for (arguments, named) in [
        (&["put", "tenant", "acme"][..], &["KEY=VALUE is missing"][..]),
        (&["put", "pipeline", "main", "a=1"], &["--tenant is missing"]),
        (&["put", "tenant", "acme", "colour=red"], &["422", "unknown key \"colour\""]),
        (&["put", "key", "web", "--tenant", "acme"], &["--key-env is missing"]),
        (&["put", "key", "b", "--tenant", "acme", "--key-env", "NONE"], &["NONE is not set"]),
    ] {
        assert_names(&cli.refused(arguments), named);
    }
}
