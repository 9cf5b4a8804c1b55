//! Small images that cost much, sent by mere clients to honest plugins, four at a time.
//!
//! `benches/src/corpus` makes them, and `cargo xtask bench neighbour` measures a neighbour beside
//! them. Here a table has the ends of their requests, and the server must stay small.

use std::thread;

use serde_json::Value;

use self::corpus::pictures::{self, PngColor};
use crate::support::deeds::{End, HARMLESS, LATE, OUT_OF_MEMORY, REFUSED, TIMEOUT};
use crate::support::eventually::eventually;
use crate::support::raw::{self, Raw};
use crate::support::server::Server;

#[allow(dead_code, reason = "the files are shared with the benchmarks")]
#[path = "../../../../../benches/src/corpus"]
mod corpus {
    pub(super) mod bits;
    pub(super) mod pictures;
}

const MALFORMED: End = (400, "invalid_request");

/// Pipelines of honest plugins: one that resizes to 28 x 28, and one that resizes to 224 x 224.
const DIGITS: &str = "good/infer/digits";
const THUMBNAIL: &str = "evil/infer/hostile?do=thumbnail";

/// More than the server and four calls take together.
const RESIDENT_BYTES_MAX: usize = 1500 << 20;

/// An image, where it is sent, and the ends that its request may have beside those of limits. Some
/// are decoded within the time that a call has for it.
type Case = (&'static str, fn() -> Vec<u8>, &'static str, &'static [End]);

const CASES: &[Case] = &[
    (
        "png 3000000x1",
        || pictures::png(3_000_000, 1, PngColor::Gray8).unwrap(),
        THUMBNAIL,
        &[REFUSED],
    ),
    (
        "png 20000000x1",
        || pictures::png(20_000_000, 1, PngColor::Gray8).unwrap(),
        DIGITS,
        &[REFUSED],
    ),
    ("png, 16 bits", || pictures::png_deep().unwrap(), DIGITS, &[REFUSED, HARMLESS]),
    ("png, large", || pictures::png_large().unwrap(), DIGITS, &[REFUSED, HARMLESS]),
    ("png of rows", || pictures::png_rows().unwrap(), DIGITS, &[HARMLESS]),
    ("png with a profile", || pictures::png_profile().unwrap(), DIGITS, &[HARMLESS]),
    ("webp", pictures::webp, DIGITS, &[REFUSED, HARMLESS]),
    ("webp of codes", pictures::webp_codes, DIGITS, &[REFUSED]),
    ("gif", pictures::gif, DIGITS, &[REFUSED, HARMLESS]),
    ("bmp", pictures::bmp, DIGITS, &[REFUSED, MALFORMED, HARMLESS]),
    ("jpeg of scans", pictures::jpeg_scans, DIGITS, &[REFUSED, MALFORMED, HARMLESS]),
    ("jpeg that ends early", pictures::jpeg_early_end, DIGITS, &[MALFORMED]),
    ("jpeg that only begins", pictures::jpeg_stuffed, DIGITS, &[MALFORMED]),
];

fn server() -> Server {
    let server = Server::start();
    server.digits("good");
    server.hostile("evil");
    server
}

#[test]
fn pictures_cost_their_own_request() {
    let mut server = server();
    for (name, picture, path, ends) in CASES {
        let picture = picture();
        let answers: Vec<_> = thread::scope(|scope| {
            let send = || server.data.post(&format!("/v1/{path}"), &picture);
            let sent: Vec<_> = (0..4).map(|_| scope.spawn(send)).collect();
            server.assert_reads("good", 4);
            sent.into_iter().map(|answer| answer.join().unwrap()).collect()
        });
        for answer in answers {
            let document = serde_json::from_slice::<Value>(&answer.body).unwrap_or_default();
            let end = (answer.status, document["code"].as_str().unwrap_or_default());
            // Which limit comes first depends on the decoder's build. Four at a time wait for
            // their tenant's places for long calls.
            let is_limit = [TIMEOUT, OUT_OF_MEMORY, LATE].contains(&end);
            assert!(is_limit || ends.contains(&end), "{name}: {end:?}: {}", answer.text());
        }
        let peak = server.peak_resident_bytes();
        assert!(peak < RESIDENT_BYTES_MAX, "{name}: the server grew to {peak} bytes");
    }
    server.assert_alive();
}

#[test]
fn clients_that_leave_take_their_work_along() {
    const CLIENTS: usize = 60;
    let mut server = server();
    let picture = pictures::png_deep().unwrap();
    let head = raw::post(
        "/v1/evil/infer/patient?do=thumbnail",
        &[&format!("content-length: {}", picture.len())],
    );
    for _ in 0..CLIENTS {
        let mut client = Raw::sent(&server.data, &head);
        client.send(&picture);
        drop(client);
    }
    server.assert_reads_digits("good");
    eventually("nothing is held", || server.status()["tenants"]["evil"]["bytes_under_way"] == 0);
    let peak = server.peak_resident_bytes();
    assert!(peak < RESIDENT_BYTES_MAX, "the server grew to {peak} bytes");
    server.assert_alive();
    assert_eq!(server.data.post("/v1/evil/infer/hostile", b"").text(), "harmless");
}
