//! Installing the tools that the tasks need beside rustup's Rust and Python 3.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::shell::{cargo, output, program, root, run, step, succeeds, target};

const ONNXRUNTIME_VERSION: &str = "1.31.1";
/// The newest whose binary Debian 12's C library runs, and the CUDA runtime that it is linked to.
const PERF_ANALYZER_VERSION: &str = "2.50.0";
const CUDA_RUNTIME_VERSION: &str = "12.9.79";
const WASM_TARGET: &str = "wasm32-unknown-unknown";
const DEBIAN_WASM_PACKAGES: [&str; 4] = ["rustc-web", "cargo-web", "rust-web-src", "lld-22"];

/// The plugins that the demo deploys: folder and component.
const DEMO_PLUGINS: [(&str, &str); 3] = [
    ("plugins/rust/digits", "digits"),
    ("plugins/rust/ranker-pre", "ranker-pre"),
    ("plugins/rust/ranker-post", "ranker-post"),
];

/// The plugins that only tests and benches use.
const TEST_PLUGINS: [(&str, &str); 2] =
    [("plugins/hostile", "hostile"), ("plugins/bench", "bench-guest")];

/// Everything built in the profile that demo and test share.
pub(crate) struct Built {
    pub(crate) gristmill: PathBuf,
    pub(crate) components: PathBuf,
    pub(crate) onnxruntime: PathBuf,
}

/// Install missing tools and build everything, tests included, so that demo and test share one set
/// of compiled dependencies.
pub(crate) fn build_all() -> Result<Built> {
    install_wasm_toolchain()?;
    let onnxruntime = install_onnxruntime()?;
    step("building (the first time takes about 20 minutes on 2 cores)");
    run(cargo().args(["build", "--workspace", "--all-targets"]))?;
    let gristmill = target().join("debug/gristmill");
    let components = build_components(&gristmill)?;
    Ok(Built { gristmill, components, onnxruntime })
}

/// Install missing tools and build the server and its plugins for the demo, without tests and
/// benches.
pub(crate) fn build_demo() -> Result<Built> {
    install_wasm_toolchain()?;
    let onnxruntime = install_onnxruntime()?;
    let gristmill = build_server()?;
    let components = build_plugins(&gristmill, &DEMO_PLUGINS)?;
    Ok(Built { gristmill, components, onnxruntime })
}

/// Build the server alone. The example gives its dependencies the features that tests have: see its
/// file.
pub(crate) fn build_server() -> Result<PathBuf> {
    step("building the server (the first time takes about 15 minutes on 2 cores)");
    run(cargo().args(["build", "--workspace", "--bin", "gristmill", "--example", "features"]))?;
    Ok(target().join("debug/gristmill"))
}

/// Build every plugin of the repository with `gristmill plugin build`; returns their folder.
pub(crate) fn build_components(gristmill: &Path) -> Result<PathBuf> {
    build_plugins(gristmill, &DEMO_PLUGINS)?;
    build_plugins(gristmill, &TEST_PLUGINS)
}

fn build_plugins(gristmill: &Path, plugins: &[(&str, &str)]) -> Result<PathBuf> {
    step("building plugins");
    let components = target().join("components");
    fs::create_dir_all(&components)?;
    for (folder, name) in plugins {
        let out = components.join(format!("{name}.wasm"));
        let mut build = program(gristmill);
        build.args(["plugin", "build", folder, "--out"]).arg(out);
        // Plugins share a folder of their own: another compiler may build them.
        run(build.env("CARGO_TARGET_DIR", target().join("plugins")))?;
    }
    Ok(components)
}

/// Install a compiler for WebAssembly: rustup's target, otherwise Debian's packages.
pub(crate) fn install_wasm_toolchain() -> Result<()> {
    let libraries =
        output(program("rustc").args(["--print", "target-libdir", "--target", WASM_TARGET]));
    if libraries.is_ok_and(|path| Path::new(path.trim()).exists()) || debian_toolchain_is_there() {
        return Ok(());
    }
    step("installing the WebAssembly target");
    if succeeds(program("rustup").args(["target", "add", WASM_TARGET])) {
        return Ok(());
    }
    install_packages(&DEBIAN_WASM_PACKAGES).context(
        "rustup could not fetch the WebAssembly target, and Debian's toolchain could not be installed either",
    )
}

fn debian_toolchain_is_there() -> bool {
    let files =
        ["/usr/bin/rustc", "/usr/bin/cargo", "/usr/lib/rustlib/src/rust/library/std/Cargo.toml"];
    files.iter().all(|file| Path::new(file).exists())
        && succeeds(program("wasm-ld-22").arg("--version"))
}

/// Install Debian packages if permitted; otherwise say how.
pub(crate) fn install_packages(packages: &[&str]) -> Result<()> {
    let list = packages.join(" ");
    step(&format!("installing {list}"));
    let mut apt = program("apt-get");
    let may = succeeds(program("id").arg("-u")) && output(program("id").arg("-u"))?.trim() == "0";
    if !may {
        bail!("please install these packages and try again: apt-get install {list}");
    }
    run(program("apt-get").args(["update", "-qq"]))?;
    run(apt.args(["install", "-y", "-qq", "--no-install-recommends"]).args(packages))
        .with_context(|| format!("please install these packages and try again: {list}"))
}

/// ONNX Runtime's library in `target/onnxruntime`, taken from the wheel that pip downloads.
pub(crate) fn install_onnxruntime() -> Result<PathBuf> {
    let directory = target().join("onnxruntime");
    let library = directory.join(format!("libonnxruntime.so.{ONNXRUNTIME_VERSION}"));
    if library.exists() {
        return Ok(library);
    }
    step(&format!("installing ONNX Runtime {ONNXRUNTIME_VERSION}"));
    let wheel = directory.join("wheel");
    run(program("python3")
        .args(["-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target"])
        .arg(&wheel)
        .arg(format!("onnxruntime=={ONNXRUNTIME_VERSION}")))?;
    let found = fs::read_dir(wheel.join("onnxruntime/capi"))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.to_string_lossy().contains("libonnxruntime.so."))
        .context("the wheel holds no libonnxruntime.so: is this Linux?")?;
    fs::rename(found, &library)?;
    fs::remove_dir_all(wheel)?;
    Ok(library)
}

/// NVIDIA's perf_analyzer in `target/perf_analyzer`, taken from the wheel that pip downloads: the
/// path of a script that runs it with the libraries it needs.
pub(crate) fn install_perf_analyzer() -> Result<PathBuf> {
    let directory = target().join("perf_analyzer");
    let script = directory.join(format!("perf_analyzer-{PERF_ANALYZER_VERSION}"));
    if script.exists() {
        return Ok(script);
    }
    step(&format!("installing perf_analyzer {PERF_ANALYZER_VERSION}"));
    let wheels = directory.join("wheels");
    let install = |platform: &str, package: &str, version: &str| {
        run(program("python3")
            .args(["-m", "pip", "install", "--quiet", "--no-deps", "--upgrade"])
            .args(["--only-binary=:all:", "--platform", platform, "--target"])
            .arg(&wheels)
            .arg(format!("{package}=={version}")))
    };
    install("manylinux1_x86_64", "tritonclient", PERF_ANALYZER_VERSION)?;
    install("manylinux2014_x86_64", "nvidia-cuda-runtime-cu12", CUDA_RUNTIME_VERSION)?;
    let text = "\
#!/bin/sh
wheels=$(dirname \"$0\")/wheels
LD_LIBRARY_PATH=$wheels/nvidia/cuda_runtime/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec \"$wheels/bin/perf_analyzer\" \"$@\"
";
    // Written last, and made executable before it gets its name: a script that exists works.
    let unfinished = directory.join("unfinished");
    fs::write(&unfinished, text)?;
    fs::set_permissions(&unfinished, Permissions::from_mode(0o755))?;
    if !succeeds(program(&unfinished).arg("--version")) {
        install_packages(&["libb64-0d"])?;
        run(program(&unfinished).arg("--version"))
            .context("perf_analyzer needs Linux on x86-64")?;
    }
    fs::rename(unfinished, &script)?;
    Ok(script)
}

/// A Python with the Open Inference Protocol's clients.
pub(crate) fn install_clients() -> Result<PathBuf> {
    python_environment("clients-python", "host/app/tests/clients/requirements.txt")
}

/// A Python environment with `requirements`, made once.
pub(crate) fn python_environment(name: &str, requirements: &str) -> Result<PathBuf> {
    let directory = target().join(name);
    let python = directory.join("bin/python");
    let stamp = directory.join("requirements.installed");
    let wanted = fs::read_to_string(root().join(requirements))?;
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    step(&format!("installing {requirements}"));
    run(program("python3").args(["-m", "venv"]).arg(&directory))?;
    run(program(&python).args(["-m", "pip", "install", "--quiet", "-r", requirements]))?;
    fs::write(stamp, wanted)?;
    Ok(python)
}
