//! `gristmill plugin dev`: a plugin that serves while it is written. After each save it is built
//! and uploaded, to a server of its own or to one that runs.

mod server;

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use gristmill_core::{Digest, Name};
use serde_json::{Value, json};

use self::server::{Local, TENANT};
use super::build::build;
use super::component_file::name_of;
use super::language::Language;
use super::named_models::{self, Given, by_name};
use super::settings;
use super::watch::Files;
use crate::admin::{self, Admin};
use crate::args::{option, text};
use crate::file_upload::HashedFile;
use crate::names;
use crate::output::escaped;

pub(crate) fn command() -> Command {
    let file = |name| option(name, "FILE").value_parser(value_parser!(PathBuf));
    Command::new("dev")
        .about("Serve a plugin while you write it: each save is live at the next request")
        .after_help(
            "With --model it starts a server for this plugin alone, without keys, on this machine. \
             For a handler each model has the name that its code has for it: NAME=FILE. \
             With --tenant it uploads to a server that runs, as `gristmill plugin push` does. \
             --pre or --post names the plugin that does the other call, if FOLDER does only one: \
             its folder, which is watched as well, or its file.\n\n\
             Each save is built and tried. If that fails, the error is shown and the version before \
             serves on. With --model, what the plugin logs is shown, and an answer to a failed \
             request has the plugin's own words. With --tenant, `gristmill logs TENANT --follow` \
             shows them. Ctrl-C ends it.\n\n\
             Examples:\n  \
             gristmill plugin dev --model model.onnx\n  \
             gristmill plugin dev plugins/python/digits --model digits.onnx --listen 127.0.0.1:9000\n  \
             gristmill plugin dev reader --model detect=det.onnx --model read=rec.onnx\n  \
             gristmill plugin dev plugins/rust/ranker-pre --post plugins/rust/ranker-post --model \
             ranker.onnx\n  \
             gristmill plugin dev --tenant acme",
        )
        .args([
            Arg::new("folder")
                .value_name("FOLDER")
                .value_parser(value_parser!(PathBuf))
                .default_value(".")
                .help("The plugin's folder"),
            option("model", "FILE")
                .action(ArgAction::Append)
                .required_unless_present("tenant")
                .help("The model, as ONNX. For a handler NAME=FILE, once for each model"),
            file("pre")
                .help("The plugin that does the preprocessing, if FOLDER does not")
                .conflicts_with("post")
                .requires("model"),
            file("post")
                .help("The plugin that does the postprocessing, if FOLDER does not")
                .requires("model"),
            file("settings").help("The pipeline's settings: a JSON object").requires("model"),
            option("instance-reuse", "MODE")
                .value_parser(["none", "request", "tenant"])
                .requires("model")
                .help("Which calls share an instance [default: as the server's]"),
            option("listen", "ADDRESS")
                .conflicts_with("tenant")
                .help("Where the server for this plugin answers [default: 127.0.0.1:8080]"),
            file("onnxruntime-library")
                .help(
                    "ONNX Runtime's shared library [default: as `gristmill plugin test` finds it]",
                )
                .env("GRISTMILL_ONNXRUNTIME_LIBRARY")
                .conflicts_with("tenant"),
            option("tenant", "NAME")
                .conflicts_with("model")
                .help("The tenant of a server that runs"),
            option("name", "NAME")
                .help("The plugin's name [default: the name of its folder's manifest]"),
        ])
        .args(admin::change_arguments())
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let path = |name: &str| matches.get_one::<PathBuf>(name).cloned();
    let folder = path("folder").context("FOLDER is missing")?;
    let name = names::optional(matches, "name")?;
    // Mistakes in flags and files are found before a server starts.
    Language::of(&folder).context("FOLDER")?;
    let local = match matches.get_many::<String>("model") {
        None => None,
        Some(values) => {
            admin::refuse_flags(
                matches,
                "--model starts one of its own (--tenant uploads to one)",
            )?;
            let values =
                values.map(|value| named_models::read(value)).collect::<Result<Vec<_>>>()?;
            let (is_handler, models) = models(&values)?;
            let other = ["pre", "post"].into_iter().find_map(|call| Some((call, path(call)?)));
            if let Some((call, path)) = &other {
                let about = std::fs::metadata(path);
                if about.with_context(|| format!("--{call} {}", path.display()))?.is_dir() {
                    Language::of(path).with_context(|| format!("--{call}"))?;
                }
            }
            ensure!(
                !is_handler || other.is_none(),
                "--model NAME=FILE, or several times, is for a handler, and --pre and --post are \
                 for other plugins: give --model FILE once"
            );
            let pipeline = Pipeline {
                settings: path("settings"),
                instance_reuse: text(matches, "instance-reuse").map(str::to_owned),
                other,
                handler_models: is_handler.then(|| models.keys().cloned().collect()),
            };
            pipeline.document("it", None)?;
            let listen = text(matches, "listen").unwrap_or("127.0.0.1:8080");
            let local = Local::start(listen, &models, path("onnxruntime-library"))?;
            Some((local, pipeline))
        }
    };
    let (admin, tenant) = match &local {
        Some((local, _)) => (local.admin()?, TENANT.parse()?),
        None => {
            let (admin, tenant) = (Admin::to_change(matches)?, names::given_tenant(matches)?);
            admin.get(&format!("tenants/{tenant}")).context("--tenant")?;
            (admin, tenant)
        }
    };
    let uploaded = OnceCell::new();
    let session = Session { folder, name, admin, tenant, local: local.as_ref(), uploaded };
    session.run()
}

/// The model of a plugin that is not a handler.
const MODEL: &str = "model";

/// The models by their names on the server, and whether they are a handler's, whose names are those
/// of its code.
///
/// # Errors
/// A file cannot be read, or two models have the same name.
fn models(given_models: &[Given<&str>]) -> Result<(bool, BTreeMap<Name, HashedFile>)> {
    let read = |file: &str| HashedFile::read_model(Path::new(file)).context("--model");
    if let [Given { name: None, model }] = given_models {
        return Ok((false, BTreeMap::from([(MODEL.parse()?, read(model)?)])));
    }
    let own_name = |model: &&str| named_models::of_file(model);
    let mut models = BTreeMap::new();
    for (name, model) in by_name(given_models, own_name)? {
        models.insert(name, read(model)?);
    }
    Ok((true, models))
}

/// The pipeline of a server of this plugin's own.
struct Pipeline {
    /// The file with the settings.
    settings: Option<PathBuf>,
    instance_reuse: Option<String>,
    /// The plugin that does one of the calls, `pre` or `post`: its folder or file.
    other: Option<(&'static str, PathBuf)>,
    /// The names of a handler's models. None if the plugin is not a handler.
    handler_models: Option<Vec<Name>>,
}

impl Pipeline {
    /// The pipeline's document, which names the plugin, and the other one if there is one.
    fn document(&self, plugin: &str, other: Option<&str>) -> Result<Value> {
        let mut document = match &self.handler_models {
            None => json!({ "pre": plugin, "model": MODEL, "post": plugin }),
            Some(names) => {
                let models: BTreeMap<_, _> = names.iter().map(|name| (name, name)).collect();
                json!({ "handler": plugin, "models": models })
            }
        };
        document["debug"] = true.into();
        if let (Some((call, _)), Some(other)) = (&self.other, other) {
            document[call] = other.into();
        }
        if let Some(reuse) = &self.instance_reuse {
            document["instance_reuse"] = reuse.as_str().into();
        }
        if let Some(path) = &self.settings {
            document["settings"] = Value::Object(settings::read(path)?);
        }
        Ok(document)
    }
}

struct Session<'a> {
    folder: PathBuf,
    /// The name that the command gives the plugin.
    name: Option<Name>,
    admin: Admin,
    tenant: Name,
    /// The server of this plugin's own, and its pipeline. On a server that runs, pipelines stay as
    /// they are.
    local: Option<&'a (Local, Pipeline)>,
    /// The plugin's name, once it is uploaded.
    uploaded: OnceCell<Name>,
}

impl Session<'_> {
    /// Upload the plugin now and after each change, until the process is ended.
    ///
    /// # Errors
    /// The server of its own has ended, or a file cannot be looked at.
    fn run(&self) -> Result<()> {
        let pipeline = self.local.map(|(_, pipeline)| pipeline);
        let settings = pipeline.and_then(|pipeline| pipeline.settings.clone());
        let other = pipeline.and_then(|pipeline| Some(pipeline.other.as_ref()?.1.clone()));
        let paths: Vec<_> =
            [Some(self.folder.clone()), other, settings].into_iter().flatten().collect();
        let mut live = None;
        loop {
            let mut seen = Files::of(&paths);
            let begun = Instant::now();
            match self.upload() {
                Ok(digest) => {
                    println!("live after {:.2} s", begun.elapsed().as_secs_f64());
                    let before = live.replace(digest);
                    if before.is_none() {
                        // The upload was what matters.
                        let _ = self.say_if_unused();
                        let next = match self.local {
                            Some((local, _)) => format!("send requests to {}", local.url()),
                            None => {
                                format!(
                                    "gristmill logs {} --follow shows what it logs",
                                    self.tenant
                                )
                            }
                        };
                        println!("{next}; Ctrl-C ends");
                    }
                    // A build may write a file that is watched. What is saved meanwhile makes
                    // another plugin.
                    if before == Some(digest) {
                        seen = Files::of(&paths);
                    }
                }
                Err(error) => {
                    if let Some((local, _)) = self.local
                        && let Some(status) = local.ended()?
                    {
                        bail!("the server has ended: {status}");
                    }
                    let text = format!("{error:#}");
                    eprintln!("error: {}\nsave a file to try again", escaped(&text));
                }
            }
            let now = seen.wait_for_change(&paths);
            let changed: Vec<_> = seen.changed(&now).map(|path| self.shown(path)).collect();
            eprintln!("changed: {}", escaped(&changed.join(", ")));
        }
    }

    /// Say what to do if no pipeline of the server names the plugin.
    fn say_if_unused(&self) -> Result<()> {
        let (None, Some(name)) = (&self.local, self.uploaded.get()) else { return Ok(()) };
        let tenant = &self.tenant;
        let pipelines = self.admin.items(&format!("tenants/{tenant}/pipelines"))?;
        let is_of_it = |value: &Value| {
            let named = value.as_str().unwrap_or_default();
            named.split('@').next() == Some(name.as_str())
        };
        let names_it = |pipeline: &Value| {
            ["pre", "post", "handler"].iter().any(|key| is_of_it(&pipeline[*key]))
        };
        if !pipelines.iter().any(names_it) {
            let plugin = self.admin.get(&format!("tenants/{tenant}/plugins/{name}"))?;
            let program = match plugin["world"].as_str() {
                Some("handler") => format!("handler={name} models.NAME=MODEL"),
                _ => format!("pre={name} model=MODEL post={name}"),
            };
            println!(
                "no pipeline of {tenant} names {name} yet: gristmill pipeline set {name} --tenant \
                 {tenant} {program}"
            );
        }
        Ok(())
    }

    /// Build and upload the plugin, and the one that does the other call. Returns their digests.
    fn upload(&self) -> Result<[Option<Digest>; 2]> {
        let file = build(&self.folder, None)?.path;
        let name = match &self.name {
            Some(name) => name.clone(),
            None => admin::name("the plugin's name (--name gives another)", &name_of(&file))?,
        };
        let Self { admin, tenant, local, .. } = self;
        let mut changes = Vec::new();
        let mut put = |file: &Path, name: &Name| -> Result<Digest> {
            let file = HashedFile::read(file)?;
            file.upload(admin)?;
            changes.push(json!({
                "kind": "put_plugin", "tenant": tenant, "plugin": name, "digest": file.digest,
            }));
            Ok(file.digest)
        };
        let mut digests = [Some(put(&file, &name)?), None];
        if let Some((local, pipeline)) = local {
            let mut other_name = None;
            if let Some((call, path)) = &pipeline.other {
                let file = if path.is_dir() { build(path, None)?.path } else { path.clone() };
                let other = admin::name(&format!("the name of --{call}"), &name_of(&file))?;
                if other == name {
                    bail!("--{call} has the name {name}, too: --name gives the plugin another");
                }
                digests[1] = Some(put(&file, &other)?);
                other_name = Some(other);
            }
            let document =
                pipeline.document(name.as_str(), other_name.as_ref().map(Name::as_str))?;
            changes.push(json!({
                "kind": "put_pipeline", "tenant": tenant, "pipeline": name, "document": document,
            }));
            changes.push(local.tenant(Some(&name)));
        }
        admin.post("releases?dry_run=false", &json!({ "changes": changes }))?;
        let _ = self.uploaded.set(name);
        Ok(digests)
    }

    /// A path as it is below the folder.
    fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.folder).unwrap_or(path).display().to_string()
    }
}
