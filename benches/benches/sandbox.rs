//! The cost of plugin calls: in fresh instances, and in instances that stay.
//!
//! Run by `cargo xtask bench sandbox`, which builds the guests first.

use std::cell::Cell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use criterion::{Bencher, Criterion, criterion_group, criterion_main};
use gristmill_batch::{Lane, LaneConfig, LaneParts};
use gristmill_benches::corpus::plugins;
use gristmill_benches::harness::{submission, tenant, tensor_in};
use gristmill_benches::models;
use gristmill_core::{
    BufferPool, ByteBudget, Deadline, Digest, Dtype, ModelInfo, Name, NamedTensor, PluginLimits,
    Tensor, TensorInfo,
};
use gristmill_imaging::{
    Channels, DecodeOptions, Encoded, Filter, Layout, Limits, Size, TensorOptions, Workspace,
};
use gristmill_sandbox::{
    Account, AskedRuns, Asset, Assets, Context, Grant, HandlerPlugin, ModelCall, ModelRuns, Plugin,
    PluginPair, Request, Results, Reuse, RunCount, RunOutputs, Sandbox, SandboxConfig, TenantReuse,
    WantedRun,
};
use tokio::runtime::Runtime;

// As in the server.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The languages of the digits plugin: the ends of the files' names.
const LANGUAGES: [(&str, &str); 4] =
    [("rust", ""), ("c", "-c"), ("js", "-js"), ("python", "-python")];

/// The numbers of a large tensor: a picture of 224 x 224 pixels with three channels.
const LARGE_FLOATS: usize = 150_528;

/// The owners of the calls.
const ACCOUNTS: usize = 1000;

/// What all calls share.
struct Bench {
    runtime: Runtime,
    sandbox: Arc<Sandbox>,
    limits: PluginLimits,
    /// The owners of the calls, in turn. With one owner, most calls would be beyond its share of
    /// the serving threads and move to others.
    accounts: Vec<Account>,
    /// The memory of each.
    budgets: Vec<Arc<ByteBudget>>,
    turn: Cell<usize>,
    context: Arc<Context>,
}

fn or_panic<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

/// A guest, built by `cargo xtask`: a component, or an archive of sources. None if it is not
/// there.
fn guest(name: &str) -> Option<Bytes> {
    let components = std::env::var("GRISTMILL_TEST_COMPONENTS")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../target/components").into());
    let file = |end: &str| std::fs::read(format!("{components}/{name}.{end}")).ok();
    file("tar").or_else(|| file("wasm")).map(Bytes::from)
}

impl Bench {
    fn new() -> Self {
        let cache = std::env::temp_dir().join("gristmill-bench-compiled");
        let runtimes = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/runtimes");
        let config = SandboxConfig {
            runtimes_directory: Some(runtimes.into()),
            ..SandboxConfig::new(cache)
        };
        let runtime = or_panic(tokio::runtime::Builder::new_current_thread().enable_all().build());
        let name = |text: &str| or_panic(text.parse::<Name>());
        let context = Context {
            tenant: name("bench"),
            pipeline: name("bench"),
            model: name("bench"),
            request_id: "bench".into(),
            settings: "{}".into(),
            deadline: Deadline::at(Instant::now() + Duration::from_secs(36_000)),
        };
        let budgets: Vec<_> = (0..ACCOUNTS).map(|_| ByteBudget::new(1 << 30)).collect();
        Self {
            sandbox: or_panic(Sandbox::new(&config, BufferPool::new(64 << 20))),
            runtime,
            // A guest in Python takes longer than the default at its first call.
            limits: PluginLimits { cpu: Duration::from_secs(10), ..PluginLimits::default() },
            accounts: budgets.iter().map(|bytes| Account::new(16, 2, bytes.clone())).collect(),
            budgets,
            turn: Cell::new(0),
            context: Arc::new(context),
        }
    }

    fn pair(&self, file: Bytes, reuse: &Reuse) -> PluginPair {
        let plugin = self.plugin(file);
        PluginPair::new(plugin.clone(), plugin, reuse, &self.accounts[0])
    }

    fn plugin(&self, file: Bytes) -> Arc<Plugin> {
        // The cache outlives the benchmark and must not hold an older guest under the same digest.
        let mut hasher = DefaultHasher::new();
        file.hash(&mut hasher);
        let mut key = [0; 32];
        key[..8].copy_from_slice(&hasher.finish().to_le_bytes());
        let loading = self.sandbox.load(Digest::from_bytes(key), file);
        Arc::new(or_panic(self.runtime.block_on(loading)))
    }

    /// The grant of the next owner.
    fn grant(&self) -> Grant<'_> {
        self.turn.set((self.turn.get() + 1) % ACCOUNTS);
        let account = &self.accounts[self.turn.get()];
        Grant::new(&self.limits, account)
    }

    /// Call `preprocess`.
    async fn pre(&self, pair: &PluginPair, request: Request) {
        let calling = pair.preprocess(self.context.clone(), request, self.grant());
        or_panic(calling.await.map(drop));
    }

    /// Call `preprocess`, then `postprocess` with these outputs.
    async fn both(&self, pair: &PluginPair, request: Request, outputs: Vec<NamedTensor>) {
        let calling = async {
            let (prepared, kept) =
                pair.preprocess(self.context.clone(), request, self.grant()).await?;
            let results = Results { outputs, state: prepared.state };
            pair.postprocess(kept, self.context.clone(), results, self.grant()).await
        };
        or_panic(calling.await.map(drop));
    }

    /// Measure calls that follow each other in one task, as those of a busy server do.
    fn measure(&self, bencher: &mut Bencher<'_>, mut call: impl AsyncFnMut()) {
        bencher.iter_custom(|calls| {
            self.runtime.block_on(async {
                let begin = Instant::now();
                for _ in 0..calls {
                    call().await;
                }
                begin.elapsed()
            })
        });
    }
}

/// The modes, by their names in the table.
fn modes() -> [(&'static str, Reuse); 2] {
    let tenant = TenantReuse { max_count: u32::MAX, ..TenantReuse::default() };
    [("fresh", Reuse::None), ("warm", Reuse::Tenant(tenant))]
}

fn query(name: &str, value: String) -> Vec<(String, String)> {
    vec![(name.to_owned(), value)]
}

/// Calls that make no tensor, a small one, or a large one; what a large one needs at least.
fn calls(criterion: &mut Criterion) {
    let bench = Bench::new();
    let file = guest("bench-guest").unwrap_or_else(|| panic!("run `cargo xtask bench sandbox`"));
    let mut group = criterion.benchmark_group("call");
    for (mode, reuse) in modes() {
        let pair = bench.pair(file.clone(), &reuse);
        for (name, asked) in [
            ("empty", None),
            ("tensor_128B", Some(("floats", 32))),
            ("tensor_600KB", Some(("floats", LARGE_FLOATS))),
            ("fill_600KB", Some(("fill", LARGE_FLOATS))),
        ] {
            let request = || {
                let query = asked.map(|(what, floats): (_, usize)| query(what, floats.to_string()));
                Request { query: query.unwrap_or_default(), ..Request::default() }
            };
            group.bench_function(format!("{name}_{mode}"), |bencher| {
                bench.measure(bencher, async || bench.pre(&pair, request()).await);
            });
        }
    }
    let (pool, numbers) = (BufferPool::new(64 << 20), vec![1; LARGE_FLOATS * size_of::<f32>()]);
    group.bench_function("copy_600KB", |bencher| bencher.iter(|| pool.copy_from(&numbers)));
    group.finish();
}

/// A vocabulary that `init` has read, and one that is read by each call.
fn vocabulary(criterion: &mut Criterion) {
    let bench = Bench::new();
    let Some(file) = guest("vocabulary") else { return };
    let pair = bench.pair(file, &Reuse::None);
    let mut group = criterion.benchmark_group("vocabulary");
    let body = Bytes::from_static(b"word-1 word-20000 nothing");
    for (name, query) in [("init", Vec::new()), ("anew", query("anew", "1".into()))] {
        let request = Request { query, body: body.clone(), ..Request::default() };
        group.bench_function(name, |bencher| {
            bench.measure(bencher, async || bench.pre(&pair, request.clone()).await);
        });
    }
    group.finish();
}

/// The digits plugin of each language, and its work on the picture, which the host does natively.
fn languages(criterion: &mut Criterion) {
    let bench = Bench::new();
    let picture = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/digits/samples/3.png");
    let picture = Bytes::from(or_panic(std::fs::read(picture)));
    let pool = BufferPool::new(1 << 20);
    let logits: Vec<u8> = (0..10).flat_map(|digit| (digit as f32).to_le_bytes()).collect();
    let shape = [1, 10].as_slice().into();
    let output = or_panic(Tensor::new(Dtype::Float32, shape, pool.copy_from(&logits)));
    let output = NamedTensor { name: "output".into(), tensor: output };
    let mut group = criterion.benchmark_group("digits");
    group.bench_function("picture", |bencher| {
        bencher.iter(|| {
            let limits = Limits::of_pixels(1 << 20);
            let options = DecodeOptions {
                gray: true,
                upright: true,
                before_0_3: false,
                lenient: false,
                limits,
            };
            let work = Workspace { pool: &pool, check: &|| Ok(()) };
            let encoded = or_panic(Encoded::read(&picture, options, &|| Ok(())));
            let decoded = or_panic(encoded.decode(work));
            let size = Size { width: 28, height: 28 };
            or_panic(decoded.resize(work, size, Filter::Bilinear, limits))
        });
    });
    for (language, end) in LANGUAGES {
        let Some(file) = guest(&format!("digits{end}")) else { continue };
        for (mode, reuse) in modes().into_iter().chain([("request", Reuse::Request)]) {
            let pair = bench.pair(file.clone(), &reuse);
            let request = Request {
                content_type: Some("image/png".into()),
                body: picture.clone(),
                ..Request::default()
            };
            group.bench_function(format!("{language}_{mode}"), |bencher| {
                let call = async || bench.both(&pair, request.clone(), vec![output.clone()]).await;
                bench.measure(bencher, call);
            });
        }
    }
    group.finish();
}

/// Calls of one plugin, and of a thousand in turn.
fn rotation(criterion: &mut Criterion) {
    const PLUGINS: usize = 1000;
    let bench = Bench::new();
    let Some(file) = guest("ranker-pre") else { return };
    let body = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/ranker.json");
    let body = Bytes::from(or_panic(std::fs::read(body)));
    let request = Request { body, ..Request::default() };
    let variant =
        |number: usize| bench.pair(plugins::distinct(&file, number as u64).into(), &Reuse::None);
    let pairs: Vec<_> = (0..PLUGINS).map(variant).collect();
    let mut group = criterion.benchmark_group("rotation");
    for (name, pairs) in [("one", &pairs[..1]), ("thousand", &pairs[..])] {
        let mut turns = pairs.iter().cycle();
        group.bench_function(name, |bencher| {
            bench.measure(bencher, async || {
                if let Some(pair) = turns.next() {
                    bench.pre(pair, request.clone()).await;
                }
            });
        });
    }
    group.finish();
}

/// Encodings of 32 tokens, a hundred in one call of a guest, and by the library itself.
fn tokenizer(criterion: &mut Criterion) {
    const ROUNDS: &str = "100";
    let bench = Bench::new();
    let Some(file) = guest("hostile") else { return };
    let pair = bench.pair(file, &Reuse::Tenant(TenantReuse::default()));
    let text = "the server ".repeat(15);
    let mut group = criterion.benchmark_group("tokenizer_100");
    for name in ["word_piece", "byte_level"] {
        let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../host/text/tests/fixtures");
        let file = Bytes::from(or_panic(std::fs::read(format!("{fixtures}/{name}.json"))));
        let library = or_panic(tokenizers::Tokenizer::from_bytes(&file));
        group.bench_function(format!("{name}_library"), |bencher| {
            bencher.iter(|| {
                for _ in 0..100 {
                    std::hint::black_box(or_panic(library.encode_fast(text.as_str(), true)));
                }
            });
        });
        let asset = ("tokenizer.json".into(), Arc::new(Asset::new(file)));
        let assets = Assets::from_iter([asset]);
        let fields = [("do", "tokens-rounds"), ("rounds", ROUNDS)];
        let request = Request {
            query: fields.map(|(name, value)| (name.into(), value.into())).into(),
            body: Bytes::from(text.clone()),
            ..Request::default()
        };
        group.bench_function(format!("{name}_guest"), |bencher| {
            bench.measure(bencher, async || {
                let grant = Grant { assets: Some(&assets), ..bench.grant() };
                let calling = pair.preprocess(bench.context.clone(), request.clone(), grant);
                or_panic(calling.await.map(drop));
            });
        });
    }
    group.finish();
}

/// A hundred runs of a model that takes no time, one after the other: by the task that has their
/// tensors, as those of a pipeline without a handler, and asked for by a handler.
fn infer(criterion: &mut Criterion) {
    let bench = Bench::new();
    let Some(file) = guest("hostile-handler") else { return };
    let lane = &free_lane();
    let (tenant, input) = (tenant("bench"), Arc::<str>::from("input"));
    let blank = tensor_in(&BufferPool::new(1 << 20), Dtype::Float32, &[1, 1, 28, 28], 0.0);
    let run = async |inputs: Option<Vec<NamedTensor>>| {
        let mut submission = submission(&tenant, &input, &blank);
        submission.inputs = inputs.unwrap_or(submission.inputs);
        lane.named(or_panic(lane.submit(submission, None).await).outputs)
    };
    let mut group = criterion.benchmark_group("infer_100");
    group.bench_function("pipeline", |bencher| {
        bench.measure(bencher, async || {
            for _ in 0..100 {
                std::hint::black_box(run(None).await);
            }
        });
    });
    let handler = HandlerPlugin::new(bench.plugin(file), &Reuse::None, &bench.accounts[0]);
    let request = Request { body: Bytes::from_static(b"infer-100"), ..Request::default() };
    group.bench_function("handler", |bencher| {
        bench.measure(bencher, async || {
            let (models, mut asked) = ModelRuns::new(&RunCount::default());
            let grant = Grant { models: Some(&models), ..bench.grant() };
            let bytes = &bench.budgets[bench.turn.get()];
            let mut call = pin!(handler.handle(bench.context.clone(), request.clone(), grant));
            loop {
                tokio::select! {
                    biased;
                    answer = &mut call => break or_panic(answer.map(drop)),
                    Some(ModelCall::Runs(AskedRuns { runs, answer })) = asked.recv() => {
                        let mut outcomes = Vec::with_capacity(runs.len());
                        for WantedRun { inputs, .. } in runs {
                            let outputs = run(Some(inputs)).await;
                            let held = bytes.hold(NamedTensor::bytes_of(&outputs));
                            outcomes.push(Ok(RunOutputs { outputs, held }));
                        }
                        let _ = answer.send(outcomes);
                    }
                }
            }
        });
    });
    group.finish();
}

/// A lane over a model of the form of `digits`, which returns its input.
fn free_lane() -> Lane {
    let tensor = |name: &str| TensorInfo {
        name: name.into(),
        dtype: Dtype::Float32,
        dims: vec![None, Some(1), Some(28), Some(28)],
    };
    let (inputs, outputs) = (vec![tensor("input")], vec![tensor("output")]);
    let lane = Lane::new(LaneParts {
        name: "free",
        info: ModelInfo { inputs, outputs, ..models::info() },
        instances: vec![Box::new(models::Identity)],
        config: LaneConfig::new(16, 4096),
        pool: BufferPool::new(1 << 20),
    });
    or_panic(lane)
}

/// A photo of 12 million pixels for a model of 224 by 224, decoded in full and at a smaller size.
/// `benches/scenarios/large_photo.py` makes the file, and measures Pillow.
fn large_photo(criterion: &mut Criterion) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/bench-data/large.jpg");
    let Ok(photo) = std::fs::read(path) else { return };
    let limits = Limits::of_pixels(PluginLimits::default().pixels);
    let options =
        DecodeOptions { gray: false, upright: true, before_0_3: false, lenient: false, limits };
    let pool = BufferPool::new(64 << 20);
    let work = Workspace { pool: &pool, check: &|| Ok(()) };
    let mut group = criterion.benchmark_group("large_photo");
    for is_reduced in [false, true] {
        let name = if is_reduced { "reduced" } else { "full" };
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let encoded = or_panic(Encoded::read(&photo, options, &|| Ok(())));
                let size = encoded.upright_size().with_shorter_side(256);
                let small = if is_reduced {
                    or_panic(encoded.decode_resized(work, size, Filter::Bilinear))
                } else {
                    let whole = or_panic(encoded.decode(work));
                    or_panic(whole.resize(work, size, Filter::Bilinear, limits))
                };
                let part = small.size().middle(Size { width: 224, height: 224 });
                let part = or_panic(small.crop(work, part));
                or_panic(part.to_tensor(work, &imagenet()))
            });
        });
    }
    group.finish();
}

fn imagenet() -> TensorOptions {
    TensorOptions {
        dtype: Dtype::Float32,
        layout: Layout::Nchw,
        channels: Channels::Rgb,
        scale: 1.0 / 255.0,
        mean: vec![0.485, 0.456, 0.406],
        std: vec![0.229, 0.224, 0.225],
    }
}

criterion_group!(benches, calls, vocabulary, languages, rotation, tokenizer, infer, large_photo);
criterion_main!(benches);
