//! The parts of a server that a pipeline needs: the sandbox, the models' lanes, the limits.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use gristmill_backend::LoadedModel;
use gristmill_batch::{Lane, LaneParts};
use gristmill_core::{ByteBudget, Digest, Name, Origins, PipelineLimits};
use gristmill_metrics::{LabelSlots, RequestTarget};
use gristmill_sandbox::{
    Account, Assets, Grant, HandlerPlugin, LineSource, Plugin, PluginPair, Reuse, Sandbox,
    SandboxConfig,
};
use gristmill_snapshot::{Handler, HandlerModel, Pair, Program, Route, TenantQuota};
use gristmill_state::ModelConfig;

use crate::plugin::build_folder::BuildFolder;
use crate::plugin::component_file::{self, LARGE_BYTES};
use crate::plugin::model::{self, Loader};
use crate::plugin::named_models::{Given, by_name, only};
use crate::plugin::{children, loading};

/// As the default of the server's setting `tenant_bytes_max`.
const TENANT_BYTES_MAX: usize = 1 << 30;

/// The plugin calls that may run at the same time, for each core, as in a server.
const CALLS_PER_CORE: usize = 8;

/// A sandbox and models that are loaded.
pub(super) struct Host {
    sandbox: Arc<Sandbox>,
    models: Vec<Given<HostModel>>,
    limits: PipelineLimits,
}

/// A model that is loaded.
struct HostModel {
    file: PathBuf,
    /// By the name of its file.
    name: Name,
    lane: Arc<Lane>,
    /// The provider that runs the model, and warnings about it.
    runs_on: String,
}

/// The files and the settings of a pipeline.
pub(super) struct PipelineFiles {
    pub(super) pre: PathBuf,
    /// None if the preprocessor's file does both.
    pub(super) post: Option<PathBuf>,
    /// A JSON document.
    pub(super) settings: String,
    pub(super) reuse: Reuse,
    /// The files that its plugins can open besides their own.
    pub(super) assets: Assets,
}

impl Host {
    /// Load the models. Compiled plugins are kept in a folder that belongs to `plugins`.
    pub(super) fn open(
        models: &[Given<PathBuf>],
        library: Option<&Path>,
        plugins: &[&Path],
    ) -> Result<Self> {
        let pool = model::pool();
        let loader = Loader::open(library.map(Path::to_owned), &pool)?;
        let load =
            |given_model: &Given<PathBuf>| given_model.clone().map(|file| load(file, &loader));
        let models = models.iter().map(load).collect::<Result<_>>()?;
        let usual = loading::config(compiled(plugins)?)?;
        let sandbox = SandboxConfig { compiler: children::compiler(), ..usual };
        let sandbox = Sandbox::new(&sandbox, pool).context("cannot set up the sandbox")?;
        Ok(Self { sandbox, models, limits: PipelineLimits::default() })
    }

    /// The models, for people.
    pub(super) fn models_are(&self) -> Vec<String> {
        let line = |given_model: &Given<HostModel>| {
            let HostModel { file, runs_on, .. } = &given_model.model;
            given_model.line(&format!("{} ({runs_on})", file.display()))
        };
        self.models.iter().map(line).collect()
    }

    /// The pipeline, with its plugins loaded.
    pub(super) async fn route(&self, files: &PipelineFiles) -> Result<Arc<Route>> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let bytes = ByteBudget::new(TENANT_BYTES_MAX);
        let calls = Account::new(cores * CALLS_PER_CORE, cores, bytes.clone());
        let quota = Arc::new(TenantQuota::new(calls, bytes));
        let (pre, pre_digest) = self.plugin(&files.pre, &quota.calls).await?;
        let (post, post_digest) = match &files.post {
            Some(file) => self.plugin(file, &quota.calls).await?,
            None => (pre.clone(), pre_digest),
        };
        // Removes the code of earlier versions.
        let is_used = move |digest| [pre_digest, post_digest].contains(&digest);
        self.sandbox.retain_compiled(is_used).await?;
        let program = match pre.roles().handle {
            true => Program::Handler(self.handler(files, pre, &quota)?),
            false => Program::Pair(self.pair(files, [pre, post], &quota)?),
        };
        let models: BTreeSet<Name> = match &program {
            Program::Pair(pair) => [pair.model.clone()].into(),
            Program::Handler(handler) => {
                handler.models.values().map(|model| model.model.clone()).collect()
            }
        };
        let pipeline = name_of(&files.pre, "plugin")?;
        let target = RequestTarget::Pipeline(pipeline.clone());
        let figures = LabelSlots::new(0).figures("test".parse()?, target);
        Ok(Arc::new(Route {
            tenant: "test".parse()?,
            pipeline,
            program,
            settings: files.settings.as_str().into(),
            debug: false,
            // Which pages a tenant allows is not known here.
            redirects: Origins::any(),
            weight: 1,
            keeps_apart: false,
            priority: None,
            signature: None,
            limits: self.limits.clone(),
            quota,
            stores: None,
            outgoing: None,
            figures: Arc::new(figures),
            usage: models.into_iter().map(|model| (model, Arc::default())).collect(),
            capture: None,
            candidate: None,
            ended: None,
        }))
    }

    /// The plugins around the only model.
    fn pair(
        &self,
        files: &PipelineFiles,
        [pre, post]: [Arc<Plugin>; 2],
        quota: &TenantQuota,
    ) -> Result<Pair> {
        let post_file = files.post.as_ref().unwrap_or(&files.pre);
        let is = |file: &Path, plugin: &Plugin| {
            format!("{} is a {}", file.display(), plugin.roles().world())
        };
        let lacks = |is: &str, what: &str| {
            format!("{is} and does not export {what}: give both plugins, with --pre and --post")
        };
        let [pre_is, post_is] = [is(&files.pre, &pre), is(post_file, &post)];
        ensure!(pre.roles().pre, lacks(&pre_is, "preprocess"));
        ensure!(post.roles().post, lacks(&post_is, "postprocess"));
        let model = only(&self.models, &pre_is)?;
        let (pre_name, post_name) = (name_of(&files.pre, "plugin")?, name_of(post_file, "plugin")?);
        Ok(Pair {
            pre_assets: files.assets.over(pre.assets()).of_owner(&quota.bytes),
            post_assets: files.assets.over(post.assets()).of_owner(&quota.bytes),
            plugins: PluginPair::new(pre, post, &files.reuse, &quota.calls),
            pre: source(&pre_name, pre_name.clone(), "preprocess", quota),
            model: model.name.clone(),
            lane: model.lane.clone(),
            post: source(&pre_name, post_name, "postprocess", quota),
        })
    }

    /// The handler with its models.
    fn handler(
        &self,
        files: &PipelineFiles,
        plugin: Arc<Plugin>,
        quota: &TenantQuota,
    ) -> Result<Handler> {
        ensure!(
            files.post.is_none(),
            "{} is a handler: test it alone, without --pre and --post, and with --model NAME=MODEL \
             for each of its models",
            files.pre.display()
        );
        let name = name_of(&files.pre, "plugin")?;
        let models = by_name(&self.models, |model: &HostModel| Ok(model.name.clone()))?;
        let model = |(name, model): (Name, &HostModel)| {
            (name, HandlerModel { model: model.name.clone(), lane: model.lane.clone() })
        };
        Ok(Handler {
            assets: files.assets.over(plugin.assets()).of_owner(&quota.bytes),
            plugin: HandlerPlugin::new(plugin, &files.reuse, &quota.calls),
            source: source(&name, name.clone(), "handle", quota),
            models: models.into_iter().map(model).collect(),
        })
    }

    /// The plugin in a file, instantiated once, as at its upload; and the file's digest.
    async fn plugin(&self, file: &Path, account: &Account) -> Result<(Arc<Plugin>, Digest)> {
        let cannot = || format!("cannot load {}", file.display());
        let content = Bytes::from(std::fs::read(file).with_context(cannot)?);
        if content.len() > LARGE_BYTES {
            eprintln!("loading {}; the first time this may take a minute", file.display());
        }
        let digest = Digest::of(&content);
        let loaded = self.sandbox.load(digest, content).await;
        let plugin = Arc::new(loaded.with_context(cannot)?);
        let limits = &self.limits.plugin;
        let probed = plugin.probe(Grant::new(limits, account)).await;
        probed.context("it cannot be instantiated").with_context(cannot)?;
        Ok((plugin, digest))
    }
}

/// Load the model in a file.
fn load(file: PathBuf, loader: &Loader) -> Result<HostModel> {
    let config = ModelConfig::default();
    let loaded = loader.load(&file)?;
    let mut lane = config.lane();
    lane.leads = loaded.may_lead();
    let LoadedModel { info, instances, providers, staging, warnings, .. } = loaded;
    let mut runs_on = providers.first().map_or_else(String::new, |one| one.kind.to_string());
    warnings.iter().for_each(|warning| runs_on.push_str(&format!("; {warning}")));
    let name = name_of(&file, "model")?;
    let parts = LaneParts { name: name.as_str(), info, instances, config: lane, pool: staging };
    let lane = Arc::new(Lane::new(parts)?);
    Ok(HostModel { file, name, lane, runs_on })
}

/// The lines of one call of the plugin.
fn source(
    pipeline: &Name,
    plugin: Name,
    call: &'static str,
    quota: &TenantQuota,
) -> Arc<LineSource> {
    let (pipeline, kept) = (pipeline.clone(), quota.lines.clone());
    Arc::new(LineSource { plugin, pipeline, call, kept })
}

/// Where compiled code is kept, so that only the first test of a plugin waits for the compiler: a
/// folder for these plugins, in the folder that builds use.
fn compiled(plugins: &[&Path]) -> Result<PathBuf> {
    let path = |plugin: &&Path| {
        let path = plugin.canonicalize().unwrap_or_else(|_| plugin.to_path_buf());
        path.to_string_lossy().into_owned()
    };
    let paths: Vec<_> = plugins.iter().map(path).collect();
    let digest = Digest::of(paths.join("\n").as_bytes()).hex();
    Ok(BuildFolder::open()?.path().join("plugin-test").join(&digest[..16]))
}

/// A name from the name of a file, `digits` from `digits.component.wasm`; `otherwise` if it is not
/// a valid name.
fn name_of(file: &Path, otherwise: &str) -> Result<Name> {
    let file_name = component_file::name_of(file).to_lowercase();
    Ok(file_name.parse::<Name>().or_else(|_| otherwise.parse())?)
}
