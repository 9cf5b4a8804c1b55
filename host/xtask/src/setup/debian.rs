//! Debian's packages. Those of services that tests run are unpacked and not installed: installing
//! would start the service.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::shell::{output, program, run, step, succeeds, target};

/// A Debian package, with a command that succeeds if the package's part that is needed is there.
pub(super) struct Package {
    pub(super) name: &'static str,
    pub(super) probe: &'static [&'static str],
}

/// Redis, and the libraries that it needs and a small Debian does not have.
const REDIS_PACKAGES: [&str; 4] = ["redis-tools", "libatomic1", "libjemalloc2", "liblzf1"];

const CHROMIUM: Package = Package { name: "chromium", probe: &["test", "-x", "/usr/bin/chromium"] };

/// The folder with Debian's Prometheus and its promtool, which are unpacked and not installed:
/// installing would start a service.
pub(crate) fn install_prometheus() -> Result<PathBuf> {
    let directory = target().join("prometheus");
    let programs = directory.join("usr/bin");
    if programs.join("promtool").exists() {
        return Ok(programs);
    }
    step("fetching Debian's Prometheus");
    unpack_packages(&["prometheus"], &directory)?;
    Ok(programs)
}

/// A script that runs Debian's Redis with the libraries it needs. They are unpacked and not
/// installed: installing would start a service.
pub(crate) fn install_redis() -> Result<PathBuf> {
    let directory = target().join("redis");
    let script = directory.join("redis-server");
    if script.exists() {
        return Ok(script);
    }
    step("fetching Debian's Redis");
    unpack_packages(&REDIS_PACKAGES, &directory)?;
    // The program does what its name says: Debian's own name for the server is a link, too.
    let server = directory.join("usr/bin/redis-server");
    if !server.exists() {
        symlink("redis-check-rdb", &server)?;
    }
    let text = "\
#!/bin/sh
usr=$(dirname \"$0\")/usr
LD_LIBRARY_PATH=$usr/lib/x86_64-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec \"$usr/bin/redis-server\" \"$@\"
";
    // As perf_analyzer's script: one of that name is complete and has run.
    let unfinished = directory.join("unfinished");
    fs::write(&unfinished, text)?;
    fs::set_permissions(&unfinished, Permissions::from_mode(0o755))?;
    run(program(&unfinished).arg("--version"))?;
    fs::rename(unfinished, &script)?;
    Ok(script)
}

/// Debian's registry of OCI artifacts, which is unpacked and not installed: installing would start
/// a service.
pub(crate) fn install_registry() -> Result<PathBuf> {
    file_of("docker-registry", "registry", "usr/bin/docker-registry")
}

/// Podman's default profile of seccomp, which is Docker's.
pub(crate) fn install_seccomp_profile() -> Result<PathBuf> {
    let file = "usr/share/containers/seccomp.json";
    file_of("golang-github-containers-common", "seccomp", file)
}

/// A file of a Debian package, which is unpacked into this folder of `target`.
fn file_of(package: &str, folder: &str, file: &str) -> Result<PathBuf> {
    let directory = target().join(folder);
    let file = directory.join(file);
    if !file.exists() {
        step(&format!("fetching Debian's {package}"));
        unpack_packages(&[package], &directory)?;
    }
    Ok(file)
}

/// Unpack Debian packages into `directory`, without installing them.
fn unpack_packages(packages: &[&str], directory: &Path) -> Result<()> {
    fs::create_dir_all(directory)?;
    let mut fetch = program("apt-get");
    fetch.args(["download", "-qq"]).args(packages).current_dir(directory);
    if !succeeds(&mut fetch) {
        run(program("apt-get").args(["update", "-qq"]))?;
        run(&mut fetch)?;
    }
    for entry in fs::read_dir(directory)? {
        let file = entry?.path();
        if file.extension().is_some_and(|extension| extension == "deb") {
            run(program("dpkg").arg("--extract").arg(&file).arg(directory))?;
            fs::remove_file(file)?;
        }
    }
    Ok(())
}

/// Debian's Chromium, in which the console is tested. Returns its path.
pub(crate) fn install_chromium() -> Result<PathBuf> {
    install_missing(&[CHROMIUM])?;
    Ok(PathBuf::from("/usr/bin/chromium"))
}

/// Install those of these packages that are missing.
pub(super) fn install_missing(packages: &[Package]) -> Result<()> {
    let is_missing = |package: &&Package| {
        let (command, arguments) = package.probe.split_first().unwrap_or((&"false", &[]));
        !succeeds(program(command).args(arguments))
    };
    let missing: Vec<_> = packages.iter().filter(is_missing).collect();
    if missing.is_empty() {
        return Ok(());
    }
    install_packages(&missing.iter().map(|package| package.name).collect::<Vec<_>>())
}

/// Install Debian packages.
///
/// # Errors
/// This user may not install packages, or apt-get fails. The message has the command to run.
pub(crate) fn install_packages(packages: &[&str]) -> Result<()> {
    let list = packages.join(" ");
    step(&format!("installing {list}"));
    let is_root = output(program("id").arg("-u")).is_ok_and(|user| user.trim() == "0");
    if !is_root {
        bail!("please install these packages and try again: apt-get install {list}");
    }
    run(program("apt-get").args(["update", "-qq"]))?;
    let install = ["install", "-y", "-qq", "--no-install-recommends"];
    run(program("apt-get").args(install).args(packages))
        .with_context(|| format!("please install these packages and try again: {list}"))
}
