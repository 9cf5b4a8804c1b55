//! Long plugin calls: their threads, their CPU time and their memory.

use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use serde_json::json;
use wasm_encoder::InstructionSink;

use crate::support::deploy::processor;
use crate::support::eventually::{eventually, eventually_some};
use crate::support::files;
use crate::support::load::under_load;
use crate::support::modules::{
    ANSWER, ANY, FLOAT32, Guest, Import, MADE, MADE_HANDLE, honest, store,
};
use crate::support::server::Server;
use crate::support::setup::Setup;

/// Run `body` while other threads keep all cores busy.
fn beside_a_full_load<R>(body: impl FnOnce() -> R) -> R {
    let ended = AtomicBool::new(false);
    let cores = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        for _ in 0..2 * cores {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let result = body();
        ended.store(true, Ordering::Relaxed);
        result
    })
}

#[test]
fn a_long_call_runs_off_the_serving_threads() {
    let server = Server::start();
    server.hostile("acme");
    let limits = json!({ "cpu_ms": 1000, "timeout_ms": 120_000 });
    server.pipeline("acme", "slow", &processor("hostile", limits));
    let answer = server.data.post("/v1/acme/infer/slow?do=loop", b"");
    answer.refused(504, "plugin_timeout", &["1000 ms of CPU time"]);
    let (long, serving) = (server.cpu_ms_of("long-calls"), server.cpu_ms_of("tokio-rt-worker"));
    assert!(long >= 900, "long calls took {long} ms, serving threads {serving} ms");
    assert!(serving <= 500, "long calls took {long} ms, serving threads {serving} ms");
}

/// Computes the softmax of a row of 50,000 values a thousand times, without a loop, so that the
/// host cannot interrupt the guest's own code.
fn softmaxes(code: &mut InstructionSink<'_>) {
    store(code, ROW, 1);
    store(code, ROW + 4, 50_000);
    code.i32_const(FLOAT32).i32_const(ROW).i32_const(2);
    code.i32_const(0).i32_const(200_000).i32_const(MADE).call(Import::TensorCreate.index());
    for _ in 0..1000 {
        code.i32_const(MADE_HANDLE).i32_load(ANY).i32_const(SOFTENED);
        code.call(Import::TensorSoftmax.index());
        code.i32_const(SOFTENED + 4).i32_load(ANY).call(Import::TensorDrop.index());
    }
    honest(code);
    code.i32_const(ANSWER);
}

/// The addresses of the shape and of the results.
const ROW: i32 = 640;
const SOFTENED: i32 = 656;

#[test]
fn a_guest_that_only_calls_the_host_leaves_the_serving_threads() {
    let server = Server::start();
    server.hostile("acme");
    server.put("tenants/acme/plugins/soft", &Guest::pre(softmaxes).file());
    let limits = json!({ "cpu_ms": 60_000, "timeout_ms": 120_000 });
    let spec = json!({ "pre": "soft", "model": "digits", "post": "hostile", "limits": limits });
    server.pipeline("acme", "soft", &spec);
    let before = server.cpu_ms_of("tokio-rt-worker");
    assert_eq!(server.data.post("/v1/acme/infer/soft", b"").text(), "harmless");
    let (long, serving) = (server.cpu_ms_of("long-calls"), server.cpu_ms_of("tokio-rt-worker"));
    let serving = serving - before;
    assert!(long > 2 * serving, "long calls took {long} ms, serving threads {serving} ms");
}

/// A pipeline whose calls take `cpu_ms`, which the server knows of an earlier call.
fn long_pipeline(server: &Server, name: &str, cpu_ms: u64, timeout_ms: u64) {
    let limits = json!({ "cpu_ms": cpu_ms, "timeout_ms": timeout_ms });
    server.pipeline("acme", name, &processor("hostile", limits));
    let answer = server.data.post(&format!("/v1/acme/infer/{name}?do=loop"), b"");
    assert_eq!(answer.status, 504, "{}", answer.text());
}

#[test]
fn a_short_pipeline_does_not_wait_for_the_tenants_long_one() {
    let server = Server::start();
    server.hostile("acme");
    server.digits_for("acme");
    // Time enough for a few long calls on a busy machine, if `digits` is taken for long, too.
    server.pipeline("acme", "digits", &processor("digits", json!({ "timeout_ms": 50_000 })));
    long_pipeline(&server, "slow", 1000, 120_000);
    let cores = thread::available_parallelism().map_or(2, usize::from);
    // They take twice as long as a request of `digits` has.
    let clients = 100 * cores;
    let path = "/v1/acme/infer/slow?do=loop";
    let begun = || {
        let mut stream = TcpStream::connect(server.data.authority()).unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        stream
    };
    let _streams: Vec<_> = std::iter::repeat_with(begun).take(clients).collect();
    eventually("most requests are under way", || {
        server.status()["requests"]["under_way"].as_u64() > Some(clients as u64 / 2)
    });
    server.assert_reads_digits("acme");
}

#[test]
fn a_newcomer_that_cannot_be_answered_in_time_is_refused_at_once() {
    let server = Server::start();
    server.hostile("acme");
    long_pipeline(&server, "slow", 500, 2000);
    let cores = thread::available_parallelism().map_or(2, usize::from);
    let loops = |_| server.data.post("/v1/acme/infer/slow?do=loop", b"").status;
    under_load(16 * cores, loops, |ends| {
        let refused = eventually_some("a refusal", || {
            let answer = server.data.post("/v1/acme/infer/slow?do=loop", b"");
            // Others began, or their time ended before the server knew how long the queue is.
            (answer.status == 503).then_some(answer)
        });
        refused.refused(503, "overloaded", &["plugin calls are too busy", "ms for that"]);
        let retry_after: u64 = refused.header("retry-after").parse().unwrap();
        assert!(retry_after >= 1, "{retry_after}");
        assert!(ends.iter().any(|status| status == 504), "some begin");
    });
}

/// The rounds in which `do=spin` takes about this much CPU time, by the server's own count.
fn rounds_of(server: &Server, us: u64) -> u64 {
    let mut rounds = 1 << 14;
    loop {
        let path = format!("/v1/acme/infer/patient?do=spin&rounds={rounds}");
        let wanted = ("gristmill-receipt", "true");
        let answer = server.data.send("POST", &path, &[wanted], Some(b""));
        let receipt = answer.header("gristmill-receipt");
        let used = receipt.split(", ").find_map(|part| part.strip_prefix("plugin-cpu-us="));
        let used: u64 = used.unwrap().parse().unwrap();
        if used >= us / 2 {
            return rounds * us / used;
        }
        rounds *= 2;
    }
}

#[test]
fn a_tenants_many_short_calls_leave_the_serving_threads() {
    let server = Server::start();
    server.hostile("acme");
    let rounds = rounds_of(&server, 2000);
    let path = format!("/v1/acme/infer/hostile?do=spin&rounds={rounds}");
    let cores = thread::available_parallelism().map_or(2, usize::from);
    let (before, began) = (server.cpu_ms_of("tokio-rt-worker"), Instant::now());
    thread::scope(|scope| {
        for _ in 0..4 * cores {
            let call = || assert_eq!(server.data.post(&path, b"").status, 200);
            scope.spawn(move || (0..100).for_each(|_| call()));
        }
    });
    // 800 ms of each core in all. The tenant's share of the serving threads is a tenth of the time
    // that passed, which is long on a busy machine. Reading and answering requests takes time, too.
    let share = began.elapsed().as_millis() as u64 * cores as u64 / 10;
    let serving = server.cpu_ms_of("tokio-rt-worker") - before;
    let may = 3 * share / 2 + 300 * cores as u64;
    assert!(serving < may, "serving threads: {serving} ms, the share: {share} ms");
}

#[test]
fn an_honest_call_is_charged_cpu_time_and_not_the_time_it_waits() {
    let server = Server::start();
    server.digits("acme");
    let spec = processor("digits", json!({ "cpu_ms": 20, "timeout_ms": 120_000 }));
    server.pipeline("acme", "narrow", &spec);
    let picture = files::digit(7);
    beside_a_full_load(|| {
        for _ in 0..200 {
            let answer = server.data.post("/v1/acme/infer/narrow", &picture);
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
    });
}

#[test]
fn what_calls_hold_counts_against_their_tenant() {
    let server = Setup::new()
        .flag("--tenant-bytes-max", "8388608")
        .flag("--message-bytes-max", "1048576")
        .start();
    server.hostile("acme");
    for deed in ["eat-memory", "eat-host-memory"] {
        let answer = server.data.post(&format!("/v1/acme/infer/patient?do={deed}"), b"");
        answer.refused(429, "tenant_busy", &["bytes in flight", "8388608"]);
    }
    // Their memory is given back.
    assert_eq!(server.data.post("/v1/acme/infer/patient", b"").text(), "harmless");
    assert_eq!(server.status()["tenants"]["acme"]["bytes_under_way"], 0);
}
