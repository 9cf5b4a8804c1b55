//! The kept inputs of the fuzz targets: seeds, and inputs that found a fault once.
//!
//! `cargo xtask fuzz` gives the targets new inputs; see `host/fuzz`. Here each of the kept ones is
//! given to the same functions.

use std::fs;
use std::path::{Path, PathBuf};

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
        use gristmill_sandbox::FormPart;

        /// The parts of a form, as the data plane finds them.
        pub(super) async fn split(
            content_type: &str,
            body: Bytes,
        ) -> Result<Vec<FormPart>, String> {
            let head = Request::post("/").header("content-type", content_type).body(());
            let (head, ()) = head.map_err(|error| error.to_string())?.into_parts();
            let request = gristmill_serve::edge::request_for_plugin(&head, body).await;
            request.map(|request| request.parts).map_err(|problem| problem.detail)
        }
    }
}

/// The kept inputs of a target, with their paths.
fn kept(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    let mut paths: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} is empty", folder.display());
    paths.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// A target's name, and what it does with an input.
type FuzzFunction<'a> = (&'a str, &'a dyn Fn(&[u8]));

#[test]
fn every_kept_input_of_each_target_holds() {
    let guest = targets::tensors::Guest::loaded();
    let uploads = targets::admission::Uploads::of_nothing();
    let cached = targets::artifacts::Cached::compiled();
    let targets: [FuzzFunction<'_>; 6] = [
        ("tensors", &|bytes| guest.run(bytes)),
        ("images", &targets::images::work_on),
        ("multipart", &targets::multipart::run),
        ("admission", &|bytes| uploads.run(bytes)),
        ("artifacts", &|bytes| cached.run(bytes)),
        ("messages", &targets::messages::run),
    ];
    for (target, run) in targets {
        for (path, input) in kept(target) {
            // Shown if the input fails.
            println!("{target}: {}", path.display());
            run(&input);
        }
    }
}
