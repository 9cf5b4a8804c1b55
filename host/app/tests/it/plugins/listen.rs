//! Speech in recordings: a sample in JavaScript with a model of others finds what the model's own
//! package finds, also if the recording comes in pieces. models/listen/golden.py has recorded that.

use std::thread;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::files;
use crate::support::server::Server;
use crate::support::setup::Setup;

const PATH: &str = "/v1/demo/infer/listen";

/// Samples in a second.
const RATE: f64 = 16_000.0;

/// The difference that a probability may have: versions of ONNX Runtime add in another order.
const TOLERANCE: f64 = 1e-3;

/// Where the samples of the recording begin.
const HEAD_BYTES: usize = 104;

/// A server with the sample as `cargo xtask demo --all` deploys it, with time for a busy machine.
fn deployed() -> Server {
    let server = Setup::new().with_runtimes().start();
    server.open_tenant("demo");
    let manifest = files::manifest_of_all();
    let file = &manifest["models"]["listen-vad"]["file"];
    assert_eq!(file, "../target/models/listen/vad.onnx");
    server.put("models/listen-vad", &files::fetched("listen", "vad.onnx"));
    server.plugin("demo", "listen", "listen-js");
    let mut pipeline = manifest["tenants"]["demo"]["pipelines"]["listen"].clone();
    pipeline["limits"] = json!({ "cpu_ms": 60_000, "timeout_ms": 600_000 });
    server.pipeline("demo", "listen", &pipeline);
    server
}

/// Half a minute of two people.
fn recording() -> Vec<u8> {
    files::fetched("listen", "speech.wav")
}

fn probabilities(answer: &Value) -> Vec<f64> {
    answer["probabilities"]
        .as_array()
        .unwrap()
        .iter()
        .map(|value| value.as_f64().unwrap())
        .collect()
}

/// Where speech begins and ends, in samples.
fn speech(answer: &Value) -> Vec<Value> {
    let samples = |value: &Value| (value.as_f64().unwrap() * RATE).round() as u64;
    let spans = answer["speech"].as_array().unwrap().iter();
    spans
        .map(|span| json!({ "start": samples(&span["start"]), "end": samples(&span["end"]) }))
        .collect()
}

/// The answer to samples that come after those with this state.
#[track_caller]
fn sends_piece(server: &Server, samples: &[u8], state: &str, has_more: bool) -> Value {
    let mut body =
        b"--edge\r\ncontent-disposition: form-data; name=\"audio\"; filename=\"piece\"\r\n\
                     content-type: audio/pcm\r\n\r\n"
            .to_vec();
    body.extend(samples);
    let part = "\r\n--edge\r\ncontent-disposition: form-data; name=\"state\"\r\n\r\n";
    body.extend(format!("{part}{state}\r\n--edge--\r\n").into_bytes());
    let form = [("content-type", "multipart/form-data; boundary=edge")];
    server.data.send("POST", &format!("{PATH}?more={has_more}"), &form, Some(&body)).ok()
}

#[test]
fn a_recording_has_the_speech_that_the_models_package_finds() {
    let server = deployed();
    let golden: Value = serde_json::from_slice(&files::of_model("listen", "golden.json")).unwrap();
    let recording = recording();
    // Each has a state of its own, also side by side.
    let send = || server.data.post(PATH, &recording).ok();
    let answers = thread::scope(|scope| {
        let other = scope.spawn(send);
        [send(), other.join().unwrap()]
    });
    assert_eq!(answers[0], answers[1]);
    let (found, expected) = (probabilities(&answers[0]), probabilities(&golden));
    assert_eq!(found.len(), expected.len());
    let is_close = |(one, other): (&f64, &f64)| (one - other).abs() <= TOLERANCE;
    let far = found.iter().zip(&expected).position(|pair| !is_close(pair));
    assert_eq!(far, None, "{:?}", far.map(|at| (found[at], expected[at])));
    assert_eq!(Value::Array(speech(&answers[0])), golden["speech"]);
    assert_eq!(answers[0].get("state"), None);
    // No run shares a batch with one of another client.
    let model = &server.status()["models"]["listen-vad"];
    assert_eq!(model["batching"]["is_on"], false, "{model}");
}

#[test]
fn pieces_with_the_state_of_the_one_before_are_the_whole() {
    let server = deployed();
    // Three seconds around the place where the first speech ends.
    let recording = recording();
    let samples = &recording[HEAD_BYTES + 2 * 88_000..HEAD_BYTES + 2 * 136_000];
    let pcm = [("content-type", "audio/pcm")];
    let whole = server.data.send("POST", PATH, &pcm, Some(samples)).ok();
    assert_eq!(speech(&whole).len(), 2, "{whole}");
    // Less than the model takes at a time, nothing, and pieces that cut its chunks.
    let (mut state, mut at) = (String::new(), 0);
    let (mut found, mut spans) = (Vec::new(), Vec::new());
    for length in [100, 0, 411, 1, 20_000, 10_011] {
        let piece = &samples[2 * at..2 * (at + length)];
        let answer = sends_piece(&server, piece, &state, true);
        answer["state"].as_str().unwrap().clone_into(&mut state);
        at += length;
        found.extend(probabilities(&answer));
        spans.extend(speech(&answer));
        assert_eq!(found.len(), at / 512, "all whole chunks of {at} samples were heard");
    }
    let last = sends_piece(&server, &samples[2 * at..], &state, false);
    found.extend(probabilities(&last));
    spans.extend(speech(&last));
    assert_eq!(found, probabilities(&whole));
    assert_eq!(spans, speech(&whole));
    // Without the state the same samples sound otherwise.
    let alone = sends_piece(&server, &samples[2 * at..], "", false);
    assert_ne!(probabilities(&alone), probabilities(&last));
}

#[test]
fn other_files_rates_lengths_and_states_are_refused() {
    let server = deployed();
    let recording = recording();
    server.data.post(PATH, b"no recording").refused(
        415,
        "unsupported_media_type",
        &["not a WAV file", "audio/pcm", "16000 Hz"],
    );
    let mut fast = recording.clone();
    fast[24..28].copy_from_slice(&48_000_u32.to_le_bytes());
    let named = ["has Hz 48000, not Hz 16000"];
    server.data.post(PATH, &fast).refused(422, "unprocessable", &named);
    server.data.post(PATH, &recording[..80]).refused(
        400,
        "invalid_request",
        &["malformed WAV file"],
    );
    let odd = &recording[..HEAD_BYTES + 3];
    server.data.post(PATH, odd).refused(400, "invalid_request", &["3 bytes, but a sample has 2"]);
    let raw = |path: &str, body: &[u8]| {
        server.data.send("POST", path, &[("content-type", "audio/pcm")], Some(body))
    };
    let long = raw(PATH, &vec![0_u8; 2 * 61 * 16_000]);
    long.refused(422, "unprocessable", &["the audio has 61 s", "may have 60", "?more=true"]);
    let more = raw(&format!("{PATH}?more=1"), &[]);
    more.refused(400, "invalid_request", &["more is \"1\", not true or false"]);
    let form = |state: &[u8]| {
        let state = STANDARD.encode(state);
        let body = format!(
            "--edge\r\ncontent-disposition: form-data; name=\"audio\"\r\ncontent-type: audio/pcm\
             \r\n\r\n{}\r\n--edge\r\ncontent-disposition: form-data; name=\"state\"\r\n\r\n{state}\
             \r\n--edge--\r\n",
            "\0".repeat(1024)
        );
        let headers = [("content-type", "multipart/form-data; boundary=edge")];
        server.data.send("POST", PATH, &headers, Some(body.as_bytes()))
    };
    let refused = |state: &[u8]| {
        let named = ["the state is not one of an answer"];
        form(state).refused(400, "invalid_request", &named);
    };
    refused(b"a state");
    // One of zeros would be as new, but nothing is open at its beginning.
    let mut state = vec![0_u8; 24 + 1024 + 128];
    refused(&state);
    state[8..16].copy_from_slice(&(-1_f64).to_le_bytes());
    state[16..24].copy_from_slice(&(-1_f64).to_le_bytes());
    form(&state).ok();
    // What a model remembers are numbers.
    state[24..28].copy_from_slice(&f32::NAN.to_le_bytes());
    refused(&state);
}
