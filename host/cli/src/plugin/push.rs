//! `gristmill plugin push`: upload a component. It is live when the command returns.

mod pipeline;

use std::path::Path;

use anyhow::{Context, Result};
use clap::{Arg, ArgAction, ArgMatches, Command};
use gristmill_sandbox::is_archive;

use self::pipeline::{Pipeline, Pushed};
use super::build::build;
use super::component_file::name_of;
use super::new::REUSE_HINT;
use crate::admin::{self, Admin};
use crate::progress::{Progress, bytes_text};
use crate::{change, differences, release_flags};

pub(crate) fn command() -> Command {
    let text = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("NAME").help(help)
    };
    Command::new("push")
        .about("Upload a plugin, which is live in every pipeline that names it when the command returns")
        .after_help(
            "Examples:\n  \
             gristmill plugin push --tenant acme                    build and push this folder\n  \
             gristmill plugin push plugins/rust/digits --tenant acme\n  \
             gristmill plugin push digits.wasm --tenant acme --name reader\n  \
             gristmill plugin push reader/ --tenant acme --pipeline main --model digits\n  \
             gristmill plugin push --tenant acme --admin https://admin.example:8081\n\n\
             Give the token in GRISTMILL_ADMIN_TOKEN rather than with --token, because flags are \
             visible in the list of processes. The server prints the token at its first start.\n\n\
             With --pipeline the plugin and a pipeline of it are one release. If the pipeline is \
             there, it stays as it is, but for the models that --model names.\n\n\
             A version with which a pipeline would not answer its samples as expected is refused, \
             and the one before continues to serve.\n\n\
             Over http:// the token is sent unencrypted. For a server on another machine give an \
             address with https://; --ca-file names the authority of its certificate, unless the \
             system knows it.",
        )
        .arg(
            Arg::new("plugin")
                .value_name("PLUGIN")
                .default_value(".")
                .help("The file of a plugin, or a folder, which is built first"),
        )
        .arg(text("tenant", "The plugin's tenant").required(true))
        .arg(text("name", "The plugin's name [default: the name of the file]"))
        .arg(text("pipeline", "A pipeline of the plugin, which is made if it is not there"))
        .arg(
            Arg::new("model")
                .long("model")
                .value_name("MODEL")
                .action(ArgAction::Append)
                .requires("pipeline")
                .help(
                    "The pipeline's model; for a handler NAME=MODEL, as its code names it, maybe \
                     several times",
                ),
        )
        .arg(change::message().requires("pipeline"))
        .args([release_flags::skip_samples(), release_flags::wait_all()])
        .args(admin::change_arguments())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let argument = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    // All flags are checked before the build, which may take a minute.
    let admin = Admin::to_change(matches)?;
    let tenant = admin::name("--tenant", argument("tenant").context("--tenant is missing")?)?;
    let name = argument("name").map(|name| admin::name("--name", name)).transpose()?;
    let pipeline = Pipeline::of(matches)?;
    if let Some(pipeline) = &pipeline {
        pipeline.check(&admin, &tenant)?;
    }
    let plugin = Path::new(argument("plugin").unwrap_or("."));
    let file = if plugin.is_dir() { build(plugin, None)?.path } else { plugin.to_owned() };
    let name = match name {
        Some(name) => name,
        None => admin::name("the name of the file (--name gives another)", &name_of(&file))?,
    };
    let body = std::fs::read(&file).with_context(|| file.display().to_string())?;
    let has_interpreter = is_archive(&body);
    let failed = || format!("cannot push {} as {tenant}/{name}", file.display());
    if let Some(pipeline) = pipeline {
        let plugin = Pushed { admin: &admin, tenant: &tenant, name: &name };
        let made = plugin.release(&file, &pipeline, matches).with_context(failed)?;
        eprint!("{}", differences::power(&made));
        let (release, pipeline) = (&made["release"], &pipeline.name);
        println!("{tenant}/{name} is live in release {release}, in pipeline {pipeline}");
    } else {
        let size = bytes_text(body.len() as u64);
        let what = format!("uploading {size}, which the server compiles (up to a minute)");
        let waiting = Progress::wait(&what);
        let query = release_flags::query(matches);
        let path = format!("tenants/{tenant}/plugins/{name}?{query}");
        let answer = admin.put(&path, body).with_context(failed)?;
        drop(waiting);
        eprint!("{}", differences::power(&answer));
        println!("{tenant}/{name} is live in release {}", answer["release"]);
    }
    if has_interpreter {
        eprintln!("{REUSE_HINT}");
    }
    Ok(())
}
