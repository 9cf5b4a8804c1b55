#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::*;

use crate::check_component::Bounds;
use crate::compile::{Kind, Verdict, write_answer};
use crate::language::Language;
use crate::runtime::CompiledRuntime;

#[test]
fn the_checksum_is_hmac_sha_256() {
    // RFC 4231, test case 1: HMAC fills a shorter key up with zeros.
    let mut key = [0; 32];
    key[..20].fill(0x0b);
    let checksum = hmac(&key, &mut &b"Hi There"[..], 8).unwrap().finalize().into_bytes();
    let hex = checksum.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(hex, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    assert!(hmac(&key, &mut &b"Hi"[..], 8).is_err(), "shorter than it was");
}

/// An empty component: only the preamble.
const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

/// A component with an instance of a module that has a memory of two pages.
const TWO_PAGES: &[u8] =
    b"\0asm\x0d\0\x01\0\x01\x0d\0asm\x01\0\0\0\x05\x03\x01\0\x02\x02\x04\x01\0\0\0";

struct Fixture {
    root: tempfile::TempDir,
    engine: Engine,
    component: &'static [u8],
}

impl Fixture {
    fn new() -> Self {
        Self::of(&compile_config(), EMPTY)
    }

    fn of(config: &wasmtime::Config, component: &'static [u8]) -> Self {
        let root = tempfile::tempdir().unwrap();
        Self { root, engine: Engine::new(config).unwrap(), component }
    }

    fn cache(&self) -> ArtifactCache {
        ArtifactCache::open(self.root.path(), &self.engine).unwrap()
    }

    fn request(&self, number: u8) -> CompileRequest {
        let bounds = Bounds { instances: 1, memories: 1, tables: 1 };
        let digest = Digest::from_bytes([number; 32]);
        let kind = Kind::Plugin(Vec::new());
        CompileRequest { digest, engine: hash_of(&self.engine), bounds, kind }
    }

    /// The answer of a child to this request.
    fn answer(&self, request: &CompileRequest, change: impl FnOnce(&mut About)) -> Vec<u8> {
        let code = self.engine.precompile_component(self.component).unwrap();
        let (digest, engine) = (request.digest, request.engine.clone());
        let (imports, pre, post, sources) = (Vec::new(), true, false, None);
        let mut about = About {
            handle: false,
            digest,
            engine,
            imports,
            pre,
            post,
            sources,
            runtime: None,
            memory_bytes: None,
            content: None,
            assets: Vec::new(),
        };
        change(&mut about);
        let mut answer = Vec::new();
        write_answer(&code, &Verdict::Compiled(Box::new(about)), &mut answer).unwrap();
        answer
    }

    fn keep(&self, request: &CompileRequest, answer: &[u8]) -> Result<Cached, LoadError> {
        let cache = self.cache();
        let mut temporary = cache.temporary().unwrap();
        temporary.write_all(answer).unwrap();
        cache.keep(&self.engine, request, temporary)
    }
}

#[test]
fn what_was_kept_is_found_again() {
    let fixture = Fixture::new();
    let request = fixture.request(1);
    assert!(fixture.cache().get(&fixture.engine, &request).is_none());
    fixture.keep(&request, &fixture.answer(&request, |_| ())).unwrap();
    let cached = fixture.cache().get(&fixture.engine, &request).unwrap();
    assert!(cached.about.pre && !cached.about.post);
    assert!(fixture.cache().get(&fixture.engine, &fixture.request(2)).is_none());
}

#[test]
fn sources_are_loaded_again_if_their_runtime_is_another_one() {
    let fixture = Fixture::new();
    let of_runtime = |number: u8| {
        let runtime = CompiledRuntime {
            language: Language::Python,
            digest: Digest::from_bytes([number; 32]),
            file: "python.wasm".into(),
            code: None,
        };
        CompileRequest { kind: Kind::Plugin(vec![runtime]), ..fixture.request(1) }
    };
    let before = of_runtime(7);
    let digest = Some(Digest::from_bytes([7; 32]));
    fixture.keep(&before, &fixture.answer(&before, |about| about.runtime = digest)).unwrap();
    let cache = fixture.cache();
    assert!(cache.get(&fixture.engine, &before).is_some());
    assert_eq!(cache.of_other_runtimes(), 0);
    // They count once, however often they are looked for.
    for _ in 0..2 {
        assert!(cache.get(&fixture.engine, &of_runtime(8)).is_none());
        assert_eq!(cache.of_other_runtimes(), 1);
    }
}

#[test]
fn an_answer_is_believed_only_where_it_fits() {
    let fixture = Fixture::new();
    let request = fixture.request(1);
    let good = fixture.answer(&request, |_| ());
    let bad = [
        Vec::new(),
        good[..good.len() - 1].to_vec(),
        good[1..].to_vec(),
        [&good[..], &[0]].concat(),
        vec![0xff; 64],
        fixture.answer(&request, |about| about.digest = Digest::from_bytes([9; 32])),
        fixture.answer(&request, |about| about.engine = "another".into()),
        fixture.answer(&request, |about| about.imports = vec!["wasi:keyvalue/store@0.2.0".into()]),
        fixture.answer(&request, |about| about.pre = false),
    ];
    for answer in bad {
        let refused = fixture.keep(&request, &answer).map(drop).unwrap_err();
        assert_eq!(refused.code(), gristmill_core::ErrorCode::Internal, "{refused}");
        assert!(fixture.cache().get(&fixture.engine, &request).is_none());
    }
    let mut refusal = Vec::new();
    write_answer(b"", &Verdict::Refused("it is not good".into()), &mut refusal).unwrap();
    let refused = fixture.keep(&request, &refusal).map(drop).unwrap_err();
    assert_eq!(refused.to_string(), "it is not good");
    assert_eq!(refused.code(), gristmill_core::ErrorCode::InvalidPlugin);
}

#[test]
fn code_that_needs_more_than_the_limits_says_so() {
    let mut pool = wasmtime::PoolingAllocationConfig::new();
    pool.total_memories(1).max_memory_size(64 << 10);
    let mut config = compile_config();
    config.allocation_strategy(wasmtime::InstanceAllocationStrategy::Pooling(pool));
    let fixture = Fixture::of(&config, TWO_PAGES);
    let request = fixture.request(1);
    let refused = fixture.keep(&request, &fixture.answer(&request, |_| ())).map(drop).unwrap_err();
    assert_eq!(refused.code(), gristmill_core::ErrorCode::InvalidPlugin);
    assert!(refused.to_string().contains("over the host's limits"), "{refused}");
}

#[test]
fn every_flipped_bit_is_found() {
    let fixture = Fixture::new();
    let request = fixture.request(1);
    fixture.keep(&request, &fixture.answer(&request, |_| ())).unwrap();
    let cache = fixture.cache();
    let path = cache.path(request.digest);
    let whole = fs::read(&path).unwrap();
    for at in (0..whole.len()).step_by(whole.len() / 50).chain([whole.len() - 1]) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        fs::write(&path, damaged).unwrap();
        assert!(cache.get(&fixture.engine, &request).is_none(), "byte {at}");
    }
    fs::write(&path, whole).unwrap();
    assert!(cache.get(&fixture.engine, &request).is_some());
}

#[test]
fn a_directory_in_use_is_left_alone() {
    let fixture = Fixture::new();
    let first = fixture.cache();
    let temporary = first.temporary().unwrap();
    let second = fixture.cache();
    assert!(temporary.path().exists(), "the first one writes it still");
    assert_eq!(first.key, second.key);
    let free = fixture.root.path().join("0123456789abcdef");
    let used = fixture.root.path().join("fedcba9876543210");
    fs::create_dir(&free).unwrap();
    let lock = use_directory(&used).unwrap();
    drop(fixture.cache());
    assert!(!free.exists() && used.exists());
    drop(lock);
    // The leftover of a process that was killed.
    let temporary = temporary.into_temp_path().keep().unwrap();
    drop((first, second));
    drop(fixture.cache());
    assert!(!temporary.exists() && !used.exists());
}

#[test]
fn other_code_is_removed() {
    let fixture = Fixture::new();
    let (one, other) = (fixture.request(1), fixture.request(2));
    for request in [&one, &other] {
        fixture.keep(request, &fixture.answer(request, |_| ())).unwrap();
    }
    let cache = fixture.cache();
    cache.retain(|digest| digest == one.digest).unwrap();
    assert!(cache.get(&fixture.engine, &one).is_some());
    assert!(cache.get(&fixture.engine, &other).is_none());
}
