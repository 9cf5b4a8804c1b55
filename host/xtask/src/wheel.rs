//! `cargo xtask wheel`: packs the server with the runtimes of languages and the demo's files, as a
//! wheel and as a tarball. `host/xtask/wheel.py` writes them.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::BufRead;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use gristmill_client::http::Request;
use gristmill_client::{Addresses, Client, ServerProcess, block_on};
use serde_json::Value;

use crate::build::Built;
use crate::setup::{self, ONNXRUNTIME_VERSION};
use crate::shell::{cargo, output, program, run as run_command, send, step, target};
use crate::{demo, dist, runtimes};

/// The versions 3.x of Python that there is an ONNX Runtime for.
const ONNXRUNTIME_PYTHONS: RangeInclusive<u32> = 11..=14;

/// What a server without ONNX Runtime says once, and not again for each model.
const ON_TRACT: &str = "several times slower";

pub(crate) fn command() -> Command {
    Command::new("wheel")
        .about(
            "Pack the server, the runtimes of languages and the demo's files as a wheel and as a \
             tarball, into target/wheels. The server is that of `cargo xtask dist`, which is built \
             if it is not there",
        )
        .arg(
            Arg::new("release")
                .long("release")
                .action(ArgAction::SetTrue)
                .help("Build and pack the server with --release, in half of the time"),
        )
        .arg(
            Arg::new("from")
                .long("from")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .conflicts_with("release")
                .help("Pack this binary of the server"),
        )
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    setup::install_wasm_toolchain()?;
    let gristmill = match matches.get_one::<PathBuf>("from") {
        Some(binary) => std::path::absolute(binary)?,
        None if matches.get_flag("release") => {
            step("building the server with --release (about 15 minutes on 2 cores)");
            run_command(cargo().args(["build", "--release", "--workspace", "--bin", "gristmill"]))?;
            target().join("release/gristmill")
        }
        None => {
            if !dist::built().exists() {
                dist::run()?;
            }
            dist::built()
        }
    };
    // A binary that is packed may be of another machine: that of the tests builds what goes beside.
    let builder = setup::build_server()?;
    runtimes::build()?;
    demo::write_files(&setup::build_demo_plugins(&builder)?)?;
    pack(&gristmill, &target().join("wheels"), false)
}

/// Write the packages of a binary into the folder `out`. Quickly for tests: the wheel alone.
fn pack(gristmill: &Path, out: &Path, quickly: bool) -> Result<()> {
    step(&format!("packing {}", gristmill.display()));
    let mut pack = program("python3");
    pack.args(["host/xtask/wheel.py", "--version", env!("CARGO_PKG_VERSION")]);
    pack.arg("--binary").arg(gristmill).arg("--out").arg(out);
    for folder in [demo::files(), target().join("runtimes")] {
        pack.arg("--share").arg(folder);
    }
    if quickly {
        pack.arg("--quick");
    }
    run_command(&mut pack)
}

/// Pack a wheel for tests into the folder, which is emptied first. Returns its path.
fn quick_wheel(gristmill: &Path, folder: &Path) -> Result<PathBuf> {
    let _ = fs::remove_dir_all(folder);
    pack(gristmill, folder, true)?;
    let mut files = fs::read_dir(folder)?;
    Ok(files.next().context("no wheel was written")??.path())
}

/// Install a wheel of the tests' server into an empty environment of Python, and call its demo:
/// without ONNX Runtime, then with it, in an environment of another version of Python if this
/// machine has one. Returns how many of the two answered as they must.
pub(crate) fn check(built: &Built) -> Result<u64> {
    let folder = target().join("wheel-check");
    demo::write_files(&built.components)?;
    let wheel = quick_wheel(&built.gristmill, &folder)?;
    let mut environment = Environment::make("python3".as_ref(), folder.join("environment"))?;
    environment.install(wheel.as_os_str())?;
    let shown = environment.call_demo("tract")?;
    ensure!(shown.matches(ON_TRACT).count() == 1, "tract is not told once:\n{shown}");
    match other_python() {
        Some(python) => {
            println!("the wheel is in an environment of {}, too", python.display());
            environment = Environment::make(&python, folder.join("other"))?;
            environment.install(wheel.as_os_str())?;
        }
        None => println!("not run: the wheel with a second version of Python, which is not here"),
    }
    environment.install(format!("onnxruntime=={ONNXRUNTIME_VERSION}").as_ref())?;
    let shown = environment.call_demo("cpu")?;
    ensure!(!shown.contains(ON_TRACT), "ONNX Runtime is not missing:\n{shown}");
    fs::remove_dir_all(folder)?;
    Ok(2)
}

/// The newest Python that has another version than `python3`: on the path, or of pyenv.
fn other_python() -> Option<PathBuf> {
    let pyenv = env::var_os("PYENV_ROOT").map(PathBuf::from);
    let pyenv = pyenv.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".pyenv")));
    let of_pyenv = pyenv.and_then(|folder| fs::read_dir(folder.join("versions")).ok());
    let of_pyenv = of_pyenv.into_iter().flatten().flatten();
    let of_pyenv = of_pyenv.map(|version| version.path().join("bin/python3"));
    let on_path = ONNXRUNTIME_PYTHONS.map(|minor| PathBuf::from(format!("python3.{minor}")));
    let own_version = minor_version("python3".as_ref());
    let others = on_path.chain(of_pyenv).filter_map(|python| {
        let version = minor_version(&python)?;
        let fits = ONNXRUNTIME_PYTHONS.contains(&version) && Some(version) != own_version;
        fits.then_some((version, python))
    });
    others.max().map(|(_, python)| python)
}

/// The 13 of Python 3.13, if it is there and can make environments.
fn minor_version(python: &Path) -> Option<u32> {
    let print = "import ensurepip, sys, venv; print(sys.version_info.minor)";
    output(program(python).args(["-c", print])).ok()?.trim().parse().ok()
}

/// An environment of Python.
struct Environment(PathBuf);

impl Environment {
    fn make(python: &Path, folder: PathBuf) -> Result<Self> {
        run_command(program(python).args(["-m", "venv", "--without-pip"]).arg(&folder))?;
        Ok(Self(folder))
    }

    /// Install a package, without those that it depends on.
    fn install(&self, package: &OsStr) -> Result<()> {
        let mut pip = program("python3");
        pip.args(["-m", "pip", "--python"]).arg(self.0.join("bin/python"));
        pip.args([
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--no-compile",
        ]);
        run_command(pip.arg(package))
    }

    /// Run `gristmill demo`, read a digit, and end it. Returns its lines on standard error.
    fn call_demo(&self, provider: &str) -> Result<String> {
        let bin = self.0.join("bin");
        let path = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths([bin.clone()].into_iter().chain(env::split_paths(&path)))?;
        let errors = self.0.join("demo.errors");
        let mut command = program(bin.join("gristmill"));
        command.arg("demo").env("PATH", path);
        // They may name an ONNX Runtime outside of the environment.
        command.env_remove("ORT_DYLIB_PATH").env_remove("PYTHONPATH");
        // There is no ONNX Runtime of a build in this folder or above.
        command.current_dir("/").stderr(File::create(&errors)?);
        let shown = || fs::read_to_string(&errors).unwrap_or_default();
        let mut demo = ServerProcess::spawn(&mut command)?;
        let addresses = demo.wait_until_serving().with_context(shown)?;
        let answered = read_seven(&addresses, &self.0, provider);
        let export = format!("  export GRISTMILL_ADMIN_URL={} ", addresses.admin);
        let lines = (&mut demo.stdout).lines().map_while(Result::ok);
        let mut lines = lines.take_while(|line| !line.contains("Ctrl-C stops"));
        let says_export = lines.any(|line| line.starts_with(&export));
        send("TERM", demo.child.id());
        let ended = demo.child.wait()?;
        answered.with_context(shown)?;
        ensure!(says_export, "the demo does not say how other commands find it: {export:?}");
        ensure!(ended.success(), "the demo ended with {ended}:\n{}", shown());
        Ok(shown())
    }
}

/// Send the demo's picture of a seven.
fn read_seven(addresses: &Addresses, environment: &Path, provider: &str) -> Result<()> {
    let picture = fs::read(environment.join("share/gristmill/demo/seven.png"))?;
    let request = Request::post("/v1/demo/infer").body(Bytes::from(picture))?;
    let client = Client::new(addresses.data.parse()?);
    let answer = block_on(client.send(request))?.ok()?;
    let reading: Value = serde_json::from_slice(&answer.body)?;
    ensure!(reading["label"] == 7, "the picture of a seven is read as {reading}");
    let ran_on = answer.header("gristmill-provider");
    ensure!(ran_on == provider, "the model ran on {ran_on}, and not on {provider}");
    // What the demo opens in a browser.
    let page = block_on(client.send(Request::get("/v1/demo/try").body(Bytes::new())?))?.ok()?;
    let media_type = page.header("content-type");
    ensure!(media_type.starts_with("text/html"), "the page to try it is {media_type:?}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::root;

    #[test]
    fn the_same_program_makes_the_same_wheel() {
        let program = env::current_exe().unwrap();
        let folders = ["tmp/wheel-one", "tmp/wheel-other"].map(|name| target().join(name));
        let wheels = folders.each_ref().map(|folder| quick_wheel(&program, folder).unwrap());
        let [one, other] = wheels.each_ref().map(|wheel| fs::read(wheel).unwrap());
        assert!(one == other, "{wheels:?} differ");
        let name = wheels[0].file_name().unwrap().to_string_lossy();
        assert!(name.contains("-py3-none-manylinux_2_") && name.ends_with(".whl"), "{name}");
        folders.iter().for_each(|folder| fs::remove_dir_all(folder).unwrap());
    }

    #[test]
    fn a_file_that_is_not_a_program_is_refused() {
        let folder = target().join("tmp/wheel-none");
        assert!(quick_wheel(&root().join("LICENSE"), &folder).is_err());
    }
}
