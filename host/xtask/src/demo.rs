//! `cargo xtask demo`: builds the server and what `gristmill demo` needs beside it, and runs it.
//! With `--all` it also deploys the samples around models of others, which it fetches, and around a
//! store.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::{Arg, ArgAction, ArgMatches, Command};
use gristmill_client::{Addresses, ServerProcess};

use crate::build;
use crate::server::TOKEN;
use crate::setup::{self, fetch_models};
use crate::shell::{program, root, run as run_command, send, step, target};

/// The samples around models of others and around a store.
pub(crate) const MANIFEST_OF_ALL: &str = "plugins/demo-all.toml";

/// The products of the sample `recommend`.
const PRODUCTS: &str = "10000";

/// What the demo deploys, and the name of its copy beside the other files.
pub(crate) const MANIFEST: &str = "plugins/demo.toml";
const MANIFEST_COPY: &str = "demo.toml";

/// The other files of the demo. Plugins are in the folder of components.
const PLUGINS: [&str; 3] = ["digits.wasm", "ranker-pre.wasm", "ranker-post.wasm"];
const OTHER_FILES: [&str; 6] = [
    "plugins/demo-server.toml",
    "models/digits/digits.onnx",
    "models/ranker/ranker.onnx",
    "models/digits/samples/seven.png",
    "models/digits/samples/three.jpg",
    "benches/scenarios/ranker.json",
];

pub(crate) fn command() -> Command {
    Command::new("demo")
        .about(
            "Build the server and its sample plugins, start it with two tenants, show them share a \
             batch, print commands to paste; Ctrl-C stops it",
        )
        .arg(Arg::new("all").long("all").action(ArgAction::SetTrue).help(
            "Also the samples around models of others, which are fetched (80 MB), and stores",
        ))
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let is_all = matches.get_flag("all");
    if is_all {
        fetch_models()?;
    }
    let (gristmill, onnxruntime) = build::build_demo()?;
    write_files(&setup::build_demo_plugins(&gristmill)?)?;
    let mut command = program(&gristmill);
    command.arg("demo").env("ORT_DYLIB_PATH", onnxruntime);
    let mut demo = ServerProcess::spawn(&mut command)?;
    let addresses = demo.wait_until_serving()?;
    let deployed = if is_all { deploy_others(&gristmill, &addresses) } else { Ok(()) };
    if deployed.is_err() {
        send("TERM", demo.child.id());
    }
    demo.lines.iter().for_each(|line| println!("{line}"));
    // Ends with the demo.
    io::copy(&mut demo.stdout, &mut io::stdout())?;
    let ended = demo.child.wait()?;
    deployed?;
    ensure!(ended.success(), "the demo ended with {ended}");
    Ok(())
}

/// The folder with the demo's files, where the program finds them.
pub(crate) fn files() -> PathBuf {
    target().join("share/gristmill/demo")
}

/// Copy the demo's files there. `components` is the folder of plugins that are built.
pub(crate) fn write_files(components: &Path) -> Result<()> {
    let folder = files();
    fs::create_dir_all(&folder)?;
    let others = OTHER_FILES.map(|file| root().join(file));
    let files = PLUGINS.map(|plugin| components.join(plugin)).into_iter().chain(others);
    for file in files {
        let name = file.file_name().context("a file of the demo has no name")?;
        fs::copy(&file, folder.join(name)).with_context(|| file.display().to_string())?;
    }
    let manifest = fs::read_to_string(root().join(MANIFEST)).context(MANIFEST)?;
    Ok(fs::write(folder.join(MANIFEST_COPY), flat(&manifest))?)
}

/// The manifest for files that are beside it: plugins are built, and no path has a folder.
fn flat(manifest: &str) -> String {
    let line = |line: &str| {
        let name = |path: &str| path.trim_end_matches('"').rsplit('/').next().map(str::to_owned);
        let plugin = line.strip_prefix("folder = \"").and_then(name);
        let file = line.strip_prefix("file = \"").and_then(name);
        match plugin.map(|plugin| format!("{plugin}.wasm")).or(file) {
            Some(name) => format!("file = \"{name}\"\n"),
            None => format!("{line}\n"),
        }
    };
    manifest.lines().map(line).collect()
}

/// Deploy the samples around models of others and around a store, and say how to call them.
fn deploy_others(gristmill: &Path, addresses: &Addresses) -> Result<()> {
    let client = || {
        let mut command = program(gristmill);
        command.env("GRISTMILL_ADMIN_URL", &addresses.admin).env("GRISTMILL_ADMIN_TOKEN", TOKEN);
        command
    };
    step(&format!("deploying {MANIFEST_OF_ALL}"));
    let mut deploy = client();
    setup::set_build_folders(&mut deploy);
    run_command(deploy.args(["deploy", MANIFEST_OF_ALL, "--yes", "--message", "the demo"]))?;
    step("loading the features of users and products");
    let folder = target().join("models/recommend");
    let mut features = program("python3");
    features.arg("models/recommend/features.py").arg(&folder).args(["--products", PRODUCTS]);
    run_command(&mut features)?;
    for file in ["users.csv", "products.csv"] {
        let mut load = client();
        load.args(["kv", "load", "features"]).arg(folder.join(file));
        run_command(load.args(["--heading", "--tenant", "demo"]))?;
    }
    let url = &addresses.data;
    println!("Read the text of a picture, or see where it stands:");
    println!();
    println!("  curl --data-binary @models/ocr/samples/turned.png {url}/v1/demo/infer/ocr");
    println!("  curl --data-binary @models/ocr/samples/turned.png -o drawn.png \\");
    println!("    '{url}/v1/demo/infer/ocr?format=png'");
    println!();
    println!("Ask what is on a photo, of a plugin in Rust and of one in Python:");
    println!();
    println!("  curl --data-binary @target/models/photo/coffee.png {url}/v1/demo/infer/photo");
    println!("  curl -F image=@target/models/photo/chelsea.png {url}/v1/demo/infer/photo-python");
    println!();
    println!("Embed texts, also with OpenAI's client and the base URL {url}/v1/demo/infer:");
    println!();
    println!("  curl -d '{{\"texts\": [\"a cat\", \"a dog\"]}}' {url}/v1/demo/infer/embeddings");
    println!();
    println!("Order products for a user, by features from a store:");
    println!();
    println!(
        "  curl -d '{{\"userId\": 7, \"productIds\": [1, 2, 3, 4]}}' {url}/v1/demo/infer/recommend"
    );
    println!();
    println!("Find out when somebody speaks in a recording:");
    println!();
    println!("  curl --data-binary @target/models/listen/speech.wav {url}/v1/demo/infer/listen");
    println!();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_paths_of_the_manifest_are_files_of_the_demo() {
        let manifest = flat(&fs::read_to_string(root().join(MANIFEST)).unwrap());
        let paths: Vec<_> = manifest
            .lines()
            .filter_map(|line| line.strip_prefix("file = \"")?.strip_suffix('"'))
            .collect();
        assert_eq!(paths.len(), 6, "{manifest}");
        let is_copied = |path: &&str| {
            PLUGINS.contains(path) || OTHER_FILES.iter().any(|file| file.ends_with(*path))
        };
        assert!(paths.iter().all(is_copied), "{paths:?}");
        assert!(!manifest.contains("folder = "), "{manifest}");
    }
}
