//! The cost of a plugin call: making a fresh instance, the call, and dropping the instance.
//!
//! Run by `cargo xtask bench sandbox`, which builds the guest first.

use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use gristmill_core::{BufferPool, ByteBudget, Deadline, Digest, Name, PluginLimits};
use gristmill_sandbox::{Account, Context, Grant, Plugin, PluginPair, Request, Reuse, Sandbox, SandboxConfig};

/// The guest of plugins/bench, built by `cargo xtask`.
fn guest() -> Vec<u8> {
    let components = std::env::var("GRISTMILL_TEST_COMPONENTS")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../target/components").into());
    let path = format!("{components}/bench-guest.wasm");
    match std::fs::read(&path) {
        Ok(file) => file,
        Err(error) => panic!("{path}: {error}: run `cargo xtask bench sandbox`"),
    }
}

fn request(floats: Option<usize>) -> Request {
    let query = floats.map(|floats| ("floats".to_owned(), floats.to_string()));
    Request { query: query.into_iter().collect(), ..Request::default() }
}

fn calls(criterion: &mut Criterion) {
    let cache = std::env::temp_dir().join("gristmill-bench-compiled");
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => panic!("{error}"),
    };
    let sandbox = Sandbox::new(&SandboxConfig::new(cache), BufferPool::new(64 << 20));
    let file = guest();
    let mut key = [0; 32];
    key[..8].copy_from_slice(&(file.len() as u64).to_le_bytes());
    let loaded = sandbox.and_then(|sandbox| {
        // The digest depends on the guest's size, because the cache outlives the benchmark and must
        // not hold an older guest under the same digest.
        runtime.block_on(sandbox.load(Digest::from_bytes(key), file.into()))
    });
    let plugin: Arc<Plugin> = match loaded {
        Ok(plugin) => Arc::new(plugin),
        Err(error) => panic!("{error}"),
    };
    let limits = PluginLimits::default();
    let account = Account::new(16, 2, ByteBudget::new(1 << 30));
    let grant = Grant { limits: &limits, account: &account, plugin: None, usage: None };
    let name = |text: &str| match text.parse::<Name>() {
        Ok(name) => name,
        Err(error) => panic!("{error}"),
    };
    let context = Arc::new(Context {
        tenant: name("bench"),
        pipeline: name("bench"),
        model: name("bench"),
        request_id: "bench".into(),
        settings: "{}".into(),
        deadline: Deadline::at(Instant::now() + Duration::from_secs(3600)),
    });
    let plugin = PluginPair::new(plugin.clone(), plugin, &Reuse::None, &account);
    let mut group = criterion.benchmark_group("fresh_instance_call");
    for (name, floats) in
        [("empty", None), ("tensor_128B", Some(32)), ("tensor_600KB", Some(150_528))]
    {
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                match runtime.block_on(plugin.preprocess(context.clone(), request(floats), grant)) {
                    Ok(prepared) => prepared,
                    Err(error) => panic!("{error}"),
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, calls);
criterion_main!(benches);
