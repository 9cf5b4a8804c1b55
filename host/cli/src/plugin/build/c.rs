//! Plugins in C: clang and wasi-libc, by the SDK's own build script.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::module::{Module, folder_name};
use crate::plugin::build_folder::BuildFolder;
use crate::plugin::language::Language;
use crate::plugin::sdk::Sdks;
use crate::plugin::tool::{is_installed, output, run};

/// The programs that a build runs, and their Debian packages.
const PROGRAMS: [(&str, &str); 3] = [("make", "make"), ("clang", "clang"), ("wasm-ld", "lld")];

/// Where Debian has wasi-libc.
const WASI_LIBC: &str = "/usr/lib/wasm32-wasi/libc.a";

const REMEDY: &str = "on Debian: apt-get install clang lld wasi-libc libclang-rt-dev-wasm32 make";

/// Build the plugin in `folder`.
pub(super) fn compile(folder: &Path) -> Result<Module> {
    check_programs()?;
    let Variables { options, world, sources } = Variables::of(folder)?;
    let script = Sdks::unpack(&BuildFolder::open()?)?.of(Language::C).join("build.sh");
    let made = tempfile::tempdir()?;
    let out = made.path().join("plugin.wasm");
    let mut build = Command::new(script);
    build.current_dir(folder).args(options.split_whitespace()).arg(world).arg(&out);
    build.args(sources.split_whitespace());
    run(&mut build, REMEDY).with_context(|| match Path::new(WASI_LIBC).exists() {
        true => "the plugin cannot be compiled".to_owned(),
        false => format!("the plugin cannot be compiled, and {WASI_LIBC} is missing: {REMEDY}"),
    })?;
    let file = fs::read(&out).context("clang made no file")?;
    Ok(Module { name: folder_name(folder)?, file, is_of_folder: true })
}

/// The SDK's script takes another clang from the variable `CLANG`.
fn check_programs() -> Result<()> {
    let other_clang = std::env::var_os("CLANG").is_some();
    let is_missing = |program: &str| !(is_installed(program) || other_clang && program == "clang");
    let missing: Vec<_> = PROGRAMS.into_iter().filter(|(program, _)| is_missing(program)).collect();
    let names = |name: fn(&(&'static str, &'static str)) -> &'static str| {
        missing.iter().map(name).collect::<Vec<_>>().join(" ")
    };
    ensure!(
        missing.is_empty(),
        "a plugin in C needs {}: on Debian, apt-get install {} wasi-libc libclang-rt-dev-wasm32",
        names(|tool| tool.0),
        names(|tool| tool.1)
    );
    Ok(())
}

/// The variables of the plugin's Makefile that say how it is built.
#[derive(Debug, PartialEq)]
struct Variables {
    /// Options of the build script, such as `--init`.
    options: String,
    world: String,
    sources: String,
}

impl Variables {
    /// Asks make for them, so that a Makefile may compute them.
    fn of(folder: &Path) -> Result<Self> {
        const RULE: &str = "gristmill-variables: ; \
            $(info $(OPTIONS))$(info $(WORLD))$(info $(SOURCES))@:";
        let mut make = Command::new("make");
        for variable in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL"] {
            make.env_remove(variable);
        }
        make.current_dir(folder).args(["-s", "--no-print-directory"]);
        make.arg(format!("--eval={RULE}")).arg("gristmill-variables");
        let output = output(&mut make, REMEDY).context("the Makefile cannot be read")?;
        // The Makefile may print lines of its own before.
        let lines: Vec<_> = output.lines().collect();
        let Some([options, world, sources]) = lines.last_chunk() else {
            bail!("make does not say OPTIONS, WORLD and SOURCES of the Makefile: {output:?}");
        };
        for (name, value) in [("WORLD", world), ("SOURCES", sources)] {
            ensure!(!value.trim().is_empty(), "the Makefile has no line `{name} := ..`");
        }
        let owned = |text: &str| text.trim().to_owned();
        Ok(Self { options: owned(options), world: owned(world), sources: owned(sources) })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    fn read(makefile: &str) -> Result<Variables, String> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("Makefile"), makefile).unwrap();
        fs::write(folder.path().join("plugin.c"), "").unwrap();
        Variables::of(folder.path()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_makefile_is_asked() {
        let variables =
            read("$(info hello)\nWORLD := processor\nSOURCES := $(wildcard *.c) \\\n b.c\n");
        let (options, world) = (String::new(), "processor".to_owned());
        assert_eq!(variables, Ok(Variables { options, world, sources: "plugin.c b.c".into() }));
        let variables =
            read("OPTIONS := --init\nWORLD := preprocessor\nSOURCES := plugin.c\nall:\n");
        assert_eq!(variables.unwrap().options, "--init");
    }

    #[test]
    fn a_missing_variable_is_named() {
        let error = read("SOURCES := plugin.c\n").unwrap_err();
        assert_eq!(error, "the Makefile has no line `WORLD := ..`");
    }
}
