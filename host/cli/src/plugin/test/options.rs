//! The command line of `gristmill plugin test`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use gristmill_core::Name;
use gristmill_sandbox::{Asset, Assets, Reuse, TenantReuse, asset_name_fault};
use serde_json::{Map, Value};

use super::requests::Samples;
use super::round::{Checks, Update};
use super::server::ServerModels;
use crate::admin;
use crate::args::{option, switch, text, texts};
use crate::output::Output;
use crate::plugin::model::Model;
use crate::plugin::named_models::{self, Given};
use crate::plugin::settings;
use crate::plugin::within::inside;

/// The folder of requests, in the plugin's folder.
const REQUESTS: &str = "requests";

pub(crate) fn command() -> Command {
    let file = |name| option(name, "FILE").value_parser(value_parser!(PathBuf));
    let plugin = Arg::new("plugin")
        .value_name("PLUGIN")
        .value_parser(value_parser!(PathBuf))
        .conflicts_with_all(["pre", "post"])
        .help("The plugin's folder, which is built first, or its component [default: .]");
    let pre = file("pre").help("The preprocessor, if the postprocessor is another plugin");
    let post = file("post").help("The postprocessor, if the preprocessor is another plugin");
    let requests = file("requests")
        .help("The folder of requests [default: requests/ in the plugin's folder, or here]");
    let library = file("onnxruntime-library").help(
        "ONNX Runtime's shared library [default: ORT_DYLIB_PATH, or one in onnxruntime/ of \
         gristmill-data or target, here or above, or beside this program, or that of Python's \
         package onnxruntime]",
    );
    Command::new("test")
        .about("Run sample requests through a plugin and a model, here or on a server")
        .after_help(HELP)
        .args([
            plugin,
            option("model", "FILE or NAME").required(true).action(ArgAction::Append).help(
                "The model: a file as ONNX or its folder, or with --tenant one on the server. \
                 For a handler NAME=MODEL, once for each model that its code names",
            ),
            option("tenant", "NAME")
                .conflicts_with("repeat")
                .help("Test on the server, as a plugin of this tenant"),
            pre.requires("post"),
            post.requires("pre"),
            file("settings").help("The pipeline's settings: a JSON object"),
            option("asset", "NAME=FILE").action(ArgAction::Append).help(
                "A file that the pipeline names under assets, which the plugin opens by NAME; the \
                 plugin's own files are there anyway. With --tenant it is NAME=ASSET, an asset \
                 of the tenant, maybe with a version: prices@3",
            ),
            requests.value_name("DIR"),
            switch("update")
                .help("Write the expectations that are missing or differ")
                .conflicts_with("watch"),
            switch("allow-failures")
                .help("With --update: write also that a request fails")
                .requires("update"),
            switch("watch").help("Build and run again when files change, until Ctrl-C"),
            option("tolerance", "NUMBER")
                .value_parser(value_parser!(f64))
                .allow_negative_numbers(true)
                .default_value("1e-4")
                .help("How far a number may be from the expected x: by NUMBER + NUMBER * |x|"),
            option("instance-reuse", "MODE")
                .value_parser(["none", "request", "tenant"])
                .default_value("none")
                .help("Which calls share an instance, as the pipeline's instance_reuse"),
            option("repeat", "N")
                .value_parser(value_parser!(u32).range(1..=100_000))
                .default_value("1")
                .help("Run each request N times; the median times are shown, too"),
            library.env("GRISTMILL_ONNXRUNTIME_LIBRARY"),
        ])
        .args(admin::asking())
}

const HELP: &str = "\
Requests are files in requests/:
  seven.png            a body; the content type follows from the extension
  big.request.json     {\"content_type\": \"image/png\", \"headers\": {\"x-user\": \"7\"},
                        \"query\": \"size=2\", \"body_file\": \"big.bin\"}
                       instead of body_file: \"body\", which is text or JSON

The expected answer stands beside the request. Each part may be left out:
  seven.expected.json  {\"status\": 200, \"content_type\": \"application/json\", \"json\": {\"label\": 7}}
                       for other bodies \"text\" or \"body_sha256\" instead of \"json\"
                       \"at\": {\"/top/0/label\": 7} checks single values of a JSON body, by JSON pointers;
                       \"tolerance\": 0.01 goes before --tolerance
  big.expected.json    {\"code\": \"invalid_request\", \"detail\": \"the picture is too large\"}
--update writes these files from the answers. Read them before you commit them. An answer that
tells a failure is written with --allow-failures, or if a failure was expected before. Without an
expectation a request only has to succeed. Whole numbers must be equal, other numbers nearly. The
samples of a pipeline on a server have their expected answers in the same form.

With --tenant, a server that runs the model answers, and makes no release: its plugins and
pipelines stay as they are. Requests of up to 180 KB can be sent. A deploy token of the tenant suffices.

Shown are the times of each stage, the CPU time and the memory of each plugin call with their
limits, all log lines of the plugin, and panics with the plugin's own message. Of a server, the
answers and the reasons of failures are shown.

Examples:
  gristmill plugin test --model model.onnx             build and test the plugin in this folder
  gristmill plugin test --model model.onnx --update    write the expectations
  gristmill plugin test --model model.onnx --watch     again after each change
  gristmill plugin test digits.wasm --model digits.onnx --requests samples
  gristmill plugin test --pre pre.wasm --post post.wasm --model ranker.onnx
  gristmill plugin test --model model.onnx --instance-reuse tenant --repeat 100
  gristmill plugin test --model model.onnx --asset prices.json=prices/today.json
  gristmill plugin test --model digits --tenant acme   with the model of a server
  gristmill plugin test --model digits --tenant acme --asset prices.json=prices
                                                       and an asset of the tenant
  gristmill plugin test --model detect=det.onnx --model read=rec.onnx
                                                       a handler, with the models that it names

The exit code is 1 if a request failed.";

/// Where the models are.
pub(super) enum TestedModels {
    Files(Vec<Given<PathBuf>>),
    OnServer(Box<ServerModels>),
}

/// The command line.
pub(super) struct Options {
    pub(super) plugin: PathBuf,
    /// Another plugin that does the postprocessing.
    pub(super) post: Option<PathBuf>,
    pub(super) models: TestedModels,
    pub(super) library: Option<PathBuf>,
    pub(super) settings: Option<PathBuf>,
    /// Files, or assets of the tenant on the server, by the names under which plugins open them.
    assets: Vec<(String, String)>,
    /// The folder of requests, unless it is the one beside the plugin.
    pub(super) requests: Option<PathBuf>,
    pub(super) reuse: Reuse,
    pub(super) checks: Checks,
    pub(super) watch: bool,
    pub(super) as_json: bool,
}

impl TestedModels {
    fn of(matches: &ArgMatches) -> Result<Self> {
        let values = matches.get_many::<String>("model").context("--model is missing")?;
        let given_models =
            values.map(|value| named_models::read(value)).collect::<Result<Vec<_>>>()?;
        match matches.get_one::<String>("tenant") {
            None => {
                let files =
                    given_models.into_iter().map(|model| model.map(file)).collect::<Result<_>>()?;
                admin::refuse_flags(matches, "no server is asked without --tenant")?;
                Ok(Self::Files(files))
            }
            Some(tenant) => {
                let models = given_models.into_iter().map(|model| model.map(on_server));
                let models = models.collect::<Result<_>>()?;
                ServerModels::of(models, tenant, matches)
                    .map(|models| Self::OnServer(models.into()))
            }
        }
    }
}

fn file(model: &str) -> Result<PathBuf> {
    match Model::named(model) {
        Model::File(file) => Ok(file),
        Model::OnServer(model) => bail!(
            "--model: there is no file {model}; for a model on a server name the tenant whose \
             plugin it is (--tenant)"
        ),
    }
}

/// A folder here may have the name of a model on the server.
fn on_server(model: &str) -> Result<Name> {
    match Model::named(model) {
        Model::File(file) if model.contains(['/', '.']) => {
            let kind = if file.is_dir() { "folder" } else { "file" };
            bail!("--tenant is for a model on a server, and {} is a {kind}", file.display())
        }
        _ => admin::model_name("--model", model),
    }
}

/// The values of `--asset`. With `--tenant` each names an asset, otherwise a file.
fn assets(matches: &ArgMatches) -> Result<Vec<(String, String)>> {
    let tenant = matches.get_one::<String>("tenant");
    let form = if tenant.is_some() { "NAME=ASSET" } else { "NAME=FILE" };
    let values = texts(matches, "asset");
    let read = |value: &String| {
        let (name, of) =
            value.split_once('=').with_context(|| format!("--asset {value} is not {form}"))?;
        if let Some(fault) = asset_name_fault(name) {
            bail!("--asset {value}: the name {fault}");
        }
        if let Some(tenant) = tenant
            && let Err(error) = of.split('@').next().unwrap_or_default().parse::<Name>()
        {
            bail!(
                "--asset {value}: with --tenant it names an asset of the tenant, and {error}: push \
                 the file first with `gristmill asset push FILE --tenant {tenant}`"
            );
        }
        Ok((name.to_owned(), of.to_owned()))
    };
    values.map(read).collect()
}

impl Options {
    pub(super) fn of(matches: &ArgMatches) -> Result<Self> {
        let path = |name: &str| matches.get_one::<PathBuf>(name).cloned();
        let plugin = path("plugin").or_else(|| path("pre")).unwrap_or_else(|| ".".into());
        let tolerance = *matches.get_one::<f64>("tolerance").context("--tolerance is missing")?;
        ensure!((0.0..=1.0).contains(&tolerance), "--tolerance is {tolerance}: must be 0 to 1");
        let repeat: u32 = *matches.get_one("repeat").context("--repeat is missing")?;
        Ok(Self {
            plugin,
            post: path("post"),
            models: TestedModels::of(matches)?,
            library: path("onnxruntime-library"),
            settings: path("settings"),
            assets: assets(matches)?,
            requests: path("requests"),
            reuse: match text(matches, "instance-reuse") {
                Some("request") => Reuse::Request,
                Some("tenant") => Reuse::Tenant(TenantReuse::default()),
                _ => Reuse::None,
            },
            checks: Checks {
                tolerance,
                repeat: repeat as usize,
                update: match (matches.get_flag("update"), matches.get_flag("allow-failures")) {
                    (false, _) => Update::Never,
                    (true, false) => Update::Successes,
                    (true, true) => Update::All,
                },
            },
            watch: matches.get_flag("watch"),
            as_json: Output::of(matches) == Output::Json,
        })
    }

    /// The plugins' folders or files.
    pub(super) fn plugins(&self) -> Vec<&Path> {
        [Some(&self.plugin), self.post.as_ref()]
            .into_iter()
            .flatten()
            .map(PathBuf::as_path)
            .collect()
    }

    /// The folder of requests.
    pub(super) fn requests(&self) -> PathBuf {
        match &self.requests {
            Some(folder) => folder.clone(),
            None if self.plugin.is_dir() => self.plugin.join(REQUESTS),
            None => REQUESTS.into(),
        }
    }

    /// Read the requests.
    ///
    /// # Errors
    /// One is faulty, or the folder beside the plugin is a link that leads out.
    pub(super) fn samples(&self) -> Result<Samples> {
        if self.requests.is_none() {
            let folder = if self.plugin.is_dir() { &*self.plugin } else { Path::new(".") };
            inside(folder, REQUESTS)?;
        }
        Samples::read(&self.requests())
    }

    /// The key `assets` of a pipeline on the server.
    pub(super) fn named_assets(&self) -> BTreeMap<&str, &str> {
        self.assets.iter().map(|(name, asset)| (name.as_str(), asset.as_str())).collect()
    }

    /// The files of `--asset`, as they are now.
    pub(super) fn assets(&self) -> Result<Assets> {
        let read = |(name, path): &(String, String)| -> Result<(Box<str>, Arc<Asset>)> {
            let bytes = std::fs::read(path).with_context(|| path.clone())?;
            Ok((name.as_str().into(), Arc::new(Asset::new(bytes.into()))))
        };
        self.assets.iter().map(read).collect()
    }

    /// The settings.
    pub(super) fn settings(&self) -> Result<Map<String, Value>> {
        self.settings.as_deref().map_or_else(|| Ok(Map::new()), settings::read)
    }
}
