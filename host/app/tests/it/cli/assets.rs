//! Assets by the command line: pushed, listed, deployed, brought by plugins, and tested with.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use gristmill_sandbox::Archive;
use serde_json::json;

use crate::support::admin_api::{digest, read};
use crate::support::cli::Cli;
use crate::support::files;
use crate::support::server::Server;
use crate::support::words::assert_names;

/// What the plugin `hostile` of `acme` finds under this name.
#[track_caller]
fn opened(server: &Server, name: &str) -> String {
    let answer = server.data.post(&format!("/v1/acme/infer/hostile?do=asset&name={name}"), b"");
    assert_eq!(answer.status, 200, "{name}: {}", answer.text());
    answer.text()
}

#[test]
fn an_asset_is_pushed_named_listed_and_deleted() {
    let server = Server::start();
    server.hostile("acme");
    let cli = Cli::of(&server);
    cli.write("prices.json", "first");
    let push = ["asset", "push", "prices.json", "--tenant", "acme"];
    assert_names(&cli.ok(&push), &["acme/prices.json is live in release "]);
    cli.ok(&[&push[..], &["--name", "prices"]].concat());
    let named = "assets={\"prices.json\": \"prices\"}";
    let put = ["put", "pipeline", "hostile", "--tenant", "acme", named];
    assert_names(&cli.ok(&put), &["~ pipeline acme/hostile", "prices"]);
    assert_eq!(opened(&server, "prices.json"), "first");
    cli.write("prices.json", "second");
    cli.ok(&[&push[..], &["--name", "prices"]].concat());
    assert_eq!(opened(&server, "prices.json"), "second");

    let listed = cli.json(&["get", "assets", "--tenant", "acme"]);
    assert_eq!((&listed[0]["name"], &listed[1]["name"]), (&json!("prices"), &json!("prices.json")));
    assert_eq!(listed[0]["digest"], digest(b"second"));
    let delete = |name| ["asset", "delete", name, "--tenant", "acme"];
    let used = cli.refused(&delete("prices"));
    assert_names(&used, &["asset \"prices\" is used by acme/hostile"]);
    assert_names(&cli.ok(&delete("prices.json")), &["acme/prices.json is gone in release "]);
    cli.write("Prices.JSON", "x");
    let refused = cli.refused(&["asset", "push", "Prices.JSON", "--tenant", "acme"]);
    assert_names(&refused, &["--name gives another"]);
}

#[test]
fn a_test_on_a_server_has_assets_of_the_tenant() {
    let server = Server::start();
    server.hostile("acme");
    server.put("tenants/acme/assets/prices", b"3.5");
    let cli = Cli::of(&server);
    cli.write("hostile.wasm", files::plugin("hostile"));
    let request = json!({ "query": "do=asset&name=prices.json" });
    cli.write("requests/price.request.json", request.to_string());
    cli.write("requests/price.expected.json", r#"{"text": "3.5"}"#);
    let test = ["plugin", "test", "hostile.wasm", "--model", "digits", "--tenant", "acme"];
    let with = |asset| [&test[..], &["--asset", asset]].concat();
    let tested = cli.ok(&with("prices.json=prices"));
    assert_names(&tested, &["ok      price.request.json"]);
    assert_names(&cli.refused(&with("prices.json=none")), &["none"]);
    assert_names(&cli.refused(&with("prices.json")), &["is not NAME=ASSET"]);
    let file = cli.refused(&with("prices.json=today/prices.json"));
    assert_names(&file, &["an asset of the tenant", "gristmill asset push FILE --tenant acme"]);
    assert_eq!(cli.run(&test).code, Some(1));
}

#[test]
fn a_manifest_has_assets_beside_the_pipelines_that_name_them() {
    let server = Server::start();
    server.hostile("acme");
    let cli = Cli::of(&server);
    let manifest = "\
[tenants.acme.assets.prices]
file = \"data/prices.json\"

[tenants.acme.pipelines.hostile]
pre = \"hostile\"
model = \"digits\"
post = \"hostile\"
assets = { \"prices.json\" = \"prices\" }
";
    cli.write("gristmill.deploy.toml", manifest);
    cli.write("data/prices.json", "first");
    let deploy = ["deploy", "--yes"];
    // What changes is on standard error.
    let plan = |arguments: &[&str]| {
        let ended = cli.run(arguments);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.stderr
    };
    assert_names(&plan(&deploy), &["+ asset acme/prices", "~ pipeline acme/hostile"]);
    assert_eq!(opened(&server, "prices.json"), "first");
    let release = server.release();
    cli.ok(&deploy);
    assert_eq!(server.release(), release, "nothing differs");
    cli.write("data/prices.json", "second");
    assert_names(&plan(&deploy), &["~ asset acme/prices"]);
    assert_eq!(opened(&server, "prices.json"), "second");
    server.put("tenants/acme/assets/old", b"x");
    assert_names(&plan(&["deploy", "--yes", "--prune"]), &["- asset acme/old"]);
    cli.write("gristmill.deploy.toml", manifest.replace("data/prices.json", "data"));
    assert_names(&cli.refused(&deploy), &["gristmill.deploy.toml:", "data is not a file"]);
}

#[test]
fn a_component_brings_the_files_of_its_folder() {
    let server = Server::start();
    server.hostile("acme");
    let cli = Cli::of(&server);
    let builds = cli.folder().join("builds");
    let cli = cli.with("GRISTMILL_BUILD_DIR", builds.to_str().unwrap());
    // In place of componentize-py, which takes long: a component that is there already.
    let component = cli.write("ready.wasm", files::plugin("hostile"));
    let script = format!("#!/bin/sh\nfor out; do :; done\ncp {} \"$out\"\n", component.display());
    let tool = cli.write("builds/componentize-py-0.25.1/bin/componentize-py", script);
    fs::set_permissions(tool, Permissions::from_mode(0o755)).unwrap();
    cli.write("builds/componentize-py-0.25.1/complete", "");
    let project = "[project]\nname = \"hostile\"\n[tool.gristmill]\ncomponent = true\n";
    cli.write("hostile/pyproject.toml", project);
    cli.write("hostile/app.py", "");
    cli.write("hostile/assets/labels.txt", "cat");
    cli.write("hostile/assets/more/vocab.tar", "deep");
    cli.ok(&["plugin", "push", "hostile", "--tenant", "acme"]);
    assert_eq!(opened(&server, "labels.txt"), "cat");
    assert_eq!(opened(&server, "more/vocab.tar"), "deep");
    let first = read(&server, "tenants/acme/plugins/hostile")["digest"].clone();
    cli.write("hostile/assets/labels.txt", "dog");
    cli.ok(&["plugin", "push", "hostile", "--tenant", "acme"]);
    assert_eq!(opened(&server, "labels.txt"), "dog");
    assert_ne!(read(&server, "tenants/acme/plugins/hostile")["digest"], first);
    cli.write("hostile/assets/a b.txt", "x");
    let refused = cli.refused(&["plugin", "build", "hostile"]);
    assert_names(&refused, &["asset \"a b.txt\": its name must be 1 to 128"]);
}

#[test]
fn a_test_has_the_plugins_files_and_those_that_stand_for_the_pipelines() {
    let cli = Cli::new().with_tools();
    let app = "\
from gristmill_plugin import Dtype, Prepared, Processor, Response, Tensor, assets, export, tables
@export
class Words(Processor):
    def preprocess(self, context, request):
        picture = Tensor.from_values([1, 1, 28, 28], Dtype.FLOAT32, [0] * 784)
        text = assets.text(bytes(request.body).decode())
        price = tables.gather('prices.csv', [7], ['price']).view()[0]
        return Prepared({'input': picture}, f'{text} {price}'.encode())
    def postprocess(self, context, outputs, state):
        return Response.text(state.decode() + ' ' + assets.text('labels.txt'))
";
    let project = "[project]\nname = \"words\"\n[tool.gristmill]\n";
    cli.write("words/pyproject.toml", project);
    cli.write("words/app.py", app);
    cli.write("words/assets/labels.txt", "cat");
    cli.write("words/requests/own.txt", "labels.txt");
    cli.write("words/requests/own.expected.json", r#"{"text": "cat 9.5 cat"}"#);
    cli.write("words/requests/prices.txt", "prices.json");
    cli.write("words/requests/prices.expected.json", r#"{"text": "3 9.5 cat"}"#);
    cli.write("today.json", "3");
    cli.write("today.csv", "id,rating,price\n7,4,9.5\n");
    let model = files::model_path("digits");
    let test = ["plugin", "test", "words", "--model", model.to_str().unwrap()];
    let today = ["--asset", "prices.json=today.json", "--asset", "prices.csv=today.csv"];
    let tested = cli.ok(&[&test[..], &today].concat());
    assert_names(&tested, &["ok      own.txt", "ok      prices.txt"]);
    let archive = Archive::read(&fs::read(cli.folder().join("words/words.tar")).unwrap()).unwrap();
    assert_eq!(archive.files["assets/labels.txt"], b"cat");
    // Without it the plugin's own lines say what is missing.
    let failed = cli.run(&test);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert_names(
        &(failed.out + &failed.stderr),
        &["no asset \"prices.json\": there are labels.txt; put a file"],
    );
    for (asset, named) in [("x", "is not NAME=FILE"), ("../x=y", "the name must be 1 to 128")] {
        assert_names(&cli.refused(&[&test[..], &["--asset", asset]].concat()), &[named]);
    }
}
