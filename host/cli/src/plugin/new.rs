//! `gristmill plugin new`: a folder with a plugin that builds at once, from the template of its
//! language.

mod c;
mod fit;
mod js;
mod python;
mod rust;
mod signature;
mod tokenizer;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::{ArgAction, ArgMatches, Command};
use gristmill_core::{ModelInfo, Name};

use self::fit::{Files, PluginFit};
use self::signature::Signature;
use super::build_folder::BuildFolder;
use super::language::Language;
use super::model::{self, Loader, Model};
use super::named_models::{self, Given, by_name};
use super::sdk::{Sdks, template};
use super::within::refuse_full;
use crate::admin::{self, Admin};
use crate::args::{option, required, text, texts};
use crate::names;

pub(crate) fn command() -> Command {
    Command::new("new")
        .about("Make a folder with a plugin that builds at once")
        .after_help(
            "Examples:\n  \
             gristmill plugin new scores --language python\n  \
             gristmill plugin new scores --language rust --folder plugins/scores\n  \
             gristmill plugin new wine --language python --model wine.onnx\n  \
             gristmill plugin new wine --language js --model wine           one on the server\n  \
             gristmill plugin new embed --language python --model bert.onnx --tokenizer tokenizer.json\n  \
             gristmill plugin new reader --language rust --model detect=det.onnx --model read=rec.onnx\n  \
                                                      a handler, with its names for models\n\n\
             The folder gets a plugin, its unit tests and a sample request. It needs no clone of \
             Gristmill: the SDK is in this program. With --model they fit the model's inputs and \
             outputs: texts if it takes tokens (input_ids) and its tokenizer.json is there, pictures \
             if the only input is [n, 1 or 3, height, width] or has the channels last, a list of \
             objects if each input is a column [n, 1], otherwise tensors as lists. NAME=MODEL, or \
             several models, make a handler that runs each model once; a request to several is an \
             object with a key for each, in which a picture is a text in base64.",
        )
        .args([
            names::argument("The plugin's name"),
            option("language", "LANGUAGE")
                .required(true)
                .value_parser(Language::ALL.map(Language::as_str))
                .help("The language to write it in"),
            option("folder", "DIR")
                .help("The folder to make; an existing one must be empty [default: NAME]"),
            option("model", "FILE or NAME").action(ArgAction::Append).help(
                "The model that it is for: a file as ONNX or its folder, or one on the server. \
                 For a handler NAME=MODEL, once for each model",
            ),
            option("tokenizer", "FILE").requires("model").help(
                "The tokenizer.json of a model whose inputs are input_ids: the plugin takes texts \
                 [default: tokenizer.json beside the model's file, if it is there]",
            ),
        ])
        .args(admin::arguments())
}

/// What `tenant` brings for a language with an interpreter, and what it gives up.
pub(super) const REUSE_HINT: &str = "\
With instance_reuse = \"tenant\" an interpreter stays as it is for later requests of the pipeline. A call \
then takes less than half of the time, but what a request leaves in globals, the next one finds.";

/// What is said of a model of tokens without its tokenizer.
const TOKENIZER_HINT: &str = "\
A model takes the tokens of texts (input_ids), and so does this plugin: its requests have their numbers. With \
--tokenizer FILE, the tokenizer.json beside the model that was exported, a plugin takes texts.";

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let language = text(matches, "language").and_then(Language::named);
    let language = language.context("--language is missing")?;
    let name = name_of(required(matches, "name")?, language)?;
    let folder = PathBuf::from(text(matches, "folder").unwrap_or(&name));
    let models = models(matches)?;
    let fitted = fitted(&models, &name, language, matches)?;
    let lacks_tokenizer = fitted.as_ref().is_some_and(|fitted| fitted.lacks_tokenizer);
    make(&name, language, &folder, fitted)?;
    println!("{} has a plugin in {}. Next:\n", folder.display(), language.as_str());
    println!("  cd {}", folder.display());
    match &models {
        ModelsOf::Handler(models) => print_handler(&name, &folder, models),
        ModelsOf::Pair(model) => print_pair(&name, &folder, Some(model)),
        ModelsOf::Nothing => print_pair(&name, &folder, None),
    }
    if [Language::Python, Language::Js].contains(&language) {
        println!("\n{}", REUSE_HINT);
    }
    if lacks_tokenizer {
        println!("\n{TOKENIZER_HINT}");
    }
    Ok(())
}

/// What the plugin is for.
enum ModelsOf {
    /// Any model that takes and gives rows of numbers: the template as it is.
    Nothing,
    /// A plugin around one model.
    Pair(Model),
    /// A handler, and the names that its code has for models.
    Handler(BTreeMap<Name, Model>),
}

impl ModelsOf {
    /// The models, in the order of the names.
    fn all(&self) -> Vec<&Model> {
        match self {
            Self::Nothing => Vec::new(),
            Self::Pair(model) => vec![model],
            Self::Handler(models) => models.values().collect(),
        }
    }
}

/// The models that the command line names.
fn models(matches: &ArgMatches) -> Result<ModelsOf> {
    let values = texts(matches, "model");
    let given_models = values.map(|value| named_models::read(value)).collect::<Result<Vec<_>>>()?;
    match &given_models[..] {
        [] => return Ok(ModelsOf::Nothing),
        [Given { name: None, model }] => return Ok(ModelsOf::Pair(Model::named(model))),
        _ => {}
    }
    let named = by_name(&given_models, |model: &&str| named_models::of_file(model))?;
    let model = |(name, model): (Name, &&str)| (name, Model::named(model));
    let models: BTreeMap<_, _> = named.into_iter().map(model).collect();
    let on_server = models.values().filter(|model| matches!(model, Model::OnServer(_))).count();
    ensure!(
        on_server == 0 || on_server == models.len(),
        "--model: some are files and some are on a server: give all as one or the other"
    );
    Ok(ModelsOf::Handler(models))
}

/// Say what comes next for a plugin around one model.
fn print_pair(name: &str, folder: &Path, model: Option<&Model>) {
    let (file, model) = match model {
        Some(Model::OnServer(model)) => (format!("{model} --tenant TENANT"), model.as_str()),
        Some(Model::File(file)) => (shown(file), "MODEL"),
        None => ("MODEL.onnx".into(), "MODEL"),
    };
    println!("  gristmill plugin test --model {file}       build it, and run requests/");
    println!("  gristmill plugin push --tenant TENANT --pipeline {name} --model {model}");
    print_plugin(name, folder);
    println!("  [tenants.TENANT.pipelines.{name}]");
    println!("  pre = \"{name}\"\n  model = \"{model}\"\n  post = \"{name}\"");
}

/// Say how a manifest names the plugin.
fn print_plugin(name: &str, folder: &Path) {
    println!("\nOr a manifest names it in a pipeline (gristmill deploy --help):\n");
    println!("  [tenants.TENANT.plugins.{name}]\n  folder = \"{}\"\n", folder.display());
}

/// Say what comes next for a handler.
fn print_handler(name: &str, folder: &Path, models: &BTreeMap<Name, Model>) {
    let flags = |value: &dyn Fn(&Model) -> String| {
        let flag =
            |(own_name, model): (&Name, &Model)| format!(" --model {own_name}={}", value(model));
        models.iter().map(flag).collect::<String>()
    };
    let on_server = |model: &Model| match model {
        Model::File(_) => "MODEL".to_owned(),
        Model::OnServer(model) => model.clone(),
    };
    let tested = flags(&|model| match model {
        Model::File(file) => shown(file),
        Model::OnServer(model) => model.clone(),
    });
    // All are files, or all are on the server.
    let is_on_server = models.values().any(|model| matches!(model, Model::OnServer(_)));
    let tenant = if is_on_server { " --tenant TENANT" } else { "" };
    println!("  gristmill plugin test{tested}{tenant}       build it, and run requests/");
    println!("  gristmill plugin push --tenant TENANT --pipeline {name}{}", flags(&on_server));
    print_plugin(name, folder);
    println!("  [tenants.TENANT.pipelines.{name}]\n  handler = \"{name}\"");
    for (own_name, model) in models {
        println!("  models.\"{own_name}\" = \"{}\"", on_server(model));
    }
}

/// A path for commands that run in another folder.
fn shown(file: &Path) -> String {
    file.canonicalize().unwrap_or_else(|_| file.to_owned()).display().to_string()
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

/// What is special in a plugin for models.
struct Fitted {
    files: Files,
    /// Whether its tests decode pictures.
    is_of_pictures: bool,
    is_handler: bool,
    /// Whether it would take texts if it had the file that makes tokens of them.
    lacks_tokenizer: bool,
}

/// The files of a plugin for models.
fn fitted(
    models: &ModelsOf,
    name: &str,
    language: Language,
    matches: &ArgMatches,
) -> Result<Option<Fitted>> {
    let is_of_files = models.all().iter().any(|model| matches!(model, Model::File(_)));
    let loader = is_of_files.then(|| Loader::open(None, &model::pool())).transpose()?;
    let read = |model: &Model| read_model(model, loader.as_ref(), matches);
    let signatures: Vec<(Option<&Name>, String, Signature)> = match models {
        ModelsOf::Nothing => return Ok(None),
        ModelsOf::Pair(model) => {
            let (called, signature) = read(model)?;
            vec![(None, called, signature)]
        }
        ModelsOf::Handler(models) => {
            let mut signatures = Vec::with_capacity(models.len());
            for (own_name, model) in models {
                let (called, signature) = read(model)?;
                signatures.push((Some(own_name), called, signature));
            }
            signatures
        }
    };
    let tokenizer = tokenizer::read(&models.all(), &signatures, matches)?;
    let plugin = PluginFit::new(name, &signatures, tokenizer.as_deref())?;
    let files = match language {
        Language::Python => python::files(&plugin)?,
        Language::Js => js::files(&plugin)?,
        Language::Rust => rust::files(&plugin)?,
        Language::C => c::files(&plugin)?,
    };
    Ok(Some(Fitted {
        files,
        is_of_pictures: plugin.is_of_pictures(),
        is_handler: plugin.only().is_none(),
        lacks_tokenizer: plugin.lacks_tokenizer(),
    }))
}

/// What comments call a model, and what it takes and gives.
fn read_model(
    model: &Model,
    loader: Option<&Loader>,
    matches: &ArgMatches,
) -> Result<(String, Signature)> {
    match model {
        Model::File(file) => {
            let loaded = loader.context("no model is a file")?.load(file)?;
            let ModelInfo { inputs, outputs, .. } = loaded.info;
            let called = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Ok((called, Signature { inputs, outputs }))
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
            Ok((model.clone(), signature))
        }
    }
}

/// What the Makefile of the template in C says about its world.
const WORLD_IN_C: &str = "WORLD := processor\n";

/// Where the template in Rust has what tests of pictures need, as a comment.
const PICTURES_IN_TESTS: &str = "\
# Tests that decode or resize pictures need these two lines:
# [dev-dependencies]
# ";

/// Write the files of the template. `fitted` replaces its plugin, tests and requests.
fn make(name: &str, language: Language, folder: &Path, fitted: Option<Fitted>) -> Result<()> {
    refuse_full(folder)?;
    let sdk = Sdks::unpack(&BuildFolder::open()?)?.of(language).display().to_string();
    let is_replaced = |fitted: &Fitted, path: &str| {
        path.starts_with("requests/") || fitted.files.iter().any(|(new, _)| *new == path)
    };
    let tests_pictures = fitted.as_ref().is_some_and(|fitted| fitted.is_of_pictures);
    let is_handler = fitted.as_ref().is_some_and(|fitted| fitted.is_handler);
    let of_template = template(language)
        .filter(|(path, _)| fitted.as_ref().is_none_or(|fitted| !is_replaced(fitted, path)))
        .map(|(path, content)| {
            let content = String::from_utf8_lossy(content);
            let mut content = content.replace("{{name}}", name).replace("{{sdk}}", &sdk);
            if tests_pictures {
                content = content.replace(PICTURES_IN_TESTS, "[dev-dependencies]\n");
            }
            if is_handler {
                content = content.replace(WORLD_IN_C, "WORLD := handler\n");
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
    fn templates_have_the_lines_that_are_replaced() {
        for (language, path, lines) in [
            (Language::Rust, "Cargo.toml", PICTURES_IN_TESTS),
            (Language::C, "Makefile", WORLD_IN_C),
        ] {
            let mut files = template(language);
            let is_there = files.any(|(file, content)| {
                file == path && String::from_utf8_lossy(content).contains(lines)
            });
            assert!(is_there, "{path}");
        }
    }
}
