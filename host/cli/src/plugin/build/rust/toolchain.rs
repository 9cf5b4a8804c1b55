//! Finding a compiler that can build for WebAssembly.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

/// The stack of a plugin that names no size. A page of it takes memory once a call writes to it.
pub(super) const STACK_BYTES: u64 = 1 << 20;

/// Where Debian's `rust-web-src` puts the standard library's sources.
const DEBIAN_SOURCES: &str = "/usr/lib/rustlib/src/rust/library/std/Cargo.toml";

const ADVICE: &str = "no compiler for WebAssembly was found. With rustup:\n\
    \x20   rustup target add wasm32-unknown-unknown\n\
    On Debian, if rustup cannot fetch the target:\n\
    \x20   apt-get install rustc-web cargo-web rust-web-src lld-22";

/// A compiler that can build guests.
pub(crate) enum Toolchain {
    /// The toolchain in use, which has the target.
    Rustup,
    /// Debian's toolchain. It compiles the standard library together with the plugin.
    Debian { linker: PathBuf },
}

impl Toolchain {
    /// The toolchain in use if it has the target, otherwise Debian's.
    pub(crate) fn find() -> Result<Self> {
        if rustup_has_target() {
            return Ok(Self::Rustup);
        }
        let programs = ["/usr/bin/rustc", "/usr/bin/cargo", DEBIAN_SOURCES];
        match find_linker() {
            Some(linker) if programs.iter().all(|path| Path::new(path).exists()) => {
                Ok(Self::Debian { linker })
            }
            _ => bail!(ADVICE),
        }
    }

    /// `cargo rustc` for the guest target, with SIMD, with a stack of `stack_bytes`, and if
    /// `has_random`, with the SDK's random numbers for the crate `getrandom`.
    pub(crate) fn cargo_rustc(&self, stack_bytes: u64, has_random: bool) -> Command {
        let mut command = match self {
            Self::Rustup => Command::new("cargo"),
            Self::Debian { linker } => {
                let mut command = Command::new("/usr/bin/cargo");
                command
                    .env("RUSTC", "/usr/bin/rustc")
                    .env("RUSTC_BOOTSTRAP", "1")
                    .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
                command
            }
        };
        // A cargo that runs this process has set these for its own compiler.
        for variable in ["CARGO", "RUSTUP_TOOLCHAIN", "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"] {
            command.env_remove(variable);
        }
        let mut flags = format!("-Ctarget-feature=+simd128 -Clink-arg=-zstack-size={stack_bytes}");
        if has_random {
            flags += " --cfg gristmill_random --cfg getrandom_backend=\"custom\"";
        }
        command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", flags).args([
            "rustc",
            "--lib",
            "--release",
            "--target",
            TARGET,
        ]);
        if matches!(self, Self::Debian { .. }) {
            command.arg("-Zbuild-std=std,panic_abort");
        }
        command
    }
}

fn rustup_has_target() -> bool {
    let asked =
        Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output();
    asked.is_ok_and(|output| {
        output.status.success()
            && Path::new(String::from_utf8_lossy(&output.stdout).trim()).exists()
    })
}

/// LLVM's linker for WebAssembly, the newest version first.
fn find_linker() -> Option<PathBuf> {
    let names = (14..40).rev().map(|version| format!("wasm-ld-{version}"));
    let names: Vec<_> = names.chain(["wasm-ld".to_owned()]).collect();
    let path = std::env::var_os("PATH")?;
    let directories: Vec<_> = std::env::split_paths(&path).collect();
    names
        .iter()
        .flat_map(|name| directories.iter().map(move |directory| directory.join(name)))
        .find(|candidate| candidate.exists())
}
