//! `gristmill plugin test`: sample requests through a plugin and its models, without a server or on
//! one.
//!
//! Without a server, the parts are those of one: the sandbox with its limits, the batcher, the
//! backend, and the code that makes a plugin's request of an HTTP request and an answer of its
//! response.

mod expectation;
mod host;
mod options;
mod report;
mod requests;
mod round;
mod server;

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::ArgMatches;
use gristmill_core::PluginLimits;
use gristmill_imaging::is_decoding;
use gristmill_log::LogFormat;
use gristmill_text::is_tokenizing;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use self::host::{Host, PipelineFiles};
pub(crate) use self::options::command;
use self::options::{Options, TestedModels};
use self::requests::Samples;
use self::round::{Tested, check_all, expectations, round};
use self::server::Uploaded;
use super::build::build;
use super::named_models::Given;
use super::watch::Files;

/// The host's warnings are written to standard error. What these modules say about a request is
/// shown with the request.
const HOSTS_LINES: &str = "gristmill=warn,gristmill_serve=off,gristmill_sandbox::capability=off";

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    let options = Options::of(matches)?;
    let is_watching = options.watch;
    let is_of_input = || is_decoding() || is_tokenizing();
    let log = gristmill_log::init(HOSTS_LINES, LogFormat::Text, &[], is_of_input)?;
    let mut session = Session::new(options)?;
    let ended = if is_watching { session.watch() } else { session.build_and_run() };
    log.flush();
    ended
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
        if let TestedModels::Files(models) = &self.options.models {
            for Given { model, .. } in models {
                let failed = || format!("--model: cannot read {}", model.display());
                File::open(model).with_context(failed)?;
            }
        }
        self.options.settings()?;
        expectations(&self.options.samples()?)?;
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
        let samples = self.options.samples()?;
        for file in &samples.skipped {
            eprintln!(
                "{}: skipped, its extension has no content type",
                self.options.requests().join(file).display()
            );
        }
        match &self.options.models {
            TestedModels::Files(models) => self.run_here(&models.clone(), components, &samples),
            TestedModels::OnServer(_) => self.run_on_server(components, &samples),
        }
    }

    fn run_here(
        &mut self,
        models: &[Given<PathBuf>],
        components: &Components,
        samples: &Samples,
    ) -> Result<()> {
        let options = &self.options;
        let files = PipelineFiles {
            pre: components.plugin.clone(),
            post: components.post.clone(),
            settings: Value::Object(options.settings()?).to_string(),
            reuse: options.reuse.clone(),
            assets: options.assets()?,
        };
        if self.host.is_none() {
            let _entered = self.runtime.enter();
            let opened = Host::open(models, options.library.as_deref(), &options.plugins())?;
            self.host = Some(opened);
        }
        let Some(host) = &self.host else { bail!("the models are not loaded") };
        let route = self.runtime.block_on(host.route(&files))?;
        let limits = &route.limits.plugin;
        self.begin(&host.models_are(), components);
        let mut tally = Tally::default();
        let report = |tested: &Tested<'_>| tally.report(tested, limits, options.as_json);
        let tested = round(&route, samples, options.checks, report);
        self.runtime.block_on(tested)?;
        tally.ended(Some(limits), options.as_json)
    }

    fn run_on_server(&self, components: &Components, samples: &Samples) -> Result<()> {
        let options = &self.options;
        let TestedModels::OnServer(models) = &options.models else { bail!("the models are files") };
        let uploaded = Uploaded {
            pre: &components.plugin,
            post: components.post.as_deref(),
            settings: &options.settings()?,
            reuse: &options.reuse,
            assets: options.named_assets(),
        };
        self.begin(&models.lines(), components);
        let runs = models.run(&uploaded, &samples.list)?.into_iter().map(|ran| vec![ran]).collect();
        let (mut tally, limits) = (Tally::default(), PluginLimits::default());
        let report = |tested: &Tested<'_>| tally.report(tested, &limits, options.as_json);
        check_all(samples, runs, options.checks, report)?;
        tally.ended(None, options.as_json)
    }

    /// Say what is tested.
    fn begin(&self, models: &[String], components: &Components) {
        if !self.options.as_json {
            models.iter().for_each(|model| println!("model   {model}"));
            for plugin in [Some(&components.plugin), components.post.as_ref()].into_iter().flatten()
            {
                println!("plugin  {}", plugin.display());
            }
        }
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
    fn report(&mut self, tested: &Tested<'_>, limits: &PluginLimits, as_json: bool) {
        match tested.passed {
            true => self.passed += 1,
            false => self.failed += 1,
        }
        self.without_expectation += usize::from(!tested.has_expectation);
        match as_json {
            true => self.documents.push(report::document(tested)),
            false => print!("{}", report::text(tested, limits)),
        }
    }

    /// Say how many passed. Fails if one failed. `limits` are those of the calls, if they are
    /// known.
    fn ended(&self, limits: Option<&PluginLimits>, as_json: bool) -> Result<()> {
        let Self { passed, failed, without_expectation, .. } = self;
        if as_json {
            let document = json!({
                "limits": limits.map(report::limits_document),
                "requests": self.documents,
                "passed": passed,
                "failed": failed,
            });
            println!("{document:#}");
        }
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
