//! Models as exporters write them: with their weights in files beside them, classifiers that end in
//! maps, and inputs that have defaults.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use gristmill_backend::package::{END, header_of, padding_of};
use serde_json::{Map, Value, json};

use crate::support::cli::Cli;
use crate::support::client::TestAnswer;
use crate::support::files;
use crate::support::onnx;
use crate::support::server::Server;
use crate::support::setup::{ADMIN_TOKEN, Setup};
use crate::support::words::assert_names;

/// The entries of a tensor of 16 bytes behind 8 others.
const BEHIND: [(&str, &str); 3] =
    [("location", "weights/model.onnx.data"), ("offset", "8"), ("length", "16")];

/// Four factors behind 8 bytes.
fn weights() -> Vec<u8> {
    let factors = [1.0_f32, 2.0, 3.0, 4.0].map(f32::to_le_bytes);
    [vec![7; 8], factors.concat()].concat()
}

fn tar(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = Vec::new();
    for (name, content) in parts {
        archive.extend(header_of(name, content.len() as u64));
        archive.extend_from_slice(content);
        archive.extend(padding_of(content.len() as u64));
    }
    archive.extend(END);
    archive
}

/// A zip archive, packed if `method` is 8.
fn zip(parts: &[(&str, &[u8])], method: u16) -> Vec<u8> {
    let (mut archive, mut list) = (Vec::new(), Vec::new());
    for (name, content) in parts {
        let mut packed = content.to_vec();
        if method == 8 {
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(content).unwrap();
            packed = encoder.finish().unwrap();
        }
        let mut checksum = flate2::Crc::new();
        checksum.update(content);
        let mut about = [0, 0, 0, 0].to_vec();
        about[..2].copy_from_slice(&20_u16.to_le_bytes());
        about.extend(method.to_le_bytes());
        about.extend([0; 4]);
        about.extend(checksum.sum().to_le_bytes());
        about.extend((packed.len() as u32).to_le_bytes());
        about.extend((content.len() as u32).to_le_bytes());
        about.extend((name.len() as u16).to_le_bytes());
        about.extend([0; 2]);
        list.extend(b"PK\x01\x02\x14\x00");
        list.extend(&about);
        list.extend([0; 10]);
        list.extend((archive.len() as u32).to_le_bytes());
        list.extend(name.as_bytes());
        archive.extend(b"PK\x03\x04");
        archive.extend(about);
        archive.extend(name.as_bytes());
        archive.extend(packed);
    }
    let at = archive.len() as u32;
    archive.extend(&list);
    archive.extend(b"PK\x05\x06\x00\x00\x00\x00");
    archive.extend([(parts.len() as u16).to_le_bytes(); 2].concat());
    archive.extend((list.len() as u32).to_le_bytes());
    archive.extend(at.to_le_bytes());
    archive.extend([0; 2]);
    archive
}

/// A server whose tenant `acme`, which needs no key, may run the model `m` when it is there.
fn server() -> Server {
    Setup::new().flag("--open-tenant", "acme").start()
}

fn infer(server: &Server, input: &Value) -> Value {
    server.put_json("tenants/acme", &json!({ "open": true, "models": ["m"] }));
    let body = json!({ "inputs": [input] }).to_string();
    server.data.post("/v2/models/m/infer", body.as_bytes()).ok()
}

#[track_caller]
fn assert_scales(server: &Server) {
    let x = json!({ "name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 1, 1, 10] });
    assert_eq!(infer(server, &x)["outputs"][0]["data"], json!([1.0, 2.0, 3.0, 40.0]));
}

#[test]
fn a_model_is_pushed_with_the_files_beside_it_from_wherever_they_are() {
    let server = server();
    let cli = Cli::of(&server);
    let (model, data) = (onnx::scaled_by_file(&BEHIND), weights());
    cli.write("one/net.onnx", &model);
    cli.write("one/weights/model.onnx.data", &data);
    cli.write("one/tokenizer.json", "{}");
    let parts: [(&str, &[u8]); 3] = [
        ("net/weights/model.onnx.data", &data),
        ("net/net.onnx", &model),
        ("net/README.md", b"none of the model's"),
    ];
    cli.write("net.tar", tar(&parts));
    cli.write("stored.zip", zip(&parts, 0));
    cli.write("packed.zip", zip(&parts, 8));
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&tar(&parts)).unwrap();
    cli.write("net.tar.gz", encoder.finish().unwrap());
    let pushed = cli.json(&["model", "push", "one/net.onnx", "--name", "m"]);
    assert_eq!((&pushed["release"], &pushed["state"]), (&json!(1), &json!("ready")));
    assert_scales(&server);
    // It is the same model, so nothing changes.
    for from in ["one", "net.tar", "stored.zip", "packed.zip", "net.tar.gz"] {
        let again = cli.json(&["model", "push", from, "--name", "m"]);
        assert_eq!(again["digest"], pushed["digest"], "{from}");
    }
    let package = server.admin.get("/admin/v1/models/m/content");
    let expected = tar(&[("model.onnx", &model), ("weights/model.onnx.data", &data)]);
    assert!(package.status == 200 && package.body == expected);
    for provider in ["tract", "cpu"] {
        server.put_json("models/m/config", &json!({ "providers": [provider] }));
        let served = server.status()["models"]["m"].clone();
        assert_eq!(served["provider"], provider);
        // tract reads the weights into memory.
        let least = if provider == "tract" { expected.len() as u64 } else { 0 };
        assert!(served["memory_bytes"].as_u64().unwrap() >= least, "{served}");
        assert_scales(&server);
    }
    // A manifest takes it, too.
    cli.write("gristmill.toml", "[models.m]\nfile = \"one\"\n");
    let deployed = cli.run(&["diff", "gristmill.toml"]);
    assert_eq!(deployed.code, Some(0), "{deployed:?}");
}

/// As Triton's clients send what `torch.onnx.export` writes.
#[test]
fn the_open_inference_protocol_takes_a_model_with_the_files_of_its_weights() {
    let server = server();
    let operator = server.data.with_token(ADMIN_TOKEN);
    let load = |files: &[(&str, &[u8])]| {
        let file = |(name, content): &(&str, &[u8])| {
            (format!("file:{name}"), Value::from(STANDARD.encode(content)))
        };
        let parameters: Map<String, Value> = files.iter().map(file).collect();
        let body = json!({ "parameters": parameters }).to_string();
        operator.post("/v2/repository/models/m/load", body.as_bytes())
    };
    let (model, data) = (onnx::scaled_by_file(&BEHIND), weights());
    let (net, beside) = (("1/model.onnx", &model[..]), ("1/weights/model.onnx.data", &data[..]));
    load(&[net, beside]).ok();
    assert_scales(&server);
    // The same package as the command makes.
    let package = server.admin.get("/admin/v1/models/m/content");
    let expected = tar(&[("model.onnx", &model), ("weights/model.onnx.data", &data)]);
    assert!(package.status == 200 && package.body == expected);
    for (files, named) in [
        (&[net][..], "which were not uploaded (weights/model.onnx.data)"),
        (&[beside], "\"1/weights/model.onnx.data\" has no use: a model is VERSION/model.onnx"),
        (&[net, ("2/weights/model.onnx.data", &data)], "versions 1 and 2 are given"),
        (&[net, beside, ("1/x", b"")], "has x, which the model does not name"),
        (&[net, beside, ("1/../x", b"x")], "the path \"../x\""),
        (&[net, ("1/weights/model.onnx.data", &data[..12])], "the file has 12 bytes"),
    ] {
        load(files).refused_by_protocol(400, &[named]);
    }
    assert_scales(&server);
}

#[test]
fn a_model_of_several_files_is_there_after_a_restart() {
    let server = server();
    let package =
        tar(&[("m.onnx", &files::fixture("external-data.onnx")), ("weights.bin", &[0; 16])]);
    server.put("models/m", &package);
    let server = server.kill().start();
    let input =
        json!({ "name": "input", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4] });
    assert_eq!(infer(&server, &input)["outputs"][0]["data"], json!([1.0, 2.0, 3.0, 4.0]));
}

/// The archive of GNU tar and of Python's module have headers of other forms.
#[test]
fn archives_of_other_programs_are_taken() {
    let server = server();
    let cli = Cli::of(&server);
    cli.write("net/net.onnx", onnx::scaled_by_file(&BEHIND));
    cli.write("net/weights/model.onnx.data", weights());
    for format in ["gnu", "pax", "ustar"] {
        let format = format!("--format={format}");
        let arguments = [&*format, "-cf", "made.tar", "-C", "net", "."];
        let status = Command::new("tar").current_dir(cli.folder()).args(arguments).status();
        assert!(status.unwrap().success());
        let made = fs::read(cli.folder().join("made.tar")).unwrap();
        server.admin.put("/admin/v1/models/m", &made).ok();
        assert_scales(&server);
    }
}

#[test]
fn a_file_that_is_missing_elsewhere_or_a_link_is_named_before_anything_is_sent() {
    let cli = Cli::new().with("GRISTMILL_ADMIN_URL", "http://127.0.0.1:1");
    let cli = cli.with("GRISTMILL_ADMIN_TOKEN", "of-no-server-0123456789");
    let push = |path: &str| cli.refused(&["model", "push", path, "--name", "m"]);
    cli.write("a/m.onnx", onnx::scaled_by_file(&BEHIND));
    let named = ["weights/model.onnx.data", "must be beside it"];
    assert_names(&push("a/m.onnx"), &named);
    assert_names(&push("a"), &named);
    cli.write("secret", weights());
    fs::create_dir(cli.folder().join("a/weights")).unwrap();
    let link = cli.folder().join("a/weights/model.onnx.data");
    std::os::unix::fs::symlink(cli.folder().join("secret"), &link).unwrap();
    assert_names(&push("a/m.onnx"), &["a/weights/model.onnx.data is a link"]);
    for location in ["../secret", "/etc/passwd"] {
        cli.write("b/m.onnx", onnx::scaled_by_file(&[("location", location)]));
        assert_names(&push("b"), &[location, "must be relative"]);
    }
    cli.write("c.tar", tar(&[("x", b"")]));
    assert_names(&push("c.tar"), &["no file whose name ends in .onnx"]);
    cli.write("c/a.onnx", "");
    cli.write("c/b.onnx", "");
    assert_names(&push("c"), &["several models (a.onnx, b.onnx): name one"]);
    cli.write("d.zip", zip(&[("../m.onnx", b"")], 0));
    assert_names(&push("d.zip"), &["\"../m.onnx\": paths must be relative"]);
    let mut damaged = zip(&[("m.onnx", &onnx::doubling(4))], 0);
    damaged[60] ^= 1;
    cli.write("e.zip", damaged);
    assert_names(&push("e.zip"), &["m.onnx: it is damaged"]);
    // Its list says that a file has nearly 4 GiB.
    let mut bomb = zip(&[("m.onnx", &onnx::doubling(4))], 8);
    let list = bomb.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
    bomb[list + 24..list + 28].copy_from_slice(&(u32::MAX - 1).to_le_bytes());
    cli.write("f.zip", bomb);
    assert_names(&push("f.zip"), &["m.onnx: it has more than 1.00 GiB and 100 times"]);
    cli.write("g.tar.xz", b"\xfd7zXZ\0");
    assert_names(&push("g.tar.xz"), &["it is a xz archive: pack the files with tar or zip"]);
    assert_names(&push("/dev/null"), &["/dev/null: it is neither a file nor a folder"]);
    cli.write("h/m.onnx", onnx::scaled_by_file(&[("location", "w.bin"), ("offset", "-4")]));
    assert_names(&push("h"), &["tensor \"w\"", "its offset is \"-4\": must be a whole number"]);
}

#[test]
fn a_package_that_is_not_right_is_refused_with_the_reason() {
    let server = server();
    let data = weights();
    let model = |entries: &[(&str, &str)]| onnx::scaled_by_file(entries);
    let with = |entries: &[(&str, &str)]| tar(&[("m.onnx", &model(entries)), ("w.bin", &data)]);
    let [at, offset, length] = ["location", "offset", "length"];
    let (right, long) = (model(&[(at, "w.bin")]), "a".repeat(2 << 20));
    let unnamed: Vec<_> = (0..20).map(|number| format!("{number}{}", "b".repeat(60_000))).collect();
    let mut crowded: Vec<(&str, &[u8])> = vec![("m.onnx", &right), ("w.bin", &data)];
    crowded.extend(unnamed.iter().map(|name| (&**name, &b""[..])));
    let cases = [
        (tar(&[("m.onnx", &right)]), "\"w.bin\", which is not in the archive"),
        (with(&[(at, "w.bin"), (offset, "9")]), "16 bytes of \"w.bin\" from 9 on: the file has 24"),
        (with(&[(at, "w.bin"), (offset, "25")]), "from 25 on"),
        (with(&[(at, "w.bin"), (length, "25")]), "in 25 bytes"),
        (with(&[(at, "w.bin"), (length, "12")]), "12 bytes in \"w.bin\", but needs 16"),
        (with(&[(at, "w.bin"), (length, "24")]), "24 bytes in \"w.bin\", but needs 16"),
        (with(&[(at, "w.bin"), (offset, "18446744073709551615")]), "18446744073709551615"),
        (with(&[(at, "/etc/hostname")]), "\"/etc/hostname\": the path must be relative"),
        (with(&[(at, "../w.bin")]), "\"../w.bin\": the path must be relative"),
        (with(&[(at, "*/_ORT_MEM_ADDR_/*")]), "\"*/_ORT_MEM_ADDR_/*\", which is not"),
        (
            with(&[(at, "w.bin"), (at, "w.bin")]),
            "in another file, but its location stands there twice",
        ),
        (
            with(&[(at, "w.bin"), (offset, "-1")]),
            "its offset is \"-1\": must be a whole number from 0",
        ),
        (with(&[]), "its location is missing"),
        (with(&[(at, "m.onnx")]), "in \"m.onnx\": a file that ends in .onnx is a model"),
        (with(&[(at, &long)]), "aaa...\", which is not in the archive"),
        (
            tar(&[("m.onnx", &right), ("w.bin", &data), ("x", b"")]),
            "has x, which the model does not",
        ),
        (tar(&crowded), "bbb... and 15 more, which the model does not name"),
        (tar(&[("m.onnx", &right), ("../w.bin", &data)]), "the path \"../w.bin\""),
        (tar(&[("m.bin", &right), ("w.bin", &data)]), "no file whose name ends in .onnx"),
        (
            tar(&[("m.onnx", b"no model"), ("w.bin", &data)]),
            "the model in the archive is not an ONNX model",
        ),
        (with(&[(at, "w.bin")])[..1500].to_vec(), "damaged, or cut short"),
    ];
    for (package, named) in cases {
        let answer = server.admin.put("/admin/v1/models/m", &package);
        let detail = answer.refused(422, "invalid_model", &[named]);
        assert!(!detail.contains("blobs"), "{detail}");
    }
    // Nothing of them stays.
    let blobs = fs::read_dir(server.data_dir().join("blobs"));
    assert_eq!(blobs.map_or(0, Iterator::count), 0);
}

/// A server's memory does not grow with the weights: they are mapped from the file.
#[test]
fn a_large_model_of_several_files_is_never_whole_in_memory() {
    let server = server();
    let cli = Cli::of(&server);
    const ROWS: i64 = 192 << 10;
    let bytes = ROWS as u64 * 1024;
    cli.write("m.onnx", onnx::table_in_file(ROWS));
    let table = fs::File::create(cli.folder().join("table")).unwrap();
    table.set_len(bytes).unwrap();
    server.forget_peak();
    let before = server.resident_bytes();
    cli.ok(&["model", "push", "m.onnx", "--name", "m"]);
    let grown = server.peak_resident_bytes().saturating_sub(before);
    assert!((grown as u64) < bytes / 2, "the server grew by {grown} bytes");
    let x = json!({ "name": "x", "datatype": "INT64", "shape": [1], "data": [ROWS - 1] });
    assert_eq!(infer(&server, &x)["outputs"][0]["shape"], json!([1, 256]));
    assert_eq!(server.status()["models"]["m"]["provider"], "cpu");
}

#[test]
fn a_classifier_that_ends_in_maps_serves_its_probabilities() {
    for (name, input, output) in
        [("iris-sklearn", "X", "output_probability"), ("iris-lightgbm", "input", "probabilities")]
    {
        let server = server();
        let answer =
            server.admin.put("/admin/v1/models/m", &files::fixture(&format!("{name}.onnx")));
        let warnings = answer.ok()["warnings"].to_string();
        for named in [output, "(0, 1, 2)", "ZipMap", "{'zipmap': False}"] {
            assert!(warnings.contains(named), "{warnings}");
        }
        // LightGBM's converter writes that there is one label, for any number of rows.
        let model = server.status()["models"]["m"].clone();
        assert_eq!(model["batching"]["is_on"], true, "{model}");
        assert_eq!(model["outputs"][0]["shape"], json!([-1]), "{model}");
        let rows = json!([5.1, 3.5, 1.4, 0.2, 6.3, 3.3, 6.0, 2.5]);
        let x = json!({ "name": input, "datatype": "FP32", "shape": [2, 4], "data": rows });
        let outputs = infer(&server, &x)["outputs"].clone();
        assert_eq!((&outputs[0]["data"], &outputs[1]["name"]), (&json!([0, 2]), &json!(output)));
        assert_eq!(outputs[1]["shape"], json!([2, 3]));
        let all: Vec<f64> = serde_json::from_value(outputs[1]["data"].clone()).unwrap();
        for row in all.chunks(3) {
            assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-5, "{row:?}");
        }
        assert!(all[0] > all[1] && all[5] > all[4], "{all:?}");
    }
}

/// The rest of the model has only standard operators, so each provider runs it.
#[test]
fn each_provider_runs_a_classifier_without_its_maps() {
    let server = server();
    server.put("models/m", &onnx::softmax_as_maps());
    let x = json!({ "name": "x", "datatype": "FP32", "shape": [1, 2], "data": [0, 0] });
    for provider in ["cpu", "tract"] {
        server.put_json("models/m/config", &json!({ "providers": [provider] }));
        let output = infer(&server, &x)["outputs"][0].clone();
        assert_eq!((&output["name"], &output["data"]), (&json!("maps"), &json!([0.5, 0.5])));
        assert_eq!(server.status()["models"]["m"]["provider"], provider);
    }
}

/// The answer to a request for these inputs with one value for each of two columns.
fn by_defaults(server: &Server, more: &[(&str, &[f32])]) -> TestAnswer {
    let x = json!({ "name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2] });
    let more = more.iter().map(|(name, values)| {
        json!({ "name": name, "datatype": "FP32", "shape": [values.len()], "data": values })
    });
    let inputs: Vec<_> = more.chain([x]).collect();
    let body = json!({ "inputs": inputs }).to_string();
    server.data.post("/v2/models/m/infer", body.as_bytes())
}

#[test]
fn inputs_with_defaults_can_be_given_and_left_out() {
    let server = server();
    server.put("models/m", &onnx::with_defaults());
    server.put_json("tenants/acme", &json!({ "open": true, "models": ["m"] }));
    let data =
        |more: &[(&str, &[f32])]| by_defaults(&server, more).ok()["outputs"][0]["data"].clone();
    for provider in ["cpu", "tract"] {
        server.put_json("models/m/config", &json!({ "providers": [provider] }));
        let model = server.status()["models"]["m"].clone();
        assert_eq!(&model["provider"], &json!(provider));
        let named =
            |key: &str| model[key].as_array().unwrap().iter().map(|tensor| tensor["name"].clone());
        assert_eq!(named("inputs").collect::<Vec<_>>(), ["x"]);
        assert_eq!(
            named("optional_inputs").map(|name| name.to_string()).collect::<BTreeSet<_>>().len(),
            2
        );
        assert_eq!(data(&[]), json!([3.0, 5.0]));
        assert_eq!(data(&[("scale", &[10.0])]), json!([11.0, 21.0]));
        assert_eq!(data(&[("offset", &[0.5])]), json!([2.5, 4.5]));
        assert_eq!(data(&[("offset", &[0.0]), ("scale", &[3.0])]), json!([3.0, 6.0]));
        assert_eq!(data(&[]), json!([3.0, 5.0]));
        let wrong = by_defaults(&server, &[("scale", &[1.0, 2.0])]);
        wrong.refused_by_protocol(400, &["input \"scale\" has shape [2], but the model needs [1]"]);
        let unknown = by_defaults(&server, &[("scales", &[1.0])]);
        unknown.refused_by_protocol(400, &["unknown input \"scales\"", "\"x\"", "\"scale\""]);
    }
    // Clients that send what the metadata names send no defaults.
    let metadata = server.data.get("/v2/models/m").ok();
    assert_eq!(metadata["inputs"].as_array().unwrap().len(), 1);
}

/// Requests with other values, and without any, at the same time.
#[test]
fn no_request_gets_the_answer_for_anothers_default() {
    let server = server();
    server.put("models/m", &onnx::with_defaults());
    server.put_json("tenants/acme", &json!({ "open": true, "models": ["m"] }));
    server.put_json("models/m/config", &json!({ "max_queue_delay_us": 2000 }));
    std::thread::scope(|scope| {
        for client in 0..8_u16 {
            let server = &server;
            scope.spawn(move || {
                for _ in 0..50 {
                    let scale = [f32::from(client)];
                    let (inputs, expected) = match client % 2 {
                        0 => (vec![("scale", &scale[..])], [scale[0] + 1.0, 2.0 * scale[0] + 1.0]),
                        _ => (Vec::new(), [3.0, 5.0]),
                    };
                    let data = by_defaults(server, &inputs).ok()["outputs"][0]["data"].clone();
                    assert_eq!(data, json!(expected));
                }
            });
        }
    });
}
