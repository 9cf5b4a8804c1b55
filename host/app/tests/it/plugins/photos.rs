//! Photos as phones make them: decoded with the default limits, whichever way up they are; what
//! goes over a limit is refused with the key that raises it.

use serde_json::json;

use self::photo::{Photo, exif};
use crate::support::deploy::processor;
use crate::support::eventually::eventually;
use crate::support::server::Server;
use crate::support::setup::Setup;

#[allow(dead_code, reason = "the file is shared with the tests of the decoder")]
#[path = "../../../../imaging/tests/it/photo.rs"]
mod photo;

/// The sizes of photos of 12, 20, 24 and 48 million pixels.
const SIZES: [(u32, u32); 4] = [(4_000, 3_000), (5_472, 3_648), (5_712, 4_284), (8_064, 6_048)];

fn photo((width, height): (u32, u32)) -> Photo {
    Photo { details: 3, ..Photo::new(width, height) }
}

#[test]
fn photos_of_phones_are_decoded_with_the_default_limits() {
    let server = Server::start();
    server.hostile("acme");
    // On a busy machine a photo waits for a core.
    let patient = processor("hostile", json!({ "timeout_ms": 120_000 }));
    server.pipeline("acme", "hostile", &patient);
    for size in SIZES {
        for before in [vec![], exif(6)] {
            let picture = Photo { before, ..photo(size) }.whole();
            let answer = server.data.post("/v1/acme/infer/hostile?do=thumbnail", &picture);
            assert_eq!((answer.status, answer.text().as_str()), (200, "harmless"), "{size:?}");
        }
    }
    for size in &SIZES[..3] {
        let picture = Photo { is_progressive: true, before: exif(8), ..photo(*size) }.whole();
        let answer = server.data.post("/v1/acme/infer/hostile?do=thumbnail", &picture);
        assert_eq!((answer.status, answer.text().as_str()), (200, "harmless"), "{size:?}");
    }
}

#[test]
fn a_photo_over_a_limit_names_the_key_that_raises_it() {
    let server = Server::start();
    server.hostile("acme");
    server.pipeline("acme", "hurried", &processor("hostile", json!({ "cpu_ms": 20 })));
    let picture = photo(SIZES[0]).whole();
    let answer = server.data.post("/v1/acme/infer/hurried?do=thumbnail", &picture);
    let named = ["decoding 4000x3000 pixels may take", "ms left of 20", "limits.cpu_ms"];
    answer.refused(422, "unprocessable", &named);
    let answer = server.data.post("/v1/acme/infer/hurried?do=loop", b"");
    answer.refused(504, "plugin_timeout", &["20 ms of CPU time", "limits.cpu_ms"]);

    // All coefficients are held as well.
    let large = Photo { is_progressive: true, ..photo(SIZES[3]) }.whole();
    let path = "/v1/acme/infer/patient?do=thumbnail";
    let named = ["decoding 8064x6048 pixels", "bytes of memory", "268435456", "plugin_held_bytes"];
    server.data.post(path, &large).refused(422, "unprocessable", &named);
    let server = Setup::new().flag("--plugin-held-bytes", "536870912").start();
    server.hostile("acme");
    let answer = server.data.post(path, &large);
    assert_eq!((answer.status, answer.text().as_str()), (200, "harmless"));
}

/// Its coefficients in full size would take more than a call may hold.
#[test]
fn a_photo_for_a_small_result_is_decoded_at_a_smaller_size() {
    let server = Server::start();
    server.hostile("acme");
    let large = Photo { is_progressive: true, before: exif(6), ..photo(SIZES[3]) }.whole();
    let path = "/v1/acme/infer/patient?do=reduced";
    let answer = server.data.post(path, &large);
    assert_eq!((answer.status, answer.text().as_str()), (200, "harmless"));
    let cut = &large[..large.len() / 2];
    server.data.post(path, cut).refused(400, "invalid_request", &["malformed image"]);
}

#[test]
fn a_kept_picture_reaches_postprocess_in_every_mode_of_reuse() {
    let server = Server::start();
    server.hostile("acme");
    let picture = Photo { before: exif(6), ..Photo::new(40, 30) }.whole();
    for reuse in ["tenant", "request", "none"] {
        let spec = json!({
            "pre": "hostile", "model": "digits", "post": "hostile", "instance_reuse": reuse,
        });
        server.pipeline("acme", "keeping", &spec);
        for _ in 0..3 {
            let answer = server.data.post("/v1/acme/infer/keeping?do=keep", &picture);
            assert_eq!(answer.status, 200, "{reuse}: {}", answer.text());
            let expected = format!("image/png; body={}; again=false", picture.len());
            assert_eq!(answer.header("content-type"), expected, "{reuse}");
            let drawn = image::load_from_memory(&answer.body).unwrap().into_rgb8();
            assert_eq!(drawn.dimensions(), (30, 40), "{reuse}");
            assert_eq!(drawn.get_pixel(0, 0).0, [9, 8, 7], "{reuse}");
            assert_ne!(drawn.get_pixel(15, 20).0, [9, 8, 7], "{reuse}");
        }
    }
    eventually("nothing is held", || server.status()["tenants"]["acme"]["bytes_under_way"] == 0);
}

#[test]
fn what_a_request_keeps_is_bounded() {
    let server = Server::start();
    server.hostile("acme");
    for deed in ["keep-many", "keep-a-long-name", "take-first"] {
        let answer = server.data.post(&format!("/v1/acme/infer/patient?do={deed}"), b"");
        answer.refused(500, "plugin_failed", &[]);
    }
    // All that the host holds for the call counts, not only the parts that are kept.
    let answer = server.data.post("/v1/acme/infer/patient?do=keep-much", b"");
    answer.refused(500, "plugin_out_of_memory", &[]);
    let answer = server.data.post("/v1/acme/infer/hostile", b"");
    assert_eq!(answer.status, 200, "{}", answer.text());
}
