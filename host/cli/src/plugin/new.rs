//! `gristmill plugin new`: a folder with a plugin that builds at once, from the template of its
//! language.

mod c;
mod js;
mod python;
mod rust;
mod signature;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::{Arg, ArgMatches, Command};
use gristmill_core::ModelInfo;

use self::signature::{Files, Fit, Signature};
use super::build_folder::BuildFolder;
use super::language::Language;
use super::model::{self, Model};
use super::sdk::{Sdks, template};
use crate::admin::{self, Admin};

pub(crate) fn command() -> Command {
    Command::new("new")
        .about("Make a folder with a plugin that builds at once")
        .after_help(
            "Examples:\n  \
             gristmill plugin new scores --language python\n  \
             gristmill plugin new scores --language rust --folder plugins/scores\n  \
             gristmill plugin new wine --language python --model wine.onnx\n  \
             gristmill plugin new wine --language js --model wine           one on the server\n\n\
             The folder gets a plugin, its unit tests and a sample request. It needs no clone of \
             Gristmill: the SDK is in this program. With --model they fit the model's inputs and \
             outputs: pictures if the only input is [n, 1 or 3, height, width] or has the channels \
             last, a list of objects if each input is a column [n, 1], otherwise tensors as lists.",
        )
        .arg(Arg::new("name").value_name("NAME").required(true).help("The plugin's name"))
        .arg(
            Arg::new("language")
                .long("language")
                .value_name("LANGUAGE")
                .required(true)
                .value_parser(Language::ALL.map(Language::as_str))
                .help("The language to write it in"),
        )
        .arg(
            Arg::new("folder")
                .long("folder")
                .value_name("DIR")
                .help("The folder to make; an existing one must be empty [default: NAME]"),
        )
        .arg(
            Arg::new("model").long("model").value_name("FILE or NAME").help(
                "The model that it is for: a file as ONNX or its folder, or one on the server",
            ),
        )
        .args(admin::arguments())
}

/// What `tenant` brings for a language with an interpreter, and what it gives up.
pub(super) const REUSE_HINT: &str = "\
With instance_reuse = \"tenant\" an interpreter stays as it is for later requests of the pipeline. A call \
then takes less than half of the time, but what a request leaves in globals, the next one finds.";

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let argument = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let language = argument("language").and_then(Language::named);
    let language = language.context("--language is missing")?;
    let name = name_of(argument("name").context("NAME is missing")?, language)?;
    let folder = PathBuf::from(argument("folder").unwrap_or(&name));
    let model = argument("model").map(Model::named);
    let fitted = model.as_ref().map(|model| fitted(model, &name, language, matches)).transpose()?;
    make(&name, language, &folder, fitted)?;
    println!("{} has a plugin in {}. Next:\n", folder.display(), language.as_str());
    println!("  cd {}", folder.display());
    let (file, model) = match model {
        Some(Model::File(file)) => {
            // The next commands run in another folder.
            let file = file.canonicalize().unwrap_or(file);
            (file.display().to_string(), "MODEL".into())
        }
        Some(Model::OnServer(model)) => (format!("{model} --tenant TENANT"), model),
        None => ("MODEL.onnx".into(), "MODEL".into()),
    };
    println!("  gristmill plugin test --model {file}       build it, and run requests/");
    println!("  gristmill plugin push --tenant TENANT --pipeline {name} --model {model}");
    println!("\nOr a manifest names it in a pipeline (gristmill deploy --help):\n");
    println!("  [tenants.TENANT.pipelines.{name}]");
    println!("  pre = \"{name}\"\n  model = \"{model}\"\n  post = \"{name}\"");
    if [Language::Python, Language::Js].contains(&language) {
        println!("\n{}", REUSE_HINT);
    }
    Ok(())
}

/// A name that servers, cargo, pip and npm take.
fn name_of(name: &str, language: Language) -> Result<String> {
    admin::name("NAME", name)?;
    ensure!(!name.contains('.'), "NAME is {name:?}: must not have a '.'");
    ensure!(
        language != Language::Rust || !name.starts_with(|first: char| first.is_ascii_digit()),
        "NAME is {name:?}: the name of a crate must not begin with a digit"
    );
    Ok(name.to_owned())
}

/// What is special in a plugin for a model.
struct Fitted {
    files: Files,
    /// Whether its tests decode pictures.
    is_of_pictures: bool,
}

/// The files of a plugin for a model.
fn fitted(model: &Model, name: &str, language: Language, matches: &ArgMatches) -> Result<Fitted> {
    let (called, signature) = match model {
        Model::File(file) => {
            let loaded = model::load(file, None, &model::pool())?;
            let ModelInfo { inputs, outputs, .. } = loaded.info;
            let called = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            (called, Signature { inputs, outputs })
        }
        Model::OnServer(model) => {
            admin::model_name("--model", model)?;
            let admin = Admin::of(matches)?;
            let failed = || format!("--model: there is no file {model}, so the server was asked");
            let status = admin.get("status").with_context(failed)?;
            let signature = Signature::of_status(&status["models"][model]);
            let signature = signature.with_context(|| {
                format!(
                    "--model: there is no file {model}, and {} serves no model of this name that \
                     the token reaches (gristmill model list shows them)",
                    admin.address()
                )
            })?;
            (model.clone(), signature)
        }
    };
    let fit = Fit::new(name, &called, &signature)?;
    let files = match language {
        Language::Python => python::files(&fit)?,
        Language::Js => js::files(&fit)?,
        Language::Rust => rust::files(&fit)?,
        Language::C => c::files(&fit)?,
    };
    Ok(Fitted { files, is_of_pictures: fit.is_of_pictures() })
}

/// Where the template in Rust has what tests of pictures need, as a comment.
const PICTURES_IN_TESTS: &str = "\
# Tests that decode or resize pictures need these two lines:
# [dev-dependencies]
# ";

/// Write the files of the template. `fitted` replaces its plugin, tests and requests.
fn make(name: &str, language: Language, folder: &Path, fitted: Option<Fitted>) -> Result<()> {
    match fs::read_dir(folder).map(|mut entries| entries.next().is_some()) {
        Ok(true) => bail!("{} is not empty: name another folder with --folder", folder.display()),
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(error).with_context(|| folder.display().to_string());
        }
        _ => {}
    }
    let sdk = Sdks::unpack(&BuildFolder::open()?)?.of(language).display().to_string();
    let is_replaced = |fitted: &Fitted, path: &str| {
        path.starts_with("requests/") || fitted.files.iter().any(|(new, _)| *new == path)
    };
    let tests_pictures = fitted.as_ref().is_some_and(|fitted| fitted.is_of_pictures);
    let of_template = template(language)
        .filter(|(path, _)| fitted.as_ref().is_none_or(|fitted| !is_replaced(fitted, path)))
        .map(|(path, content)| {
            let content = String::from_utf8_lossy(content);
            let mut content = content.replace("{{name}}", name).replace("{{sdk}}", &sdk);
            if tests_pictures {
                content = content.replace(PICTURES_IN_TESTS, "[dev-dependencies]\n");
            }
            (path, content.into_bytes())
        });
    let mut files: Vec<_> = of_template.collect();
    files.extend(fitted.into_iter().flat_map(|fitted| fitted.files));
    for (path, content) in files {
        let path = folder.join(path);
        let parent = path.parent().context("a file without a folder")?;
        fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
        fs::write(&path, content).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_tools_refuse_are_refused() {
        let refused = |name: &str, language| {
            name_of(name, language).err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(refused("scores-2", Language::Rust), "");
        assert_eq!(refused("2scores", Language::C), "");
        assert!(refused("2scores", Language::Rust).contains("must not begin with a digit"));
        assert!(refused("a.b", Language::Js).contains("must not have a '.'"));
        assert!(refused("A", Language::Python).starts_with("NAME: \"A\" is not a valid name"));
    }

    #[test]
    fn the_template_in_rust_has_what_tests_of_pictures_need() {
        let mut files = template(Language::Rust);
        let is_there = files.any(|(path, content)| {
            path == "Cargo.toml" && String::from_utf8_lossy(content).contains(PICTURES_IN_TESTS)
        });
        assert!(is_there);
    }
}
