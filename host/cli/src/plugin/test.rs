//! `gristmill plugin test`: sample requests through a plugin and a model, without a server.
//!
//! The parts are those of a server: the sandbox with its limits, the batcher, the backend, and the
//! code that makes a plugin's request of an HTTP request and an answer of its response.

mod expectation;
mod host;
mod report;
mod requests;
mod round;

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use gristmill_imaging::is_decoding;
use gristmill_log::LogFormat;
use gristmill_sandbox::{Reuse, TenantReuse};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use self::host::{Host, PipelineFiles};
use self::requests::Samples;
use self::round::{Checks, Tested, Update, round};
use super::build::build;
use super::settings;
use super::watch::Files;
use super::within::inside;
use crate::output::{self, Output};

/// The folder of requests, in the plugin's folder.
const REQUESTS: &str = "requests";

/// The host's warnings are written to standard error. What these modules say about a request is
/// shown with the request.
const HOSTS_LINES: &str = "gristmill=warn,gristmill_serve=off,gristmill_sandbox::capability=off";

pub(crate) fn command() -> Command {
    let file = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("FILE").value_parser(value_parser!(PathBuf)).help(help)
    };
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
    };
    let plugin = Arg::new("plugin")
        .value_name("PLUGIN")
        .value_parser(value_parser!(PathBuf))
        .conflicts_with_all(["pre", "post"])
        .help("The plugin's folder, which is built first, or its component [default: .]");
    let pre = file("pre", "The preprocessor, if the postprocessor is another plugin");
    let post = file("post", "The postprocessor, if the preprocessor is another plugin");
    let requests = file(
        "requests",
        "The folder of requests [default: requests/ in the plugin's folder, or here]",
    );
    let library = file(
        "onnxruntime-library",
        "ONNX Runtime's shared library [default: ORT_DYLIB_PATH, or one in onnxruntime/ of \
         gristmill-data or target, here or above, or beside this program, or that of Python's \
         package onnxruntime]",
    );
    Command::new("test")
        .about("Run sample requests through a plugin and a model, without a server")
        .after_help(HELP)
        .arg(plugin)
        .arg(file("model", "The model, as ONNX").required(true))
        .arg(pre.requires("post"))
        .arg(post.requires("pre"))
        .arg(file("settings", "The pipeline's settings: a JSON object"))
        .arg(requests.value_name("DIR"))
        .arg(
            flag("update", "Write the expectations that are missing or differ")
                .conflicts_with("watch"),
        )
        .arg(
            flag("allow-failures", "With --update: write also that a request fails")
                .requires("update"),
        )
        .arg(flag("watch", "Build and run again when files change, until Ctrl-C"))
        .arg(
            Arg::new("tolerance")
                .long("tolerance")
                .value_name("NUMBER")
                .value_parser(value_parser!(f64))
                .allow_negative_numbers(true)
                .default_value("1e-4")
                .help("How far a number may be from the expected x: by NUMBER + NUMBER * |x|"),
        )
        .arg(
            Arg::new("instance-reuse")
                .long("instance-reuse")
                .value_name("MODE")
                .value_parser(["none", "request", "tenant"])
                .default_value("none")
                .help("Which calls share an instance, as the pipeline's instance_reuse"),
        )
        .arg(
            Arg::new("repeat")
                .long("repeat")
                .value_name("N")
                .value_parser(value_parser!(u32).range(1..=100_000))
                .default_value("1")
                .help("Run each request N times; the median times are shown, too"),
        )
        .arg(library.env("GRISTMILL_ONNXRUNTIME_LIBRARY"))
        .arg(output::argument())
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

Shown are the times of each stage, the CPU time and the memory of each plugin call with their
limits, all log lines of the plugin, and panics with the plugin's own message.

Examples:
  gristmill plugin test --model model.onnx             build and test the plugin in this folder
  gristmill plugin test --model model.onnx --update    write the expectations
  gristmill plugin test --model model.onnx --watch     again after each change
  gristmill plugin test digits.wasm --model digits.onnx --requests samples
  gristmill plugin test --pre pre.wasm --post post.wasm --model ranker.onnx
  gristmill plugin test --model model.onnx --instance-reuse tenant --repeat 100

The exit code is 1 if a request failed.";

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let options = Options::of(matches)?;
    let is_watching = options.watch;
    let log = gristmill_log::init(HOSTS_LINES, LogFormat::Text, &[], is_decoding)?;
    let mut session = Session::new(options)?;
    let ended = if is_watching { session.watch() } else { session.build_and_run() };
    log.flush();
    ended
}

/// The command line.
struct Options {
    plugin: PathBuf,
    /// Another plugin that does the postprocessing.
    post: Option<PathBuf>,
    model: PathBuf,
    library: Option<PathBuf>,
    settings: Option<PathBuf>,
    /// The folder of requests, unless it is the one beside the plugin.
    requests: Option<PathBuf>,
    reuse: Reuse,
    checks: Checks,
    watch: bool,
    as_json: bool,
}

impl Options {
    fn of(matches: &ArgMatches) -> Result<Self> {
        let path = |name: &str| matches.get_one::<PathBuf>(name).cloned();
        let plugin = path("plugin").or_else(|| path("pre")).unwrap_or_else(|| ".".into());
        let tolerance = *matches.get_one::<f64>("tolerance").context("--tolerance is missing")?;
        ensure!((0.0..=1.0).contains(&tolerance), "--tolerance is {tolerance}: must be 0 to 1");
        let repeat: u32 = *matches.get_one("repeat").context("--repeat is missing")?;
        let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
        Ok(Self {
            plugin,
            post: path("post"),
            model: path("model").context("--model is missing")?,
            library: path("onnxruntime-library"),
            settings: path("settings"),
            requests: path("requests"),
            reuse: match text("instance-reuse") {
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
    fn plugins(&self) -> Vec<&Path> {
        [Some(&self.plugin), self.post.as_ref()]
            .into_iter()
            .flatten()
            .map(PathBuf::as_path)
            .collect()
    }

    /// The folder of requests.
    fn requests(&self) -> PathBuf {
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
    fn samples(&self) -> Result<Samples> {
        if self.requests.is_none() {
            let folder = if self.plugin.is_dir() { &*self.plugin } else { Path::new(".") };
            inside(folder, REQUESTS)?;
        }
        Samples::read(&self.requests())
    }

    /// The settings as a JSON document.
    fn settings(&self) -> Result<String> {
        let Some(path) = &self.settings else { return Ok("{}".into()) };
        Ok(Value::Object(settings::read(path)?).to_string())
    }
}

/// The plugins' components.
struct Components {
    plugin: PathBuf,
    post: Option<PathBuf>,
}

/// A test, or a series of tests while files change.
struct Session {
    options: Options,
    runtime: Runtime,
    /// Opened when the plugins are built.
    host: Option<Host>,
}

/// The results of one round.
#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    without_expectation: usize,
    documents: Vec<Value>,
}

impl Session {
    fn new(options: Options) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        Ok(Self { options, runtime, host: None })
    }

    fn build_and_run(&mut self) -> Result<()> {
        // Mistakes in them are found before a build, which may take a minute.
        let model = &self.options.model;
        File::open(model).with_context(|| format!("--model: cannot read {}", model.display()))?;
        self.options.settings()?;
        self.options.samples()?;
        let components = self.components()?;
        self.run(&components)
    }

    fn components(&self) -> Result<Components> {
        let component = |path: &Path| match path.is_dir() {
            true => Ok(build(path, None)?.path),
            false => Ok::<_, anyhow::Error>(path.to_owned()),
        };
        let post = self.options.post.as_deref().map(component).transpose()?;
        Ok(Components { plugin: component(&self.options.plugin)?, post })
    }

    /// Run all requests. Fails if one of them fails.
    fn run(&mut self, components: &Components) -> Result<()> {
        let options = &self.options;
        let samples = options.samples()?;
        let files = PipelineFiles {
            pre: components.plugin.clone(),
            post: components.post.clone(),
            settings: options.settings()?,
            reuse: options.reuse.clone(),
        };
        if self.host.is_none() {
            let _entered = self.runtime.enter();
            let opened = Host::open(&options.model, options.library.clone(), &options.plugins())?;
            self.host = Some(opened);
        }
        let Some(host) = &self.host else { bail!("the model is not loaded") };
        let route = self.runtime.block_on(host.route(&files))?;
        let limits = &route.limits.plugin;
        if !options.as_json {
            println!("model   {} ({})", options.model.display(), host.model_is);
            for plugin in [Some(&files.pre), files.post.as_ref()].into_iter().flatten() {
                println!("plugin  {}", plugin.display());
            }
        }
        for file in &samples.skipped {
            eprintln!(
                "{}: skipped, its extension has no content type",
                options.requests().join(file).display()
            );
        }
        let mut tally = Tally::default();
        let report = |tested: &Tested<'_>| {
            tally.add(tested);
            match options.as_json {
                true => tally.documents.push(report::document(tested)),
                false => print!("{}", report::text(tested, limits)),
            }
        };
        let tested = round(&route, &samples, options.checks, report);
        self.runtime.block_on(tested)?;
        if options.as_json {
            let document = json!({
                "limits": report::limits_document(limits),
                "requests": tally.documents,
                "passed": tally.passed,
                "failed": tally.failed,
            });
            println!("{document:#}");
        }
        tally.ended(options.as_json)
    }

    /// Run again whenever files change, until the process is ended.
    fn watch(&mut self) -> Result<()> {
        let requests = self.options.requests();
        let Options { plugin, post, settings, .. } = &self.options;
        let paths = [Some(plugin), post.as_ref(), Some(&requests), settings.as_ref()];
        let paths: Vec<_> = paths.into_iter().flatten().cloned().collect();
        let mut seen = Files::of(&paths);
        let mut components = self.components();
        loop {
            let ended = match &components {
                Ok(components) => self.run(components),
                Err(error) => Err(anyhow::anyhow!("{error:#}")),
            };
            if let Err(error) = ended {
                eprintln!("error: {error:#}");
            }
            eprintln!("waiting for changes, Ctrl-C ends");
            let now = seen.wait_for_change(&paths);
            let settings = self.options.settings.as_deref();
            let is_source = |path: &Path| !path.starts_with(&requests) && Some(path) != settings;
            let needs_build = seen.changed(&now).any(is_source);
            seen = now;
            if needs_build || components.is_err() {
                components = self.components();
            }
        }
    }
}

impl Tally {
    fn add(&mut self, tested: &Tested<'_>) {
        match tested.passed {
            true => self.passed += 1,
            false => self.failed += 1,
        }
        self.without_expectation += usize::from(!tested.has_expectation);
    }

    /// Say how many passed. Fails if one failed.
    fn ended(&self, as_json: bool) -> Result<()> {
        let Self { passed, failed, without_expectation, .. } = self;
        if *without_expectation > 0 && !as_json {
            println!(
                "requests without an expectation: {without_expectation}; they only have to succeed \
                 (--update writes expectations)"
            );
        }
        let all = passed + failed;
        ensure!(*failed == 0, "{failed} of {all} requests failed");
        if !as_json {
            println!("{all} of {all} requests passed");
        }
        Ok(())
    }
}
