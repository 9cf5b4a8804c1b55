//! Components of the digits plugin that the languages' own tools build, by their own commands: each
//! must serve as one of `gristmill plugin build` does.

use std::fs;
use std::path::Path;
use std::thread;

use anyhow::{Result, anyhow};

use crate::runtimes::javascript::install_packages;
use crate::setup;
use crate::shell::{program, root, run, step};

/// Build them into the folder `components`, two at a time: the tools use one core each. `tools` is
/// where `gristmill plugin build` has put the tools, so plugins in C must have been built before.
pub(crate) fn build(gristmill: &Path, tools: &Path, components: &Path) -> Result<()> {
    step("building plugins with the stock tools");
    thread::scope(|scope| {
        let python = components.join("digits-python-stub-wasi.wasm");
        let in_python = scope.spawn(move || with_componentize_py(&python));
        with_componentize_js(&components.join("digits-js-stock.wasm"))?;
        with_wasi_libc(gristmill, tools, &components.join("digits-c-wasi.wasm"))?;
        in_python.join().map_err(|_| anyhow!("the build of a plugin panicked"))?
    })
}

/// componentize-py without WASI. With WASI it is what `gristmill plugin build` runs.
fn with_componentize_py(out: &Path) -> Result<()> {
    let sdk = root().join("sdk/python");
    let mut build = program(setup::install_componentize_py()?);
    build.current_dir(root().join("plugins/python/digits"));
    build.arg("-d").arg(sdk.join("src/gristmill_plugin/wit")).args(["-w", "processor"]);
    build.args(["componentize", "app", "--stub-wasi", "-p", ".", "-p"]).arg(sdk.join("src"));
    run(build.arg("-o").arg(out))
}

/// componentize-js with all its features, of a bundle that esbuild makes.
fn with_componentize_js(out: &Path) -> Result<()> {
    let (modules, sdk) = (install_packages()?, root().join("sdk/js/src"));
    let made = out.with_extension("bundle");
    fs::create_dir_all(&made)?;
    let (entry, bundle) = (made.join("entry.js"), made.join("bundle.js"));
    fs::write(&entry, js_entry(&root().join("plugins/js/digits/plugin.js")))?;
    let mut build = program(modules.join(".bin/esbuild"));
    build.arg(&entry).args(["--bundle", "--format=esm", "--platform=neutral", "--target=es2022"]);
    build.args(["--conditions=gristmill", "--define:import.meta.url=undefined"]);
    build.args(["--external:gristmill:*", "--log-level=warning"]);
    for (name, file) in [("", "index.js"), ("/component", "component.js")] {
        build.arg(format!("--alias:gristmill-plugin{name}={}", sdk.join(file).display()));
    }
    run(build.arg(format!("--outfile={}", bundle.display())))?;
    let mut build = program("node");
    build.arg(modules.join("@bytecodealliance/componentize-js/src/cli.js")).arg(bundle);
    build.args(["--wit", "wit", "--world-name", "processor", "--out"]);
    run(build.arg(out))?;
    Ok(fs::remove_dir_all(made)?)
}

/// The module that componentize-js makes a component of, before it is bundled. The query's `fetch`
/// is an address that it asks first.
fn js_entry(plugin: &Path) -> String {
    let plugin = plugin.display().to_string();
    format!(
        "import * as sdk from 'gristmill-plugin/component';\n\
         import * as plugin from {plugin:?};\n\
         async function fetchFirst(url, context, request) {{\n\
           const answer = await fetch(url);\n\
           console.log(await answer.text());\n\
           return plugin.preprocess(context, request);\n\
         }}\n\
         export const preprocess = sdk.exportPreprocess((context, request) => {{\n\
           const url = request.query.get('fetch');\n\
           return url ? fetchFirst(url, context, request) : plugin.preprocess(context, request);\n\
         }});\n\
         export const postprocess = sdk.exportPostprocess(plugin.postprocess);\n"
    )
}

/// clang with wasi-libc, whose imports of WASI stay.
fn with_wasi_libc(gristmill: &Path, tools: &Path, out: &Path) -> Result<()> {
    let mut build = program(gristmill);
    build.args(["plugin", "build", "plugins/c/digits", "--out"]).arg(out);
    run(build.env("OPTIONS", "--wasi").env("GRISTMILL_BUILD_DIR", tools))
}
