//! The plugins of this repository, and building them with `gristmill plugin build`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, anyhow};

use super::install_languages;
use crate::shell::{program, run, step, target};

/// The folder in which `gristmill plugin build` keeps the tools of other languages, in `target`.
pub(crate) const PLUGIN_TOOLS: &str = "plugin-tools";

/// A plugin of this repository.
struct Plugin {
    folder: &'static str,
    /// The file in `target/components`: a component, or an archive of sources.
    file: &'static str,
}

/// The plugins of the demo's tenants.
const DEMO_PLUGINS: [Plugin; 3] = [
    Plugin { folder: "plugins/rust/digits", file: "digits.wasm" },
    Plugin { folder: "plugins/rust/ranker-pre", file: "ranker-pre.wasm" },
    Plugin { folder: "plugins/rust/ranker-post", file: "ranker-post.wasm" },
];

/// The plugins that only tests and benches use.
const TEST_PLUGINS: [Plugin; 15] = [
    Plugin { folder: "plugins/rust/photo", file: "photo.wasm" },
    Plugin { folder: "plugins/rust/photos", file: "photos.wasm" },
    Plugin { folder: "plugins/arrays/rust", file: "arrays.wasm" },
    Plugin { folder: "plugins/hostile", file: "hostile.wasm" },
    Plugin { folder: "plugins/hostile/wasi", file: "hostile-wasi.wasm" },
    Plugin { folder: "plugins/hostile/handler", file: "hostile-handler.wasm" },
    Plugin { folder: "plugins/hostile/services", file: "hostile-services.wasm" },
    Plugin { folder: "plugins/hostile/keyvalue", file: "hostile-keyvalue.wasm" },
    Plugin { folder: "plugins/rust/digits-pages", file: "digits-pages.wasm" },
    Plugin { folder: "plugins/rust/digits-nn", file: "digits-nn.wasm" },
    Plugin { folder: "plugins/rust/embed", file: "embed.wasm" },
    Plugin { folder: "plugins/rust/ocr", file: "ocr.wasm" },
    Plugin { folder: "plugins/bench", file: "bench-guest.wasm" },
    Plugin { folder: "plugins/bench/marked", file: "marked.wasm" },
    Plugin { folder: "plugins/bench/vocabulary", file: "vocabulary.wasm" },
];

/// The samples in other languages, which tests and benches use.
const LANGUAGE_PLUGINS: [Plugin; 11] = [
    Plugin { folder: "plugins/python/digits", file: "digits-python.tar" },
    Plugin { folder: "plugins/python/embed", file: "embed-python.tar" },
    Plugin { folder: "plugins/python/number", file: "number-python.tar" },
    Plugin { folder: "plugins/python/photo", file: "photo-python.tar" },
    Plugin { folder: "plugins/python/ranker", file: "ranker-python.tar" },
    Plugin { folder: "plugins/python/recommend", file: "recommend-python.tar" },
    Plugin { folder: "plugins/js/digits", file: "digits-js.tar" },
    Plugin { folder: "plugins/js/listen", file: "listen-js.tar" },
    Plugin { folder: "plugins/js/ranker", file: "ranker-js.tar" },
    Plugin { folder: "plugins/c/digits", file: "digits-c.wasm" },
    Plugin { folder: "plugins/c/ranker", file: "ranker-c.wasm" },
];

/// Others in these languages that only tests and benches use: those that misbehave in each.
const OTHER_LANGUAGE_PLUGINS: [Plugin; 4] = [
    Plugin { folder: "plugins/hostile/python", file: "hostile-python.wasm" },
    Plugin { folder: "plugins/hostile/js", file: "hostile-js.wasm" },
    Plugin { folder: "plugins/hostile/c", file: "hostile-c.wasm" },
    Plugin { folder: "plugins/arrays/c", file: "arrays-c.wasm" },
];

/// Build the plugins of demo, tests and benches in Rust with `gristmill plugin build`; returns
/// their folder.
pub(crate) fn build_components(gristmill: &Path) -> Result<PathBuf> {
    build_plugins(gristmill, &DEMO_PLUGINS)?;
    build_plugins(gristmill, &TEST_PLUGINS)
}

/// Build the plugins of the demo's tenants; returns their folder.
pub(crate) fn build_demo_plugins(gristmill: &Path) -> Result<PathBuf> {
    build_plugins(gristmill, &DEMO_PLUGINS)
}

/// Install missing tools and build the samples in other languages.
pub(crate) fn build_languages(gristmill: &Path) -> Result<()> {
    install_languages()?;
    build_plugins(gristmill, &LANGUAGE_PLUGINS).map(drop)
}

/// Install missing tools and build the other plugins in these languages.
pub(crate) fn build_other_languages(gristmill: &Path) -> Result<()> {
    install_languages()?;
    build_plugins(gristmill, &OTHER_LANGUAGE_PLUGINS).map(drop)
}

/// Build all plugins in other languages, the languages side by side: their
/// tools use one core each.
pub(crate) fn build_all_languages(gristmill: &Path) -> Result<PathBuf> {
    let build = |language: &str| {
        let is_in = |plugin: &&Plugin| plugin.folder.split('/').any(|part| part == language);
        let plugins = LANGUAGE_PLUGINS.iter().chain(&OTHER_LANGUAGE_PLUGINS).filter(is_in);
        build_plugins(gristmill, plugins)
    };
    std::thread::scope(|scope| {
        let building = ["python", "js", "c"].map(|language| scope.spawn(move || build(language)));
        for building in building {
            building.join().map_err(|_| anyhow!("the build of plugins panicked"))??;
        }
        Ok(target().join("components"))
    })
}

fn build_plugins<'a>(
    gristmill: &Path,
    plugins: impl IntoIterator<Item = &'a Plugin>,
) -> Result<PathBuf> {
    step("building plugins");
    let components = target().join("components");
    fs::create_dir_all(&components)?;
    for Plugin { folder, file } in plugins {
        let out = components.join(file);
        let mut build = program(gristmill);
        set_build_folders(&mut build);
        run(build.args(["plugin", "build", folder, "--out"]).arg(out))?;
    }
    Ok(components)
}

/// Set the folders of a command of `gristmill` that builds plugins of this repository.
pub(crate) fn set_build_folders(command: &mut Command) {
    // Not the folder of the server's builds: Debian's compiler may build the plugins.
    command.env("CARGO_TARGET_DIR", target().join("plugins"));
    command.env("GRISTMILL_BUILD_DIR", target().join(PLUGIN_TOOLS));
}
