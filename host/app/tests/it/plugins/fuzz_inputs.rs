//! The kept inputs of the fuzz targets: seeds, and inputs that found a fault once.
//!
//! `cargo xtask fuzz` gives the targets new inputs; see `host/fuzz`. Here each of the kept ones is
//! given to the same functions.

use std::fs;
use std::path::Path;

#[allow(dead_code, reason = "the files are shared with the programs that fuzz")]
#[path = "../../../../fuzz/src"]
mod targets {
    pub(super) mod admission;
    pub(super) mod artifacts;
    pub(super) mod images;
    pub(super) mod messages;
    pub(super) mod multipart;
    pub(super) mod tensors;

    mod guest;
    mod sandboxed;

    /// Memory is not measured here: `host/imaging/tests` do that with an allocator of their own.
    mod allocations {
        pub(super) fn peak_during<T>(work: impl FnOnce() -> T) -> (T, usize) {
            (work(), 0)
        }
    }

    mod form {
        use bytes::Bytes;
        use gristmill_client::http::Request;
        use gristmill_sandbox::Part;

        /// The parts of a form, as the data plane finds them.
        pub(super) async fn split(content_type: &str, body: Bytes) -> Result<Vec<Part>, String> {
            let head = Request::post("/").header("content-type", content_type).body(());
            let (head, ()) = head.map_err(|error| error.to_string())?.into_parts();
            let request = gristmill_serve::edge::request_for_plugin(&head, body).await;
            request.map(|request| request.parts).map_err(|problem| problem.detail)
        }
    }
}

/// Give every kept input of a target to it.
#[track_caller]
fn all_hold(target: &str, run: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    let mut paths: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} is empty", folder.display());
    for path in paths {
        // Shown if the input fails.
        println!("{}", path.display());
        run(&fs::read(path).unwrap());
    }
}

#[test]
fn tensors() {
    let guest = targets::tensors::Guest::loaded();
    all_hold("tensors", |bytes| guest.run(bytes));
}

#[test]
fn images() {
    all_hold("images", targets::images::work_on);
}

#[test]
fn multipart() {
    all_hold("multipart", targets::multipart::run);
}

#[test]
fn admission() {
    let uploads = targets::admission::Uploads::of_nothing();
    all_hold("admission", |bytes| uploads.run(bytes));
}

#[test]
fn artifacts() {
    let cached = targets::artifacts::Cached::compiled();
    all_hold("artifacts", |bytes| cached.run(bytes));
}

#[test]
fn messages() {
    all_hold("messages", targets::messages::run);
}
