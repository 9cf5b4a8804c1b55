//! The text of pictures: a sample with three models of others reads what RapidOCR reads with them.
//! models/ocr/golden.py has recorded that.

use serde_json::{Map, Value, json};

use crate::support::files;
use crate::support::server::Server;

const PATH: &str = "/v1/demo/infer/ocr";

/// The difference in pixels that a corner of a box may have. OpenCV computes rectangles in single
/// precision and cuts the corners to whole pixels, which differs between its versions.
const PIXELS: f64 = 2.0;

/// The difference that a score may have: ONNX Runtime sums in another order for other batches.
const SCORE: f64 = 0.1;

/// A server with the sample as `cargo xtask demo --all` deploys it, with time for a busy machine.
fn deployed() -> Server {
    let server = Server::start();
    server.open_tenant("demo");
    let manifest = files::manifest_of_all();
    for model in ["detect", "angle", "read"] {
        let name = format!("ocr-{model}");
        let file = manifest["models"][&name]["file"].as_str().unwrap();
        assert_eq!(file, format!("../target/models/ocr/{model}.onnx"));
        server.put(&format!("models/{name}"), &files::fetched("ocr", &format!("{model}.onnx")));
        let config = &manifest["models"][&name]["config"];
        if config.is_object() {
            server.put_json(&format!("models/{name}/config"), config);
        }
    }
    server.put("tenants/demo/assets/ocr-keys", &files::fetched("ocr", "keys.txt"));
    server.plugin("demo", "ocr", "ocr");
    let mut pipeline = manifest["tenants"]["demo"]["pipelines"]["ocr"].clone();
    pipeline["limits"]["cpu_ms"] = json!(60_000);
    pipeline["limits"]["timeout_ms"] = json!(600_000);
    server.pipeline("demo", "ocr", &pipeline);
    server
}

/// What RapidOCR reads on each picture.
fn golden() -> Map<String, Value> {
    serde_json::from_slice(&files::of_model("ocr", "golden.json")).unwrap()
}

/// A picture of the golden answers: a rendered page, or a scanned one that was fetched.
fn picture(name: &str) -> Vec<u8> {
    match name {
        "page.png" | "text.png" => files::fetched("ocr", name),
        rendered => files::of_model("ocr", &format!("samples/{rendered}")),
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(values) => values.iter().flat_map(numbers).collect(),
        number => vec![number.as_f64().unwrap()],
    }
}

/// Fails unless each number of `one` is that close to its number of `other`.
#[track_caller]
fn assert_close(what: &str, [one, other]: [&Value; 2], tolerance: f64) {
    let (one, other) = (numbers(one), numbers(other));
    let is_close = |(one, other): (&f64, &f64)| (one - other).abs() <= tolerance;
    let are_close = one.len() == other.len() && one.iter().zip(&other).all(is_close);
    assert!(are_close, "{what}: {one:?}, RapidOCR {other:?}");
}

#[test]
fn the_text_of_each_picture_is_what_rapidocr_reads() {
    let server = deployed();
    let golden = golden();
    assert_eq!(golden.len(), 7);
    for (name, expected) in &golden {
        let answer = server.data.post(PATH, &picture(name)).ok();
        let (lines, expected) = (answer["lines"].as_array().unwrap(), expected.as_array().unwrap());
        let texts = |lines: &[Value]| -> Vec<Value> {
            lines.iter().map(|line| line["text"].clone()).collect()
        };
        assert_eq!(texts(lines), texts(expected), "{name}");
        for (line, expected) in lines.iter().zip(expected) {
            let what = format!("{name}: {}", line["text"]);
            assert_close(&what, [&line["box"], &expected["box"]], PIXELS);
            assert_close(&what, [&line["score"], &expected["score"]], SCORE);
        }
    }
}

#[test]
fn the_lines_of_a_picture_share_batches() {
    let server = deployed();
    server.put_json("models/ocr-angle/config", &json!({ "max_batch_size": 8 }));
    let statistics = || server.status()["models"]["ocr-angle"]["statistics"].clone();
    // Warm-up counts, too.
    let before = statistics();
    let lines = server.data.post(PATH, &picture("invoice.png")).ok()["lines"].clone();
    let lines = lines.as_array().unwrap().len();
    assert_eq!(lines, golden()["invoice.png"].as_array().unwrap().len());
    let after = statistics();
    let count = |name: &str| after[name].as_u64().unwrap() - before[name].as_u64().unwrap();
    assert_eq!(count("rows"), lines as u64, "a run for each line");
    assert!(count("batches") < count("rows") / 2, "{after}");
}

#[test]
fn the_lines_are_drawn_on_the_picture() {
    let server = deployed();
    let picture = picture("turned.png");
    let answer = server.data.post(&format!("{PATH}?format=png"), &picture);
    assert_eq!((answer.status, answer.header("content-type")), (200, "image/png"));
    let pixels = |png: &[u8]| image::load_from_memory(png).unwrap().into_rgb8();
    let (before, drawn) = (pixels(&picture), pixels(&answer.body));
    assert_eq!(before.dimensions(), drawn.dimensions());
    let changed = before.pixels().zip(drawn.pixels()).filter(|(before, drawn)| before != drawn);
    let changed: Vec<_> = changed.map(|(_, drawn)| drawn.0).collect();
    assert!(changed.len() > 1000 && changed.iter().all(|pixel| *pixel == [255, 0, 0]));
    let refused = server.data.post(&format!("{PATH}?format=tiff"), &picture);
    refused.refused(400, "invalid_request", &["format is \"tiff\", not json or png"]);
}

#[test]
fn pictures_without_text_and_other_files_are_told_apart() {
    let server = deployed();
    let blank = |width, height| {
        let mut file = std::io::Cursor::new(Vec::new());
        let pixels = image::RgbImage::from_pixel(width, height, image::Rgb([200; 3]));
        pixels.write_to(&mut file, image::ImageFormat::Png).unwrap();
        file.into_inner()
    };
    // The tensor of the second has 36 MB, more than one call passes across the border.
    for (width, height) in [(300, 200), (2000, 1500)] {
        let answer = server.data.post(PATH, &blank(width, height));
        assert_eq!(answer.ok(), json!({ "lines": [] }));
    }
    let refused = server.data.post(PATH, b"no picture");
    refused.refused(415, "unsupported_media_type", &["not a JPEG"]);
    let refused = server.data.post(PATH, &blank(30, 1900));
    refused.refused(422, "unprocessable", &["too long and narrow", "over the limit of 6000000"]);
}
