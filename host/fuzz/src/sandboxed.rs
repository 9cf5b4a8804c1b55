//! A sandbox of the server's, with small limits, in a directory of its own.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use gristmill_core::{BufferPool, ByteBudget, Deadline, Digest, Name, PluginLimits};
use gristmill_sandbox::{
    Account, CallError, Context, Grant, LoadError, Plugin, PluginPair, Request, Reuse, Sandbox,
    SandboxConfig,
};
use sha2::Digest as _;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// How long memory may be given back after a call has ended.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct Sandboxed {
    runtime: Runtime,
    sandbox: Arc<Sandbox>,
    budget: Arc<ByteBudget>,
    account: Account,
    limits: PluginLimits,
    context: Arc<Context>,
    directory: TempDir,
}

impl Sandboxed {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let limits = PluginLimits {
            memory_bytes: 4 << 20,
            cpu: Duration::from_millis(100),
            cpu_decoding: Duration::from_millis(100),
            hostcall_bytes: 2 << 20,
            tensor_bytes: 1 << 20,
            host_memory_bytes: 16 << 20,
            pixels: 1 << 16,
            log_bytes: 4 << 10,
            ..PluginLimits::default()
        };
        let config = SandboxConfig {
            concurrent_calls: 4,
            memory_bytes_max: limits.memory_bytes,
            ..SandboxConfig::new(directory.path().to_owned())
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let budget = ByteBudget::new(64 << 20);
        let name = |text: &str| text.parse::<Name>().expect("a name");
        Self {
            runtime: runtime.expect("a runtime"),
            sandbox: Sandbox::new(&config, BufferPool::new(4 << 20)).expect("a sandbox"),
            account: Account::new(4, 2, budget.clone()),
            budget,
            limits,
            context: Arc::new(Context {
                tenant: name("fuzz"),
                pipeline: name("fuzz"),
                model: name("fuzz"),
                request_id: "fuzz".into(),
                settings: "{}".into(),
                deadline: Deadline::at(Instant::now() + Duration::from_secs(1 << 20)),
            }),
            directory,
        }
    }

    /// Where compiled code is kept.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn load(&self, file: &[u8]) -> Result<Plugin, LoadError> {
        let loading = self.sandbox.load(digest_of(file), Bytes::copy_from_slice(file));
        self.runtime.block_on(loading)
    }

    /// Remove all compiled code.
    pub(crate) fn forget(&self) {
        let removed = self.runtime.block_on(self.sandbox.retain_compiled(|_| false));
        removed.expect("the directory can be read");
    }

    /// Make an instance, and drop it.
    pub(crate) fn probe(&self, plugin: Plugin) -> Result<(), CallError> {
        let outcome = self.runtime.block_on(Arc::new(plugin).probe(self.grant()));
        self.assert_given_back();
        outcome
    }

    /// Both places of a pipeline for a plugin. Each call has a fresh instance.
    pub(crate) fn pair(&self, plugin: Plugin) -> PluginPair {
        let plugin = Arc::new(plugin);
        PluginPair::new(plugin.clone(), plugin, &Reuse::None, &self.account)
    }

    /// Call `preprocess`, and drop the answer.
    pub(crate) fn preprocess(&self, pair: &PluginPair, request: Request) -> Result<(), CallError> {
        let calling = pair.preprocess(self.context.clone(), request, self.grant());
        let outcome = self.runtime.block_on(calling).map(drop);
        self.assert_given_back();
        outcome
    }

    fn grant(&self) -> Grant<'_> {
        Grant::new(&self.limits, &self.account)
    }

    /// Fails unless the call's memory is given back. A long call gives it back on another thread.
    fn assert_given_back(&self) {
        let began = Instant::now();
        while self.budget.held() > 0 {
            let held = self.budget.held();
            assert!(began.elapsed() < PATIENCE, "{held} bytes are held after the call");
            std::thread::yield_now();
        }
    }
}

fn digest_of(file: &[u8]) -> Digest {
    Digest::from_bytes(sha2::Sha256::digest(file).into())
}
