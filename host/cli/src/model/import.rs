//! `gristmill model import`: push the ONNX models of a Triton model repository, with what their
//! `config.pbtxt` say.
//!
//! `repository` finds the models and checks them, `text_format` and `config` read a `config.pbtxt`,
//! and `send` brings a model to a server. A model that cannot be imported is named, and the others
//! are imported.

mod config;
mod reading;
mod repository;
mod send;
mod tensors;
mod text_format;
mod tuning;
mod versions;

use std::path::Path;

use anyhow::{Result, bail, ensure};
use clap::{ArgAction, ArgMatches, Command};
use serde_json::{Value, json};

use self::repository::{CONFIG, Faults, Found, Model, Repository};
use self::send::Said;
use crate::admin::{self, Admin};
use crate::args::{option, required, switch, texts, word};
use crate::output::{Output, escaped};
use crate::release_flags;

pub(crate) fn command() -> Command {
    Command::new("import")
        .about("Push the ONNX models of a Triton model repository, with their configurations")
        .after_help(
            "Examples:\n  \
             gristmill model import model_repository --dry-run\n  \
             gristmill model import model_repository --model cnn --model ranker\n\n\
             FOLDER has a folder for each model: cnn/config.pbtxt and cnn/3/model.onnx. Each model \
             is one release, with the versions that its version_policy serves, which keep their \
             numbers, and with what these keys of config.pbtxt mean:\n  \
             max_batch_size, dynamic_batching, instance_group, version_policy, model_warmup (zeros),\n  \
             default_model_filename, format of an input, label_filename of an output,\n  \
             optimization.graph.level, and of parameters intra_op_thread_count,\n  \
             inter_op_thread_count, execution_mode, enable_mem_arena and enable_mem_pattern\n\
             Names, datatypes and dimensions are read from the model itself. Each other key is \
             ignored and named with its line. Without config.pbtxt the newest version is pushed, and \
             the server's configuration stays.\n\n\
             Ensembles, models with sequence_batching, and models of other backends cannot be \
             imported: they are named, the others are imported, and the command ends with 1. \
             --dry-run shows what would be sent, and asks no server.",
        )
        .args([
            word("folder", "FOLDER")
                .help("The model repository: the folder with a folder for each model"),
            option("model", "NAME")
                .action(ArgAction::Append)
                .help("Only this model; can be given several times [default: all]"),
            switch("dry-run").help("Show files, versions and configurations, and send nothing"),
            option("message", "TEXT").help("Why; the new releases keep it"),
            release_flags::force(),
            release_flags::skip_samples(),
            release_flags::wait_all(),
        ])
        .args(admin::changing())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let folder = required(matches, "folder")?;
    let wanted = texts(matches, "model");
    let wanted: Result<Vec<_>> = wanted.map(|name| admin::model_name("--model", name)).collect();
    let Repository { models, skipped } = Repository::read(Path::new(folder), &wanted?)?;
    for skipped in &skipped {
        eprintln!("{}", escaped(&format!("skipped {folder}/{skipped}")));
    }
    ensure!(
        !models.is_empty(),
        "{folder} has no model: it must have a folder for each, with a {CONFIG} or with a folder \
         for each version"
    );
    // All that is on this machine is checked before anything is sent.
    let admin = match matches.get_flag("dry-run") {
        true => None,
        false => Some(Admin::to_change(matches)?),
    };
    let output = Output::of(matches);
    let (count, mut answers, mut failed) = (models.len(), Vec::new(), Vec::new());
    for Found { name, model } in models {
        match model.and_then(|model| import(&model, admin.as_ref(), matches)) {
            Ok(Said { text, document }) => {
                if output == Output::Text {
                    println!("{}", escaped(&text));
                }
                answers.push(document);
            }
            Err(Faults(faults)) => {
                for fault in &faults {
                    eprintln!("{}", escaped(&format!("cannot import {name}: {fault}")));
                }
                answers.push(json!({ "model": name, "errors": faults }));
                failed.push(name);
            }
        }
    }
    if output == Output::Json {
        println!("{}", Value::from(answers));
    }
    if !failed.is_empty() {
        let names = escaped(&failed.join(", "));
        bail!("{} of {count} models cannot be imported: {names}", failed.len());
    }
    Ok(())
}

/// Bring a model to the server, or show what would be sent if there is none.
fn import(model: &Model, admin: Option<&Admin>, matches: &ArgMatches) -> Result<Said, Faults> {
    let outcome = send::files_of(model).and_then(|files| match admin {
        Some(admin) => send::send(admin, matches, model, &files),
        None => Ok(send::preview(model, &files)),
    });
    outcome.map_err(|error| format!("{error:#}").into())
}
