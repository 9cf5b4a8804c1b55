//! Photos as phones make them: decoded with the default limits, whichever way up they are; what
//! goes over a limit is refused with the key that raises it.

use serde_json::json;

use self::photo::{Photo, exif};
use crate::support::deploy::processor;
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
