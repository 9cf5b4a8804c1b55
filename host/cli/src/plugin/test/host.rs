//! The parts of a server that a pipeline needs: the sandbox, the model's lane, the limits.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use gristmill_backend::LoadedModel;
use gristmill_batch::{Lane, LaneParts};
use gristmill_core::{ByteBudget, Digest, Name, PipelineLimits};
use gristmill_metrics::{LabelSlots, RequestTarget};
use gristmill_sandbox::{
    Account, Grant, LineSource, Plugin, PluginPair, Reuse, Sandbox, SandboxConfig,
};
use gristmill_snapshot::{Pair, Program, Route, TenantQuota};
use gristmill_state::ModelConfig;

use crate::plugin::build_folder::BuildFolder;
use crate::plugin::component_file::{self, LARGE_BYTES};
use crate::plugin::{children, loading, model};

/// As the default of the server's setting `tenant_bytes_max`.
const TENANT_BYTES_MAX: usize = 1 << 30;

/// The plugin calls that may run at the same time, for each core, as in a server.
const CALLS_PER_CORE: usize = 8;

/// A sandbox and a model that is loaded.
pub(super) struct Host {
    sandbox: Arc<Sandbox>,
    model: Arc<Lane>,
    model_name: Name,
    /// The provider that runs the model, and warnings about it.
    pub(super) model_is: String,
    limits: PipelineLimits,
}

/// The files and the settings of a pipeline.
pub(super) struct PipelineFiles {
    pub(super) pre: PathBuf,
    /// None if the preprocessor's file does both.
    pub(super) post: Option<PathBuf>,
    /// A JSON document.
    pub(super) settings: String,
    pub(super) reuse: Reuse,
}

impl Host {
    /// Load `model`. Compiled plugins are kept in a folder that belongs to `plugins`.
    pub(super) fn open(model: &Path, library: Option<PathBuf>, plugins: &[&Path]) -> Result<Self> {
        let pool = model::pool();
        let config = ModelConfig::default();
        let loaded = model::load(model, library, &pool)?;
        let mut lane = config.lane();
        lane.leads = loaded.may_lead();
        let LoadedModel { info, instances, providers, staging, warnings, .. } = loaded;
        let mut model_is = providers.first().map_or_else(String::new, |one| one.kind.to_string());
        warnings.iter().for_each(|warning| model_is.push_str(&format!("; {warning}")));
        let model_name = name_of(model, "model")?;
        let name = model_name.as_str();
        let parts = LaneParts { name, info, instances, config: lane, pool: staging };
        let model = Arc::new(Lane::new(parts)?);
        let usual = loading::config(compiled(plugins)?)?;
        let sandbox = SandboxConfig { compiler: children::compiler(), ..usual };
        let sandbox = Sandbox::new(&sandbox, pool).context("cannot set up the sandbox")?;
        Ok(Self { sandbox, model, model_name, model_is, limits: PipelineLimits::default() })
    }

    /// The pipeline, with its plugins loaded.
    pub(super) async fn route(&self, files: &PipelineFiles) -> Result<Arc<Route>> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let bytes = ByteBudget::new(TENANT_BYTES_MAX);
        let calls = Account::new(cores * CALLS_PER_CORE, cores, bytes.clone());
        let quota = Arc::new(TenantQuota::new(calls, bytes));
        let (pre, pre_digest) = self.plugin(&files.pre, &quota.calls).await?;
        let post_file = files.post.as_ref().unwrap_or(&files.pre);
        let (post, post_digest) = match &files.post {
            Some(file) => self.plugin(file, &quota.calls).await?,
            None => (pre.clone(), pre_digest),
        };
        // Removes the code of earlier versions.
        let is_used = move |digest| [pre_digest, post_digest].contains(&digest);
        self.sandbox.retain_compiled(is_used).await?;
        let (pre_name, post_name) = (name_of(&files.pre, "plugin")?, name_of(post_file, "plugin")?);
        let lacks = |file: &Path, world: &str, what: &str| {
            format!(
                "{} is a {world} and does not export {what}: give both plugins, with --pre and \
                 --post",
                file.display()
            )
        };
        let world = |plugin: &Plugin| plugin.roles().world();
        ensure!(pre.roles().pre, lacks(&files.pre, world(&pre), "preprocess"));
        ensure!(post.roles().post, lacks(post_file, world(&post), "postprocess"));
        let source = |plugin: Name, call| {
            let (pipeline, kept) = (pre_name.clone(), quota.lines.clone());
            Arc::new(LineSource { plugin, pipeline, call, kept })
        };
        let target = RequestTarget::Pipeline(pre_name.clone());
        let figures = LabelSlots::new(0).figures("test".parse()?, target);
        Ok(Arc::new(Route {
            tenant: "test".parse()?,
            pipeline: pre_name.clone(),
            program: Program::Pair(Pair {
                plugins: PluginPair::new(pre, post, &files.reuse, &quota.calls),
                pre: source(pre_name.clone(), "preprocess"),
                model: self.model_name.clone(),
                lane: self.model.clone(),
                post: source(post_name, "postprocess"),
            }),
            settings: files.settings.as_str().into(),
            debug: false,
            weight: 1,
            keeps_apart: false,
            priority: None,
            limits: self.limits.clone(),
            quota,
            figures: Arc::new(figures),
            usage: Arc::default(),
            capture: None,
            candidate: None,
            ended: None,
        }))
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
        let probed = plugin.probe(Grant { limits, account, lines: None, usage: None }).await;
        probed.context("it cannot be instantiated").with_context(cannot)?;
        Ok((plugin, digest))
    }
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
