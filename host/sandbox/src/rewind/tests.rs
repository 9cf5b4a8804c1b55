#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::Write;

use gristmill_core::{BufferPool, ByteBudget, PluginLimits};
use wasmtime::component::{ComponentNamedList, Linker, Lower};

use super::*;
use crate::account::Account;
use crate::config::SandboxConfig;
use crate::engine::PluginEngine;
use crate::grant::Grant;
use crate::mapped::deserialize;
use crate::meter::Meter;
use crate::runtime::Image;

/// A memory of `PAGES` times 64 KiB with content in its second page, and functions that write to
/// it.
const COMPONENT: &str = r#"(component
  (core module $m
    (memory (export "memory") PAGES)
    (data (i32.const 4100) "first content")
    (func (export "read-memory") (result i32)
      (i32.store (i32.const 16) (i32.const 0))
      (i32.store (i32.const 20) (i32.shl (memory.size) (i32.const 16)))
      (i32.const 16))
    (func (export "write") (param i32 i32) (i32.store (local.get 0) (local.get 1)))
    (func (export "grow") (drop (memory.grow (i32.const 1)))))
  (core instance $i (instantiate $m))
  (func (export "read-memory") (result (list u8))
    (canon lift (core func $i "read-memory") (memory (core memory $i "memory"))))
  (func (export "write") (param "at" u32) (param "value" u32)
    (canon lift (core func $i "write")))
  (func (export "grow") (canon lift (core func $i "grow"))))"#;

struct Fixture {
    store: Store<StoreData>,
    instance: Instance,
    rewind: Rewind,
    image: Image,
}

impl Fixture {
    async fn new(pages: usize) -> Self {
        let (bytes, text) = (pages << 16, COMPONENT.replace("PAGES", &pages.to_string()));
        let config = SandboxConfig::new(std::env::temp_dir());
        let engine = PluginEngine::new(&config, BufferPool::new(0)).unwrap();
        let mut image = Image { bytes: vec![0; bytes] };
        image.bytes[4100..4113].copy_from_slice(b"first content");
        let code = engine.engine().precompile_component(&wat::parse_str(text).unwrap());
        let code = code.unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&code).unwrap();
        let component = deserialize(engine.engine(), &file).unwrap();
        let place = image.place_in(&code).unwrap();
        let first = FirstContent::of(&component, place, bytes as u64).unwrap().unwrap();
        let account = Account::new(1, 1, ByteBudget::new(64 << 20));
        let limits = PluginLimits::default();
        let grant = Grant::new(&limits, &account);
        let mut store = engine.store(grant, Arc::new(Meter::new(limits.cpu)), false);
        let linker = Linker::new(engine.engine());
        let instance = linker.instantiate_async(&mut store, &component).await.unwrap();
        let rewind = Rewind::of(&first, &mut store, &instance).await.unwrap().unwrap();
        Self { store, instance, rewind, image }
    }

    async fn call<P: ComponentNamedList + Lower>(&mut self, name: &str, params: P) {
        let function = self.instance.get_typed_func::<P, ()>(&mut self.store, name).unwrap();
        function.call_async(&mut self.store, params).await.unwrap();
    }

    async fn write(&mut self, at: u32) {
        self.call("write", (at, 0xdead_beef_u32)).await;
    }

    /// A page of the memory. Unlike the reader it writes to no page.
    #[allow(unsafe_code, reason = "wasmtime gives no access to a component's memory")]
    fn page(&self, at: usize) -> &[u8] {
        // SAFETY: as in `Rewind::restore`, and no guest runs.
        unsafe {
            let page = std::ptr::with_exposed_provenance(self.rewind.memory + at);
            std::slice::from_raw_parts(page, PAGE_BYTES)
        }
    }

    /// The memory as the host sees it.
    async fn memory(&mut self) -> Vec<u8> {
        let read =
            self.instance.get_typed_func::<(), (WasmList<u8>,)>(&mut self.store, READ_MEMORY);
        let (memory,) = read.unwrap().call_async(&mut self.store, ()).await.unwrap();
        let mut memory = memory.as_le_slice(&self.store).to_vec();
        // The answer of the reader itself.
        memory[16..24].fill(0);
        memory
    }
}

#[tokio::test]
async fn a_guest_that_was_rewound_has_the_memory_of_a_new_one() {
    // The host reads all of it below, and a page of zeros that was only read counts as written.
    let mut fixture = Fixture::new(16).await;
    assert!(fixture.memory().await == fixture.image.bytes);
    for _ in 0..3 {
        let end = (1 << 20) - 4;
        for at in [0, 4100, 8188, 8192, 1 << 19, (1 << 19) + 4096, end] {
            fixture.write(at).await;
        }
        assert!(fixture.memory().await != fixture.image.bytes);
        fixture.rewind.note_call(None);
        assert!(fixture.rewind.rewind(&mut fixture.store).is_some());
        assert!(fixture.memory().await == fixture.image.bytes);
    }
}

#[tokio::test]
async fn page_faults_tell_whether_more_was_written() {
    let mut fixture = Fixture::new(16).await;
    let mut calls_without = 0;
    // Each sixteenth call writes to a page that no call before it has written to.
    for call in 0..160_u32 {
        let meter = Arc::new(Meter::new(PluginLimits::default().cpu));
        if fixture.rewind.wants_faults() {
            meter.count_faults();
        }
        meter.resume();
        for at in [4100, (1 << 19) + call / 16 * 4096] {
            fixture.write(at).await;
        }
        let faults = meter.faults();
        calls_without += u32::from(faults == Some(0));
        fixture.rewind.note_call(faults);
        assert!(fixture.rewind.rewind(&mut fixture.store).is_some());
        meter.pause();
        for at in [4096, (1 << 19) + call as usize / 16 * 4096] {
            assert!(fixture.page(at) == &fixture.image.bytes[at..at + 4096], "call {call}");
        }
    }
    assert!(calls_without > 0);
}

#[tokio::test]
async fn a_guest_that_has_grown_or_written_much_is_not_rewound() {
    let mut fixture = Fixture::new(64).await;
    for page in 0..512 {
        fixture.write(page * 4096).await;
    }
    assert!(fixture.rewind.rewind(&mut fixture.store).is_some());
    // Its pages stay written, as the kernel sees it, so one more is too much.
    fixture.write(512 * 4096).await;
    fixture.rewind.note_call(None);
    assert!(fixture.rewind.rewind(&mut fixture.store).is_none());

    let mut fixture = Fixture::new(64).await;
    fixture.call("grow", ()).await;
    assert!(fixture.rewind.rewind(&mut fixture.store).is_none());
}
