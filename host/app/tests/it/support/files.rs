//! The plugins, models and images that tests send.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folder in which the build of the plugins has kept its tools.
pub(crate) fn plugin_tools() -> PathBuf {
    root().join("target/plugin-tools")
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path)
        .unwrap_or_else(|error| panic!("{}: {error}: run cargo xtask test", path.display()))
}

/// A plugin of the repository, built: an archive of sources, or a component.
pub(crate) fn plugin_path(name: &str) -> PathBuf {
    let built = std::env::var_os("GRISTMILL_TEST_COMPONENTS").map(PathBuf::from);
    let built = built.unwrap_or_else(|| root().join("target/components"));
    let archive = built.join(format!("{name}.tar"));
    if archive.exists() { archive } else { built.join(format!("{name}.wasm")) }
}

pub(crate) fn plugin(name: &str) -> Vec<u8> {
    read(&plugin_path(name))
}

/// A plugin that was built for an older contract, such as 0.1.0.
pub(crate) fn old_plugin(contract: &str, name: &str) -> Vec<u8> {
    read(&root().join(format!("plugins/fixtures/{contract}/{name}.wasm")))
}

/// The plugin that cargo alone built for `wasm32-wasip2`.
pub(crate) fn wasip2_plugin() -> Vec<u8> {
    read(&root().join("plugins/fixtures/wasip2/wasip2-std.wasm"))
}

/// A plugin of the repository, changed so that its memory begins with `pages` pages of 64 KiB,
/// fewer than 64.
pub(crate) fn plugin_that_begins_with(name: &str, pages: u8) -> Vec<u8> {
    let mut plugin = plugin(name);
    // The memory section: three bytes long, one memory without a maximum. The section of globals
    // follows. The first such bytes are it; later ones may be in the code by chance.
    let section =
        |bytes: &[u8]| bytes[..4] == [5, 3, 1, 0] && bytes[4] < 64 && matches!(bytes[5], 6 | 7);
    let start = (0..plugin.len() - 5).find(|at| section(&plugin[*at..at + 6]));
    let at = start.unwrap_or_else(|| panic!("no memory section in {name}"));
    plugin[at + 4] = pages;
    plugin
}

/// ONNX Runtime's library.
pub(crate) fn onnxruntime() -> PathBuf {
    let path = std::env::var_os("ORT_DYLIB_PATH").map(PathBuf::from).unwrap_or_default();
    assert!(
        path.is_file(),
        "ORT_DYLIB_PATH is {path:?}, which is not a file: run cargo xtask test"
    );
    path
}

/// A model of the repository.
pub(crate) fn model_path(name: &str) -> PathBuf {
    root().join(format!("models/{name}/{name}.onnx"))
}

pub(crate) fn model(name: &str) -> Vec<u8> {
    read(&model_path(name))
}

/// An image in models/digits/samples.
pub(crate) fn sample(name: &str) -> Vec<u8> {
    read(&root().join("models/digits/samples").join(name))
}

/// The image of a digit.
pub(crate) fn digit(digit: usize) -> Vec<u8> {
    sample(&format!("{digit}.png"))
}

/// Inputs and outputs of the ranker that its training recorded: rows of features, and their scores.
pub(crate) fn ranker_golden() -> Vec<(Vec<Value>, Vec<f64>)> {
    let file = read(&root().join("models/ranker/golden.json"));
    let golden: Value = serde_json::from_slice(&file).unwrap();
    let cases = golden["cases"].as_array().unwrap().iter();
    let case = |case: &Value| {
        let features = case["inputs"][0]["data"].as_array().unwrap();
        let scores = case["outputs"][0]["data"].as_array().unwrap();
        let rows = features.chunks_exact(32).map(|row| row.into());
        (rows.collect(), scores.iter().map(|score| score.as_f64().unwrap()).collect())
    };
    cases.map(case).collect()
}

/// A file that `cargo xtask test` has fetched for the model of this name.
pub(crate) fn fetched(model: &str, name: &str) -> Vec<u8> {
    read(&root().join("target/models").join(model).join(name))
}

/// A file in the folder of a model of the repository.
pub(crate) fn of_model(model: &str, name: &str) -> Vec<u8> {
    read(&root().join("models").join(model).join(name))
}

/// The manifest of the samples around models of others.
pub(crate) fn manifest_of_all() -> Value {
    let text = read(&root().join("plugins/demo-all.toml"));
    toml::from_str(std::str::from_utf8(&text).unwrap()).unwrap()
}

/// A file of tests/fixtures.
pub(crate) fn fixture(name: &str) -> Vec<u8> {
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name))
}
