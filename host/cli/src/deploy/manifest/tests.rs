use gristmill_core::Name;
use serde_json::{Value, json};

use super::*;

/// The manifest of these files, in a folder that has the files `a.wasm` and `m.onnx` and the
/// folder `plugin`.
fn read_files(files: &[(&str, &str)]) -> Result<Manifest, String> {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path();
    fs::write(folder.join("a.wasm"), "").unwrap();
    fs::write(folder.join("m.onnx"), "").unwrap();
    fs::create_dir(folder.join("plugin")).unwrap();
    for (name, text) in files {
        fs::write(folder.join(name), text).unwrap();
    }
    let path = match files {
        [(name, _)] => folder.join(name),
        _ => folder.to_owned(),
    };
    let variables = |name: &str| match name {
        "CI_KEY" => Some("the-secret-key-of-ci".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    };
    let prefix = format!("{}/", folder.display());
    read(&path, &variables).map_err(|faults| faults.to_string().replace(&prefix, ""))
}

fn name(name: &str) -> Name {
    name.parse().unwrap()
}

const WHOLE: &str = r#"
[models.digits]
file = "m.onnx"
config = { max_batch_size = 32, provider_options.cuda = { device_id = "0" } }

[tenants.acme]
open = false
weight = 3
models = ["digits"]
api_keys = [{ name = "web" }, { name = "ci", env = "CI_KEY" }]
quota = { rows = 10 }

[tenants.acme.plugins]
built = { folder = "plugin" }
file = { file = "a.wasm" }
kept = { digest = "sha256:0000000000000000000000000000000000000000000000000000000000000000" }

[tenants.acme.pipelines.main]
pre = "built"
model = "digits"
post = "file"
settings = { threshold = 0.5, hex = 0xff, big = 9223372036854775807, "odd key" = [1, "a", true] }

[[tenants.acme.pipelines.main.samples]]
request = "one"
"#;

#[test]
fn everything_is_read_and_documents_are_passed_on() {
    let manifest = read_files(&[("deploy.toml", WHOLE)]).unwrap();
    let model = &manifest.models[&name("digits")];
    assert!(matches!(&model.source, ContentSource::Model(path) if path.ends_with("m.onnx")));
    let config =
        json!({ "max_batch_size": 32, "provider_options": { "cuda": { "device_id": "0" } } });
    assert_eq!(Value::from(model.config.clone().unwrap()), config);
    assert_eq!(model.position.line, 2);
    let tenant = &manifest.tenants[&name("acme")];
    let document = tenant.document.clone().unwrap();
    let expected =
        json!({ "open": false, "weight": 3, "models": ["digits"], "quota": { "rows": 10 } });
    assert_eq!((Value::from(document.keys), document.position.line), (expected, 6));
    let keys = tenant.keys.as_ref().unwrap();
    let keys: Vec<_> = keys.iter().map(|key| (key.name.as_str(), key.secret.is_some())).collect();
    assert_eq!(keys, [("web", false), ("ci", true)]);
    assert!(!format!("{tenant:?}").contains("the-secret"), "{tenant:?}");
    let sources = tenant.plugins.values().map(|plugin| &plugin.source).collect::<Vec<_>>();
    assert!(
        matches!(
            sources[..],
            [ContentSource::Folder(_), ContentSource::File(_), ContentSource::Digest(_)]
        ),
        "{sources:?}"
    );
    let pipeline = tenant.pipelines[&name("main")].clone();
    let expected = json!({
        "pre": "built", "model": "digits", "post": "file",
        "settings": { "threshold": 0.5, "hex": 255, "big": i64::MAX, "odd key": [1, "a", true] },
        "samples": [{ "request": "one" }],
    });
    assert_eq!((Value::from(pipeline.keys), pipeline.position.line), (expected, 18));
}

#[test]
fn files_of_a_folder_are_one_manifest() {
    let one = "[tenants.acme]\nopen = true\n[tenants.acme.plugins.a]\nfile = 'a.wasm'";
    let other = "[tenants.acme]\nweight = 2\n[tenants.acme.plugins.b]\nfile = 'a.wasm'\n\
                 [tenants.other]\nopen = true";
    let hidden = (".hidden.toml", "nonsense");
    let files = [("b.toml", other), ("a.toml", one), hidden, ("note.txt", "nonsense")];
    let manifest = read_files(&files).unwrap();
    let tenant = &manifest.tenants[&name("acme")];
    assert_eq!(tenant.plugins.len(), 2);
    let document = tenant.document.as_ref().unwrap();
    assert_eq!(Value::from(document.keys.clone()), json!({ "open": true, "weight": 2 }));
    assert_eq!(manifest.tenants.len(), 2);
    // Only its plugins are described.
    let tenant = read_files(&[("a.toml", "[tenants.a.plugins]\n")]).unwrap().tenants.remove("a");
    assert_eq!(tenant, Some(Tenant::default()));
}

#[test]
fn a_thing_that_is_defined_twice_names_both_places() {
    let one = "[models.m]\nfile = 'm.onnx'\n[tenants.acme]\nopen = true\nplugins.a.file = 'a.wasm'\n\
               [tenants.acme.pipelines.p]\npre = 'a'";
    let other = "\n\n[models.m]\nfile = 'm.onnx'\n[tenants.acme]\nopen = true\n\
                 plugins.a.file = 'a.wasm'\n[tenants.acme.pipelines.p]\npre = 'a'";
    let faults = read_files(&[("a.toml", one), ("b.toml", other)]).unwrap_err();
    let expected = "\
the manifest is wrong:
  b.toml:3: models.m is defined a second time: first in a.toml:1
  b.toml:6: tenants.acme.open is defined a second time: first in a.toml:4
  b.toml:7: tenants.acme.plugins.a is defined a second time: first in a.toml:5
  b.toml:8: tenants.acme.pipelines.p is defined a second time: first in a.toml:6";
    assert_eq!(faults, expected);
}

#[test]
fn all_faults_are_named_at_once_with_their_lines() {
    let text = r#"
model = 1
[models."A b"]
[models.none]
[models.both]
file = "m.onnx"
digest = "x"
[models.gone]
file = "gone.onnx"
confg = {}
[models.digest]
digest = "sha256:1"
[tenants.acme]
api_keys = ["the-secret-key", { name = "B c" }, { name = "a", env = "NOT_SET" },
    { name = "b", env = "the-secret-env" }, { name = "c", key = "the-secret" },
    { name = "d" }, { name = "d" }, { name = "e", env = "EMPTY" }]
since = 2026-01-01
[tenants.acme.plugins]
a = "a.wasm"
b = { folder = "a.wasm" }
c = { file = 7 }
[tenants.acme.pipelines.p.settings]
far = [inf, { day = 2026-01-01 }]
"#;
    let faults = read_files(&[("deploy.toml", text)]).unwrap_err();
    let form = "must have name and, for a new key, env, the variable that has the key; a key \
                itself does not belong into a manifest";
    let expected = [
        "2: unknown key \"model\"; known are models, tenants",
        "3: models: \"A b\" is not a valid name",
        "4: models.none has none of file, digest",
        "5: models.both has more than one of file, digest",
        "9: models.gone.file is \"gone.onnx\": there is no file gone.onnx",
        "10: models.gone: unknown key \"confg\"; known are file, digest, config",
        "12: models.digest.digest is \"sha256:1\": must be sha256: and 64 digits 0-9, a-f",
        &format!("14: tenants.acme.api_keys[0] {form}"),
        "14: tenants.acme.api_keys[1].name is not a name",
        "14: tenants.acme.api_keys[2].env: the variable NOT_SET is not set",
        "15: tenants.acme.api_keys[3].env does not name a variable that is set",
        &format!("15: tenants.acme.api_keys[4] {form}"),
        "16: tenants.acme.api_keys[6].name is \"d\", for a second key",
        "16: tenants.acme.api_keys[7].env: the variable EMPTY is not set",
        "17: tenants.acme.since is a date, which documents do not have: write it as text",
        "19: tenants.acme.plugins.a must be a table",
        "20: tenants.acme.plugins.b.folder is \"a.wasm\": there is no folder a.wasm",
        "21: tenants.acme.plugins.c.file must be text",
        "23: tenants.acme.pipelines.p.settings.far[0] is not a finite number",
        "23: tenants.acme.pipelines.p.settings.far[1].day is a date",
    ];
    let lines: Vec<_> = faults.lines().skip(1).collect();
    assert_eq!(lines.len(), expected.len(), "{faults}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(&format!("  deploy.toml:{expected}")), "{line}\n{expected}");
    }
    assert!(!faults.contains("secret"), "{faults}");
}

#[test]
fn a_file_that_is_not_toml_and_a_file_that_is_not_there() {
    let faults = read_files(&[(
        "deploy.toml",
        "[tenants.acme\nopen = \n[models.m]\nfile = 'm.onnx'\nx = 1 1",
    )]);
    let faults = faults.unwrap_err();
    assert!(faults.contains("deploy.toml:1: ") && faults.contains("deploy.toml:5: "), "{faults}");
    let missing = read(Path::new("/none/deploy.toml"), &|_| None).unwrap_err();
    assert!(missing.to_string().contains("/none/deploy.toml: No such file"), "{missing}");
    let empty = tempfile::tempdir().unwrap();
    let error = read(empty.path(), &|_| None).unwrap_err().to_string();
    assert!(error.ends_with("has no file *.toml"), "{error}");
}

#[test]
fn the_manifest_of_the_demo_is_read() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins/demo.toml");
    let key = |name: &str| (name == "ACME_DEMO_KEY").then(|| "a-key".to_owned());
    let manifest = read(&path, &key).unwrap();
    let names: Vec<_> = manifest.tenants.keys().map(Name::as_str).collect();
    assert_eq!(names, ["acme", "demo"]);
    let plugins = manifest.tenants.values().flat_map(|tenant| tenant.plugins.values());
    assert!(plugins.into_iter().all(|plugin| matches!(plugin.source, ContentSource::Folder(_))));
}
