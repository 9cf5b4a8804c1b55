//! Packages that plugins in Python require.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use gristmill_sandbox::Archive;

use crate::support::cli::Cli;
use crate::support::files;
use crate::support::server::Server;
use crate::support::words::assert_names;

const APP: &str = "\
import six
from gristmill_plugin import InvalidInput, Prepared, Processor, Response, export
@export
class Words(Processor):
    def preprocess(self, context, request):
        raise InvalidInput(six.ensure_str(bytes(request.body)))
    def postprocess(self, context, outputs, state):
        return Response.json(None)
";

fn plugin(requirements: &str) -> Cli {
    // The compiled runtime is there already.
    let cli = Cli::new().with_tools();
    let project =
        "[project]\nname = \"words\"\ndependencies = [\"gristmill-plugin\"]\n[tool.gristmill]";
    cli.write("words/pyproject.toml", project);
    cli.write("words/app.py", APP);
    cli.write("words/requirements.txt", requirements);
    cli
}

#[test]
fn required_packages_are_found_locked_and_part_of_the_sources() {
    let cli = plugin("six>=1.16,<2\n");
    let built = cli.ok(&["plugin", "build", "words"]);
    assert!(built.contains("runtime    python"), "{built}");
    let lock = fs::read_to_string(cli.folder().join("words/requirements.lock")).unwrap();
    let line = lock.lines().last().unwrap();
    assert!(line.starts_with("six==1.") && line.contains(" --hash=sha256:"), "{lock}");
    let first = fs::read(cli.folder().join("words/words.tar")).unwrap();
    let archive = Archive::read(&first).unwrap();
    let names: Vec<_> = archive.files.keys().map(String::as_str).collect();
    let expected = ["app.py", "pyproject.toml", "requirements.lock", "requirements.txt", "six.py"];
    assert_eq!(names, expected);
    // Without pip and the registry, from the lock.
    let offline = cli.with("PATH", "/none");
    offline.ok(&["plugin", "build", "words"]);
    assert_eq!(fs::read(offline.folder().join("words/words.tar")).unwrap(), first);
    // Another hash is another file.
    let path = offline.folder().join("words/requirements.lock");
    let digit = if line.ends_with('0') { "1" } else { "0" };
    fs::write(&path, format!("{}{digit}\n", &lock.trim_end()[..lock.trim_end().len() - 1]))
        .unwrap();
    let online = offline.with("PATH", &std::env::var("PATH").unwrap());
    let refused = online.refused(&["plugin", "build", "words"]);
    assert_names(&refused, &["cannot install the packages of requirements.lock", "HASHES"]);
}

#[test]
fn a_build_has_the_runtimes_that_the_variable_of_a_server_names() {
    let cli = plugin("").with("GRISTMILL_RUNTIMES_DIRECTORY", "words");
    let built = cli.run(&["plugin", "build", "words"]);
    assert_eq!(built.code, Some(0), "{built:?}");
    let named = ["were not loaded", "python.wasm", "GRISTMILL_RUNTIMES_DIRECTORY"];
    assert_names(&built.stderr, &named);
}

#[test]
fn the_lock_of_a_components_first_build_is_one_of_its_sources() {
    let server = Server::start();
    server.open_tenant("acme");
    let cli = Cli::of(&server);
    let builds = cli.folder().join("builds");
    let cli = cli.with("GRISTMILL_BUILD_DIR", builds.to_str().unwrap());
    // In place of componentize-py, which takes long: a component that is there already.
    let component = cli.write("ready.wasm", files::plugin("digits"));
    let script = format!("#!/bin/sh\nfor out; do :; done\ncp {} \"$out\"\n", component.display());
    let tool = cli.write("builds/componentize-py-0.25.1/bin/componentize-py", script);
    fs::set_permissions(tool, Permissions::from_mode(0o755)).unwrap();
    cli.write("builds/componentize-py-0.25.1/complete", "");
    cli.write(
        "words/pyproject.toml",
        "[project]\nname = \"words\"\n[tool.gristmill]\ncomponent = true\n",
    );
    cli.write("words/app.py", APP);
    cli.write("words/requirements.txt", "six>=1.16,<2\n");
    cli.write("gristmill.deploy.toml", "[tenants.acme.plugins.words]\nfolder = \"words\"\n");
    assert!(cli.ok(&["deploy", "--yes"]).ends_with("serves\n"));
    assert!(cli.folder().join("words/requirements.lock").exists());
    let ended = cli.run(&["deploy", "--yes"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "nothing to change\n"), "{ended:?}");
    assert!(!ended.stderr.contains("building"), "{ended:?}");
}

#[test]
fn packages_with_compiled_parts_are_refused_by_name() {
    for (requirements, named) in [
        (
            "numpy\n",
            &["numpy: plugins have no packages with compiled parts", "sdk/guides/numpy.md"][..],
        ),
        ("six\nJinja2==3.1.6\n", &["markupsafe (Jinja2 needs markupsafe): plugins have no"]),
        ("no-such-package-of-anybody==1\n", &["pip cannot find the packages", "no-such-package"]),
        ("six\n-e .\n", &["requirements.txt:2: \"-e .\""]),
    ] {
        let refused = plugin(requirements).refused(&["plugin", "build", "words"]);
        assert_names(&refused, named);
    }
}
