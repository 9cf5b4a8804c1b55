//! The parts of a server that settings name: the library that runs models, the runtimes of
//! languages, and the store.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use gristmill_backend::{Backends, LibrarySearch, ProviderKind};
use gristmill_cli::doctor::Finding;
use gristmill_core::BufferPool;
use gristmill_sandbox::{Language, SandboxConfig};
use gristmill_store::{Store, StoreUrl};
use tokio::time::timeout;

use crate::config::Config;
use crate::hash_key;

/// The time for an answer of the store.
const STORE_TIME: Duration = Duration::from_secs(10);

/// Which library runs models, and on what.
pub(super) fn onnxruntime(config: &Config) -> Finding {
    const SUBJECT: &str = "onnxruntime";
    let configured = config.models.onnxruntime_library.clone();
    let data_dir = &config.data.data_dir;
    let search =
        LibrarySearch { configured: configured.clone(), data_directory: Some(data_dir.clone()) };
    let Some(path) = search.find() else {
        let cure = format!(
            "give --onnxruntime-library or ORT_DYLIB_PATH, or put it into {}: `pip install \
             onnxruntime` has one",
            data_dir.join("onnxruntime").display()
        );
        let text = "there is no library: models run on tract, several times slower";
        return Finding::warning(SUBJECT, text, cure);
    };
    // As if it were configured: then it says why it cannot be used.
    let found = LibrarySearch { configured: Some(path), data_directory: None };
    match Backends::open(&found, BufferPool::new(0), config.models.model_run_memory_bytes) {
        Ok(backends) => {
            let path = backends.library().unwrap_or(data_dir).display().to_string();
            let kinds = backends.providers().into_iter().map(ProviderKind::as_str);
            let kinds = kinds.collect::<Vec<_>>().join(", ");
            // The version is a part of the file's name in all packages; a build is known besides.
            let build = backends.onnxruntime_build().unwrap_or_default();
            let build = build.trim_start_matches("ORT Build Info: ");
            Finding::ok(SUBJECT, format!("{path} ({build}); providers: {kinds}"))
        }
        Err(error) => {
            let text = error.to_string();
            let cure = "take the library of another package of onnxruntime, 1.23 or newer";
            match configured {
                Some(_) => Finding::fault(SUBJECT, text, cure),
                None => Finding::warning(SUBJECT, format!("{text}: models run on tract"), cure),
            }
        }
    }
}

/// Which shared runtimes of languages there are.
pub(super) fn runtimes(config: &Config) -> Finding {
    const SUBJECT: &str = "runtimes";
    let usual = || SandboxConfig::new(PathBuf::new()).runtimes_directory;
    let folder = config.plugins.runtimes_directory.clone().or_else(usual);
    let cure = "`cargo xtask runtimes` builds them; runtimes_directory names their folder";
    let Some(folder) = folder else {
        let text = "there are none: plugins that are archives of sources are refused";
        return Finding::warning(SUBJECT, text, cure);
    };
    let is_there = |language: &Language| {
        language.runtime_files().iter().any(|name| folder.join(name).is_file())
    };
    let (there, missing): (Vec<_>, Vec<_>) = Language::ALL.into_iter().partition(is_there);
    let names = |languages: &[Language]| {
        languages.iter().map(|language| language.name()).collect::<Vec<_>>().join(", ")
    };
    let place = folder.display();
    match missing.is_empty() {
        true => Finding::ok(SUBJECT, format!("{} in {place}", names(&there))),
        false => {
            let text = format!("{place} has none for {}", names(&missing));
            Finding::warning(SUBJECT, text, cure)
        }
    }
}

/// Whether the store answers, and the secret of hashes can be read.
pub(super) fn store(config: &Config) -> Finding {
    const SUBJECT: &str = "store";
    if let Err(error) = hash_key::read(&config.data) {
        return Finding::fault(SUBJECT, format!("{error:#}"), "");
    }
    let Some(url) = &config.data.store else {
        let folder = config.data.data_dir.join("store");
        return Finding::ok(SUBJECT, format!("the folder {}, of one server", folder.display()));
    };
    // Opening would make it.
    if url.folder().is_some_and(|folder| !folder.exists()) {
        let text = format!("{url} is not there: a server makes it");
        return Finding::warning(SUBJECT, text, "if others share it, check that it is mounted");
    }
    match asked(url) {
        Ok(()) => Finding::ok(SUBJECT, format!("{url} answers")),
        Err(error) => {
            let cure = "check the address, and the credentials in the environment (AWS_*, GOOGLE_*, \
                        AZURE_*)";
            Finding::fault(SUBJECT, format!("{url}: {error:#}"), cure)
        }
    }
}

/// List the log, as servers do. A record such as the log's end would be read from the copies.
fn asked(url: &StoreUrl) -> Result<()> {
    // Copies of files: not those of a server.
    let copies = tempfile::tempdir()?;
    let store = Store::open_shared(url, copies.path(), 0)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answer = runtime.block_on(async { timeout(STORE_TIME, store.next_after(0)).await });
    runtime.shutdown_background();
    let answer = answer.with_context(|| format!("no answer within {} s", STORE_TIME.as_secs()))?;
    answer?;
    Ok(())
}
