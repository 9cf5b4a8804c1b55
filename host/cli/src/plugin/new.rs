//! `gristmill plugin new`: a folder with a plugin that builds at once, from the template of its
//! language.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::{Arg, ArgMatches, Command};

use super::build_folder::BuildFolder;
use super::language::Language;
use super::sdk::{Sdks, template};
use crate::admin;

pub(crate) fn command() -> Command {
    Command::new("new")
        .about("Make a folder with a plugin that builds at once")
        .after_help(
            "Examples:\n  \
             gristmill plugin new scores --language python\n  \
             gristmill plugin new scores --language rust --folder plugins/scores\n\n\
             The folder gets a plugin, its unit tests and a sample request. It needs no clone of \
             Gristmill: the SDK is in this program.",
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
    make(&name, language, &folder)?;
    println!("{} has a plugin in {}. Next:\n", folder.display(), language.as_str());
    println!("  cd {}", folder.display());
    println!("  gristmill plugin test --model MODEL.onnx       build it, and run requests/");
    println!("  gristmill plugin push --tenant TENANT");
    println!("\nA pipeline then names it, for example in a manifest (gristmill deploy --help):\n");
    println!("  [tenants.TENANT.pipelines.{name}]");
    println!("  pre = \"{name}\"\n  model = \"MODEL\"\n  post = \"{name}\"");
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

fn make(name: &str, language: Language, folder: &Path) -> Result<()> {
    match fs::read_dir(folder).map(|mut entries| entries.next().is_some()) {
        Ok(true) => bail!("{} is not empty: name another folder with --folder", folder.display()),
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(error).with_context(|| folder.display().to_string());
        }
        _ => {}
    }
    let sdk = Sdks::unpack(&BuildFolder::open()?)?.of(language).display().to_string();
    for (path, content) in template(language) {
        let path = folder.join(path);
        let content = String::from_utf8_lossy(content);
        let content = content.replace("{{name}}", name).replace("{{sdk}}", &sdk);
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
}
