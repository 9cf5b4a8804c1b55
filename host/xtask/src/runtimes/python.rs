//! The component of CPython, the SDK and `sdk/python/runtime`, which componentize-py makes.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::made::Made;
use crate::setup;
use crate::shell::{program, root, run};

/// The files and folders of which it is built, without those of which all runtimes are built.
pub(super) fn parts() -> Vec<PathBuf> {
    ["runtime", "src"].map(|part| root().join("sdk/python").join(part)).into()
}

/// Make it in the folder `work`.
pub(super) fn make(work: &Path) -> Result<Made> {
    let sdk = root().join("sdk/python");
    let (component, library) = (work.join("component.wasm"), work.join("library"));
    // The library's module writes its file into its own folder.
    fs::create_dir_all(&library)?;
    fs::copy(sdk.join("runtime/library_app.py"), library.join("library_app.py"))?;
    componentize("library_app", "gristmill:plugin/processor", &[&library], &work.join("unused"))?;
    let (app, package) = (sdk.join("runtime"), sdk.join("src"));
    componentize("runtime_app", "gristmill:runtime/python", &[&app, &package], &component)?;
    Ok(Made { component, library: Some(library.join("library.tar")) })
}

fn componentize(app: &str, world: &str, paths: &[&Path], out: &Path) -> Result<()> {
    let mut build = program(setup::install_componentize_py()?);
    build.arg("-d").arg(root().join("wit")).arg("-d").arg(root().join("sdk/runtime.wit"));
    build.args(["-w", world, "componentize", app]);
    for path in paths {
        build.arg("-p").arg(path);
    }
    // Python writes compiled modules beside its sources otherwise.
    run(build.env("PYTHONDONTWRITEBYTECODE", "1").arg("-o").arg(out))
        .with_context(|| format!("componentize-py cannot build {app}"))
}
