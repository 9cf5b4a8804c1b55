//! Images that cost more or less than they seem to: their charge, and the threads that read them.

use serde_json::json;

use self::bits::Bits;
use crate::support::deploy::processor;
use crate::support::server::Server;

#[path = "../../../../imaging/tests/it/bits.rs"]
mod bits;

/// The beginning of a lossless WebP.
fn webp(side: u32) -> Bits {
    let mut bits = Bits::default();
    // Signature, sides, no alpha, version, no transform.
    bits.push(0x2f, 8).push(side - 1, 14).push(side - 1, 14).push(0, 5);
    bits
}

fn riff(data: &[u8]) -> Vec<u8> {
    let len = data.len().next_multiple_of(2);
    let mut file = b"RIFF".to_vec();
    file.extend((12 + len as u32).to_le_bytes());
    file.extend(b"WEBPVP8L");
    file.extend((data.len() as u32).to_le_bytes());
    file.extend(data);
    file.resize(20 + len, 0);
    file
}

/// A lossless WebP of noise, which takes three bytes for each pixel.
fn webp_of_noise(side: u32) -> Vec<u8> {
    let mut bits = webp(side);
    // No colour cache, one group of codes.
    bits.push(0, 2);
    (0..3).for_each(|_| bits.flat(8));
    bits.one_symbol(255);
    bits.one_symbol(0);
    let mut data = bits.bytes;
    let mut state = 1_u64;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as u8
    });
    data.extend(noise.take((side * side * 3) as usize + 8));
    riff(&data)
}

/// A lossless WebP of one pixel with `groups` groups of codes. The tables of each group take 64
/// KiB.
fn webp_of_codes(groups: u32) -> Vec<u8> {
    let mut bits = webp(1);
    // A colour cache of 2^11 colours, and an entropy image of one pixel.
    bits.push(1, 1).push(11, 4).push(1, 1).push(7, 3).push(0, 1);
    let last = groups - 1;
    [last & 0xff, last >> 8, 0, 0, 0].into_iter().for_each(|symbol| bits.one_symbol(symbol));
    for _ in 0..groups {
        bits.flat(11);
        (0..4).for_each(|_| bits.one_symbol(0));
    }
    bits.push(0, 32);
    riff(&bits.bytes)
}

#[test]
fn an_honest_lossless_photo_of_a_megabyte_is_decoded() {
    let server = Server::start();
    server.hostile("acme");
    let photo = webp_of_noise(600);
    assert!(photo.len() > 1 << 20);
    let answer = server.data.post("/v1/acme/infer/hostile?do=thumbnail", &photo);
    assert_eq!((answer.status, answer.text().as_str()), (200, "harmless"));
}

#[test]
fn codes_that_would_take_gigabytes_are_refused() {
    let server = Server::start();
    server.hostile("acme");
    // Small enough to pass a guess by the file's size.
    for groups in [10_000, 20_000, 1 << 16] {
        let picture = webp_of_codes(groups);
        assert!(picture.len() < 1 << 20);
        // It has enough time, so that it is refused for its memory.
        let answer = server.data.post("/v1/acme/infer/patient?do=thumbnail", &picture);
        answer.refused(422, "unprocessable", &["bytes of memory"]);
    }
    let peak = server.peak_resident_bytes();
    assert!(peak < 1 << 30, "the server grew to {peak} bytes");
}

#[test]
fn a_long_header_is_looked_at_off_the_serving_threads() {
    let server = Server::start();
    server.hostile("acme");
    let limits = json!({ "cpu_ms": 60_000, "timeout_ms": 120_000, "body_bytes": 60_000_000 });
    server.pipeline("acme", "patient", &processor("hostile", limits));
    // The reader has to look at each of these pairs, and none is a marker.
    let picture = [b"\xff\xd8".to_vec(), b"\xff\0".repeat(24 << 20)].concat();
    let before = server.cpu_ms_of("tokio-rt-worker");
    let answer = server.data.post("/v1/acme/infer/patient?do=bomb", &picture);
    answer.refused(400, "invalid_request", &["malformed image"]);
    let serving = server.cpu_ms_of("tokio-rt-worker") - before;
    let long = server.cpu_ms_of("long-calls");
    assert!(long > serving, "long calls took {long} ms, serving threads {serving} ms");
}
