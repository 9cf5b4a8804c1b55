use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

/// A repository with these files.
fn repository(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    folder
}

/// The only model of a repository.
fn read(files: &[(&str, &str)]) -> Result<Model, Faults> {
    let folder = repository(files);
    let mut models = Repository::read(folder.path(), &[]).unwrap().models;
    assert_eq!(models.len(), 1);
    models.remove(0).model
}

#[track_caller]
fn refused(files: &[(&str, &str)], named: &[&str]) {
    let Faults(faults) = read(files).unwrap_err();
    for name in named {
        assert!(faults.iter().any(|fault| fault.contains(name)), "{name}: {faults:?}");
    }
}

/// A model with this configuration.
fn config(text: &str) -> [(&str, &str); 2] {
    [("m/config.pbtxt", text), ("m/1/model.onnx", "a")]
}

fn numbers(model: &Model) -> Vec<u64> {
    model.versions.iter().map(|version| version.number).collect()
}

#[test]
fn models_are_found_with_the_versions_that_are_served() {
    let folder = repository(&[
        ("README.md", ""),
        (".git/1/model.onnx", ""),
        ("docs/page.md", ""),
        ("plain/1/model.onnx", "a"),
        ("plain/2/model.onnx", "b"),
        ("plain/02/model.onnx", "b"),
        ("plain/new/model.onnx", "b"),
        ("cnn/config.pbtxt", "name: \"net\"\nversion_policy { all {} }\nmax_batch_size: 4"),
        ("cnn/1/model.onnx", "a"),
        ("cnn/10/model.onnx/model.onnx", "b"),
        ("ens/config.pbtxt", "platform: \"ensemble\""),
    ]);
    let Repository { models, skipped } = Repository::read(folder.path(), &[]).unwrap();
    let why_not = "it has neither a config.pbtxt nor a folder of a version";
    assert_eq!(skipped, [format!("docs: {why_not}")]);
    let names: Vec<_> = models.iter().map(|found| &*found.name).collect();
    assert_eq!(names, ["cnn", "ens", "plain"]);
    let cnn = models[0].model.as_ref().unwrap();
    assert_eq!(numbers(cnn), [1, 10]);
    let expected = json!({
        "max_batch_size": 4, "version_policy": { "specific": { "versions": [1, 10] } },
    });
    assert_eq!(cnn.document.clone().map(Value::from), Some(expected));
    assert!(
        cnn.ignored[0].ends_with(
            "cnn/config.pbtxt:1: name is \"net\": the model gets the name of its folder"
        )
    );
    let Faults(faults) = models[1].model.as_ref().unwrap_err();
    assert!(faults[0].contains("ens/config.pbtxt:1: platform is \"ensemble\""), "{faults:?}");
    let plain = models[2].model.as_ref().unwrap();
    assert_eq!((numbers(plain), plain.document.clone()), (vec![2], None));

    let wanted = |name: &str| {
        let read = Repository::read(folder.path(), &[Name::of_model(name).unwrap()]);
        read.map(|read| read.models)
    };
    assert_eq!(wanted("plain").unwrap().len(), 1);
    assert!(wanted("docs").unwrap()[0].model.is_err());
    let missing = wanted("none").unwrap_err().to_string();
    assert!(missing.contains("has no none: it has cnn, docs, ens, plain"), "{missing}");
    let inner = Repository::read(&folder.path().join("cnn"), &[]).unwrap_err().to_string();
    assert!(inner.contains("give the folder around it"), "{inner}");
}

#[test]
fn labels_and_other_names_of_files_are_read() {
    let config = "default_model_filename: \"net.onnx\"\n\
                  output { name: \"y\" label_filename: \"./labels.txt\" }";
    let model = read(&[
        ("m/config.pbtxt", config),
        ("m/labels.txt", "cat \r\ndog\n"),
        ("m/3/net.onnx", "a"),
    ]);
    let model = model.unwrap();
    assert!(model.versions[0].path.ends_with("m/3/net.onnx"));
    let output = json!([{ "name": "y", "labels": ["cat", "dog"] }]);
    assert_eq!(model.document.unwrap()["output"], output);
}

#[test]
fn what_is_wrong_with_a_model_is_named() {
    refused(&config("max_batch_size: 70000"), &["m/config.pbtxt:1: max_batch_size is 70000: must"]);
    refused(
        &config("max_batch_size: 4\ndynamic_batching { preferred_batch_size: 8 }"),
        &["m/config.pbtxt:2: preferred_batch_sizes is 8: must be 1 to 4"],
    );
    refused(&config("x: \""), &["m/config.pbtxt:1: the text has no", "protobuf's text format"]);
    refused(
        &config("version_policy { specific { versions: 7 } }"),
        &["m/config.pbtxt:1: version_policy names none of the versions", "has 1"],
    );
    for path in ["../other.txt", "/etc/passwd"] {
        let text = format!("output {{ name: \"y\" label_filename: {path:?} }}");
        refused(&config(&text), &["m/config.pbtxt:1: ", path, "name a file in this folder"]);
    }
    refused(
        &config("output { name: \"y\" label_filename: \"none.txt\" }"),
        &["label_filename is \"none.txt\", which is not in"],
    );
    refused(&[("m/config.pbtxt", "")], &["has no version: put the model at", "m/1/model.onnx"]);
    refused(&[("m/1/model.plan", "")], &["model.plan, a TensorRT plan, cannot be imported"]);
    refused(&[("m/1/net.onnx", "")], &["m/1/model.onnx is missing", "default_model_filename"]);
    refused(&[("m m/1/model.onnx", "")], &["\"m m\" is not a valid name of a model"]);
    let number = "4611686018427387904";
    let folder = format!("m/{number}/model.onnx");
    refused(&[(&*folder, "")], &[number, "the number of a version is at most 4611686018427387903"]);
    let large = "#".repeat(CONFIG_BYTES_MAX as usize + 1);
    refused(&config(&large), &["m/config.pbtxt has more than 1048576 bytes"]);
}

#[test]
fn links_are_not_followed() {
    for link in ["m", "m/1", "m/1/model.onnx", "m/config.pbtxt"] {
        let folder =
            repository(&[("m/1/model.onnx", "a"), ("m/config.pbtxt", ""), ("m/2/model.onnx", "a")]);
        let policy = "version_policy { all {} }";
        fs::write(folder.path().join("m/config.pbtxt"), policy).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join(link), elsewhere.path().join("target"));
        fs::rename(&from, &to).unwrap();
        symlink(&to, &from).unwrap();
        let wanted = [Name::of_model("m").unwrap()];
        let models = Repository::read(folder.path(), &wanted).unwrap().models;
        let Faults(faults) = models[0].model.as_ref().unwrap_err();
        assert!(faults[0].contains("is a link: copy the repository with cp -rL"), "{faults:?}");
    }
}

#[test]
fn what_is_no_model_keeps_nothing_from_being_imported() {
    let folder =
        repository(&[("m/1/model.onnx", "a"), ("our notes/page.md", ""), ("README.md", "")]);
    for (link, target) in [("latest", "README.md"), ("twin", "m"), ("lost", "nowhere")] {
        symlink(folder.path().join(target), folder.path().join(link)).unwrap();
    }
    let Repository { models, skipped } = Repository::read(folder.path(), &[]).unwrap();
    assert!(models.len() == 1 && models[0].model.is_ok(), "{models:?}");
    let starts = ["latest: it is a link", "lost: it is a link", "our notes: it has", "twin: it is"];
    assert_eq!(skipped.len(), starts.len(), "{skipped:?}");
    for (skipped, start) in skipped.iter().zip(starts) {
        assert!(skipped.starts_with(start), "{skipped}");
    }
}

#[test]
fn versions_above_those_of_a_server_are_left_out() {
    let files = [
        ("m/3/model.onnx", "a"),
        ("m/4611686018427387903/model.onnx", "b"),
        ("m/4611686018427387904/model.onnx", "c"),
        ("m/99999999999999999999999/model.onnx", "d"),
    ];
    let model = read(&files).unwrap();
    assert_eq!(numbers(&model), [4_611_686_018_427_387_903]);
    assert_eq!(model.ignored.len(), 1, "{:?}", model.ignored);
    assert!(model.ignored[0].contains("m/4611686018427387904 and 1 more: the number of a version"));
    let config = ("m/config.pbtxt", "version_policy { all {} }");
    let model = read(&[&files[..], &[config]].concat()).unwrap();
    assert_eq!((numbers(&model).len(), model.ignored.len()), (2, 1));
}

/// Each of them takes memory, even without a text.
#[test]
fn there_are_not_too_many_labels() {
    let outputs = |count: usize| {
        let output =
            |at: usize| format!("output {{ name: \"y{at}\" label_filename: \"l.txt\" }}\n");
        (0..count).map(output).collect::<String>()
    };
    let read = |count: usize, lines: usize| {
        let (config, labels) = (outputs(count), "\n".repeat(lines));
        let files = [("m/config.pbtxt", &*config), ("m/l.txt", &*labels), ("m/1/model.onnx", "a")];
        read(&files).map_err(|Faults(faults)| faults)
    };
    assert!(read(2, LABELS_MAX).is_ok());
    let faults = read(1, LABELS_MAX + 1).unwrap_err();
    assert!(faults[0].contains("m/l.txt has more than 65536 labels"), "{faults:?}");
    let faults = read(16, LABELS_MAX).unwrap_err();
    assert!(faults[0].contains("m/config.pbtxt:16: the labels of all outputs"), "{faults:?}");
}
