//! The SDKs and the contract, which the binary embeds, unpacked into the build folder.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use anyhow::{Context, Result};
use gristmill_core::Digest;

use super::build_folder::BuildFolder;
use super::language::Language;

/// A file of the repository, which `build.rs` lists, or a binding of the C SDK, which it makes.
struct File {
    path: &'static str,
    content: &'static [u8],
}

// A constant would be in each unit of the crate that names it, 1.6 MiB each.
static FILES: &[File] = &include!(concat!(env!("OUT_DIR"), "/sdk_files.rs"));

/// The SDKs on disk, in the folders of the repository: `sdk/rust`, .., and `wit`.
pub(crate) struct Sdks(PathBuf);

impl Sdks {
    /// Unpack them, unless they are there already.
    pub(crate) fn unpack(folder: &BuildFolder) -> Result<Self> {
        let part = folder.part(&format!("sdk-{}", version()), |part| {
            for File { path, content } in FILES {
                let file = part.join(path);
                if let Some(parent) = file.parent() {
                    fs::create_dir_all(parent)?;
                }
                fs::write(&file, content).with_context(|| file.display().to_string())?;
                if path.ends_with(".sh") {
                    fs::set_permissions(&file, Permissions::from_mode(0o755))?;
                }
            }
            Ok(())
        })?;
        Ok(Self(part))
    }

    /// The folder of a language's SDK.
    pub(crate) fn of(&self, language: Language) -> PathBuf {
        self.0.join("sdk").join(language.as_str())
    }

    /// The folder of the contract.
    pub(crate) fn wit(&self) -> PathBuf {
        self.0.join("wit")
    }
}

/// The files of a language's template: their paths in it, and their contents.
pub(crate) fn template(language: Language) -> impl Iterator<Item = (&'static str, &'static [u8])> {
    let prefix = format!("sdk/{}/template/", language.as_str());
    FILES.iter().filter_map(move |file| Some((file.path.strip_prefix(&prefix)?, file.content)))
}

/// The beginning of the digest over all files.
pub(crate) fn version() -> String {
    let mut all = Vec::new();
    for File { path, content } in FILES {
        all.extend_from_slice(format!("{path} {}\n", content.len()).as_bytes());
        all.extend_from_slice(content);
    }
    Digest::of(&all).hex()[..16].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_an_sdk_and_a_template() {
        for (language, file) in [
            (Language::Rust, "src/lib.rs"),
            (Language::Python, "app.py"),
            (Language::Js, "plugin.js"),
            (Language::C, "plugin.c"),
        ] {
            let names: Vec<_> = template(language).map(|(name, _)| name).collect();
            assert!(names.contains(&file) && names.contains(&".gitignore"), "{names:?}");
        }
        // All templates take the same request.
        let sample = |language| template(language).find(|(path, _)| *path == "requests/rows.json");
        let samples = Language::ALL.map(sample);
        assert!(samples.iter().all(|one| one.is_some() && *one == samples[0]), "{samples:?}");
        for path in [
            "wit/worlds.wit",
            "sdk/rust/src/lib.rs",
            "sdk/python/src/gristmill_plugin/wit/worlds.wit",
            "sdk/js/build/package-lock.json",
            "sdk/c/build.sh",
            "sdk/c/bindings/imports.c",
            "sdk/c/bindings/handler_component_type.o",
        ] {
            assert!(FILES.iter().any(|file| file.path == path), "{path}");
        }
        let left_out = |file: &File| {
            ["0.1.0", "0.2.0", "node_modules", ".wasm"].iter().any(|name| file.path.contains(name))
        };
        assert!(!FILES.iter().any(left_out));
    }
}
