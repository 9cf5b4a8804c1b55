//! Tables in files among the assets of a pipeline: what plugins get, what they are told about
//! broken files, what a table costs, and a recommendation whose products lie in one.

use std::fs;

use serde_json::{Value, json};

use crate::support::cli::Cli;
use crate::support::deploy::processor;
use crate::support::eventually::eventually;
use crate::support::files;
use crate::support::recommend;
use crate::support::server::Server;
use crate::support::setup::Setup;

const PRODUCTS: &str = "id,price,rating\n7,9.5,4\nb,2,3\n";

/// An open tenant whose pipeline `hostile` has this file as `products.csv`.
#[track_caller]
fn with_table(server: &Server, tenant: &str, file: impl AsRef<[u8]>) {
    server.hostile(tenant);
    put_table(server, tenant, file);
    let mut pipeline = processor("hostile", json!({ "cpu_ms": 20_000, "timeout_ms": 60_000 }));
    pipeline["assets"] = json!({ "products.csv": "products" });
    server.pipeline(tenant, "hostile", &pipeline);
}

#[track_caller]
fn put_table(server: &Server, tenant: &str, file: impl AsRef<[u8]>) {
    server.put(&format!("tenants/{tenant}/assets/products"), file.as_ref());
}

/// What the plugin got, or why it got nothing.
#[track_caller]
fn asked(server: &Server, tenant: &str, query: &str) -> String {
    asked_with(server, tenant, query, b"")
}

#[track_caller]
fn asked_with(server: &Server, tenant: &str, query: &str, body: &[u8]) -> String {
    let path = format!("/v1/{tenant}/infer/hostile?do=table&asset=products.csv&{query}");
    let answer = server.data.post(&path, body);
    assert_eq!(answer.status, 200, "{query}: {}", answer.text());
    answer.text()
}

/// An `.npy` file of two dimensions.
fn npy(descr: &str, [rows, width]: [usize; 2], numbers: &[u8]) -> Vec<u8> {
    let header =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({rows}, {width}), }}");
    let header = format!("{header:<117}\n");
    [b"\x93NUMPY\x01\x00\x76\x00", header.as_bytes(), numbers].concat()
}

#[test]
fn rows_are_gathered_on_the_host() {
    let server = Server::start();
    with_table(&server, "acme", PRODUCTS);
    let rows = asked(&server, "acme", "keys=b,none,7&width=2");
    assert_eq!(rows, "[3, 2] [2.0, 3.0, -1.0, -1.0, 9.5, 4.0]");
    assert_eq!(asked(&server, "acme", "keys=7,none&columns=rating"), "[2, 1] [4.0, -1.0]");
    assert_eq!(asked_with(&server, "acme", "width=2", b"[7]"), "[1, 2] [9.5, 4.0]");
    // The next version is read anew, in another format.
    let numbers: Vec<u8> = [1.5_f64, -2.0].iter().flat_map(|number| number.to_le_bytes()).collect();
    put_table(&server, "acme", npy("<f8", [2, 1], &numbers));
    assert_eq!(asked(&server, "acme", "keys=1,2,0&width=1"), "[3, 1] [-2.0, -1.0, 1.5]");
    assert_eq!(asked_with(&server, "acme", "width=1", b"[1, -1]"), "[2, 1] [-2.0, -1.0]");
}

#[test]
fn a_file_of_pandas_is_read_as_it_is() {
    let server = Server::start();
    // The ids are the index, and a number is missing.
    let file = files::root().join("host/tables/tests/fixtures/pandas.parquet");
    let file = fs::read(file).unwrap();
    with_table(&server, "acme", &file);
    let rows = asked(&server, "acme", "keys=7,none,-1&width=2");
    assert_eq!(rows, "[3, 2] [9.5, 4.0, -1.0, -1.0, NaN, 3.0]");
    assert_eq!(asked(&server, "acme", "keys=7&columns=rating"), "[1, 1] [4.0]");
    put_table(&server, "acme", &file[..file.len() - 1]);
    let refused = asked(&server, "acme", "keys=7&width=2");
    let text = "malformed: asset \"products.csv\": it begins as a Parquet file, but its end is";
    assert!(refused.starts_with(text), "{refused}");
}

#[test]
fn broken_files_and_wrong_arguments_are_named() {
    let server = Server::start();
    with_table(&server, "acme", PRODUCTS);
    let wrong = |query: &str| asked(&server, "acme", query);
    let text = "it has 2 columns besides the key, but the width is 3";
    let invalid = "invalid-argument: asset \"products.csv\": ";
    assert_eq!(wrong("keys=7&width=3"), format!("{invalid}{text}"));
    let text = "it has no column \"stock\": its columns are price, rating";
    assert_eq!(wrong("keys=7&columns=stock"), format!("{invalid}{text}"));
    let path = "/v1/acme/infer/hostile?do=table&asset=other.csv&keys=7&width=2";
    let missing = server.data.post(path, b"").text();
    assert!(missing.starts_with("no-asset: no asset \"other.csv\": there are products.csv; put a"));

    for (file, text) in [
        (
            b"id,price\n7,1\n8,cheap\n".to_vec(),
            "malformed: asset \"products.csv\": line 3: column \"price\" has \"cheap\", which is not",
        ),
        (b"id,price\n7,1\n7,2\n".to_vec(), "malformed: asset \"products.csv\": line 3: an earlier"),
        (b"\x00\xff".to_vec(), "malformed: asset \"products.csv\": line 1 is not UTF-8"),
        (
            npy("<f2", [1, 1], &[0, 0]),
            "malformed: asset \"products.csv\": its dtype is <f2: must be little-endian float32",
        ),
        (
            npy("<f4", [2, 1], &[0; 4]),
            "malformed: asset \"products.csv\": its header says (2, 1) numbers in 8 bytes, but 4",
        ),
        (
            [b"id,price\n7,".to_vec(), vec![b'1'; 2 << 20]].concat(),
            "malformed: asset \"products.csv\": line 2 is longer than 1048576 bytes: the first",
        ),
    ] {
        put_table(&server, "acme", file);
        for _ in 0..2 {
            let refused = wrong("keys=7&width=1");
            assert!(refused.starts_with(text), "{refused}");
        }
    }
    put_table(&server, "acme", PRODUCTS);
    assert_eq!(wrong("keys=7&width=2"), "[1, 2] [9.5, 4.0]");
}

#[test]
fn tenants_pay_for_their_own_tables_and_let_go_of_them() {
    let server = Server::start();
    let held = |tenant: &str| {
        server.status()["tenants"][tenant]["bytes_under_way"].as_u64().unwrap_or_default()
    };
    // A file of 150 kB, and a table of 400 kB.
    let rows = (0..20_000).map(|row| format!("{row},1\n")).collect::<String>();
    let file = format!("id,n\n{rows}");
    for tenant in ["one", "other"] {
        with_table(&server, tenant, &file);
    }
    let rows = asked(&server, "one", "keys=19999,20000&width=1");
    assert_eq!(rows, "[2, 1] [1.0, -1.0]");
    eventually("the first tenant pays", || held("one") > 300_000);
    assert!(held("other") < 300_000, "{}", held("other"));
    assert_eq!(asked(&server, "other", "keys=19999,20000&width=1"), rows);
    eventually("the other tenant pays, too", || held("other") > 300_000);
    put_table(&server, "one", PRODUCTS);
    eventually("the first tenant has let go of it", || held("one") < 300_000);
    assert_eq!(asked(&server, "other", "keys=19999,20000&width=1"), rows);
}

#[test]
fn a_table_beyond_the_tenants_memory_is_refused_before_it_is_read() {
    let setup = Setup::new().flag("--tenant-bytes-max", "8388608");
    let server = setup.flag("--message-bytes-max", "1048576").start();
    server.digits("beside");
    // Its rows have one key, but no row is read.
    with_table(&server, "acme", format!("id,n\n{}", "7,1\n".repeat(530_000)));
    let path = "/v1/acme/infer/hostile?do=table&asset=products.csv&keys=7&width=1";
    let refused = server.data.post(path, b"");
    refused.refused(429, "tenant_busy", &["bytes in flight", "8388608"]);
    put_table(&server, "acme", PRODUCTS);
    assert_eq!(asked(&server, "acme", "keys=7&width=2"), "[1, 2] [9.5, 4.0]");
    server.assert_reads("beside", 7);
}

#[test]
fn products_of_a_recommendation_can_lie_in_a_table() {
    let server = recommend::deployed("embedded = true");
    // The store has no products.
    recommend::load(&server, "users", "user:");
    let cli = Cli::of(&server);
    cli.write("products.csv", recommend::features("products", ""));
    cli.ok(&["asset", "push", "products.csv", "--tenant", "demo", "--name", "products"]);
    let mut pipeline = recommend::pipeline();
    pipeline["settings"] = json!({ "table": "products.csv" });
    pipeline["assets"] = json!({ "products.csv": "products" });
    server.pipeline("demo", "recommend", &pipeline);
    recommend::assert_golden(&server);

    // The next price list takes effect without a build.
    let sends = || -> Value {
        let body = json!({ "userId": 1, "productIds": [3, 4] }).to_string();
        server.data.post(recommend::PATH, body.as_bytes()).ok()
    };
    let before = sends();
    let changed = recommend::features("products", "").replace("\n3,", "\n0,");
    cli.write("products.csv", changed);
    cli.ok(&["asset", "push", "products.csv", "--tenant", "demo", "--name", "products"]);
    assert_ne!(sends(), before);
}
