//! The languages in which a plugin can be written, and which of them a folder has.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

/// A language with an SDK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Rust,
    Python,
    Js,
    C,
}

impl Language {
    pub(crate) const ALL: [Self; 4] = [Self::Rust, Self::Python, Self::Js, Self::C];

    /// Its name on the command line, which is also the folder of its SDK.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::Js => "js",
            Self::C => "c",
        }
    }

    /// The language that has this name on the command line.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|language| language.as_str() == name)
    }

    /// The language of the plugin in `folder`.
    ///
    /// # Errors
    /// The folder has the files of no language, or of more than one.
    pub(crate) fn of(folder: &Path) -> Result<Self> {
        ensure!(
            folder.is_dir(),
            "{} is not a folder: name the folder of a plugin (`gristmill plugin new` makes one)",
            folder.display()
        );
        let mut languages = Vec::new();
        for language in Self::ALL {
            if language.is_in(folder)? {
                languages.push(language);
            }
        }
        match languages[..] {
            [language] => Ok(language),
            [] => bail!(
                "{} is not the folder of a plugin: it has no Cargo.toml (Rust), no pyproject.toml \
                 with [tool.gristmill] (Python), no package.json with plugin.js or plugin.ts \
                 (JavaScript), and no Makefile with plugin.c (C); to push a file that is already \
                 built, use `gristmill plugin push FILE`",
                folder.display()
            ),
            _ => {
                let names: Vec<_> = languages.into_iter().map(Self::as_str).collect();
                bail!(
                    "{} has the files of plugins in {}: give each plugin a folder of its own",
                    folder.display(),
                    names.join(" and ")
                )
            }
        }
    }

    fn is_in(self, folder: &Path) -> Result<bool> {
        let has = |name: &str| folder.join(name).is_file();
        Ok(match self {
            Self::Rust => has("Cargo.toml"),
            Self::Python => has("pyproject.toml") && is_python_plugin(folder)?,
            Self::Js => {
                let names = ["plugin.js", "plugin.ts", "src/plugin.js", "src/plugin.ts"];
                has("package.json") && (names.into_iter().any(has) || has_main(folder)?)
            }
            Self::C => has("Makefile") && has("plugin.c"),
        })
    }
}

fn is_python_plugin(folder: &Path) -> Result<bool> {
    let manifest = python_manifest(folder)?;
    Ok(manifest.get("tool").and_then(|tool| tool.get("gristmill")).is_some())
}

fn has_main(folder: &Path) -> Result<bool> {
    Ok(js_manifest(folder)?["main"].is_string())
}

/// The content of `pyproject.toml`.
pub(crate) fn python_manifest(folder: &Path) -> Result<toml::Table> {
    let path = folder.join("pyproject.toml");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    text.parse().with_context(|| path.display().to_string())
}

/// The content of `package.json`.
pub(crate) fn js_manifest(folder: &Path) -> Result<serde_json::Value> {
    let path = folder.join("package.json");
    let text = fs::read(&path).with_context(|| path.display().to_string())?;
    serde_json::from_slice(&text).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

    use super::*;

    fn language_of(files: &[(&str, &str)]) -> Result<Language, String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        Language::of(folder.path()).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn files_say_the_language() {
        let cargo = ("Cargo.toml", "");
        let python = ("pyproject.toml", "[tool.gristmill]\napp = \"app\"");
        let (package, js) = (("package.json", "{}"), ("plugin.js", ""));
        let (make, c) = (("Makefile", ""), ("plugin.c", ""));
        assert_eq!(language_of(&[cargo]), Ok(Language::Rust));
        assert_eq!(language_of(&[python]), Ok(Language::Python));
        assert_eq!(language_of(&[package, js]), Ok(Language::Js));
        assert_eq!(language_of(&[("package.json", r#"{"main": "a.js"}"#)]), Ok(Language::Js));
        assert_eq!(language_of(&[make, c]), Ok(Language::C));
        let both = language_of(&[make, c, package, js]).unwrap_err();
        assert!(both.contains("js and c"), "{both}");
    }

    #[test]
    fn other_folders_are_refused() {
        for files in [
            &[("pyproject.toml", "[project]\nname = \"a\"")][..],
            &[("package.json", "{}")],
            &[("Makefile", "")],
            &[],
        ] {
            let error = language_of(files).unwrap_err();
            assert!(
                error.contains("is not the folder of a plugin: it has no Cargo.toml"),
                "{error}"
            );
        }
        let error = language_of(&[("pyproject.toml", "[")]).unwrap_err();
        assert!(error.contains("pyproject.toml: "), "{error}");
    }
}
