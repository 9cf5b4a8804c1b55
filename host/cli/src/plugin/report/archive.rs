//! What is known about an archive of sources.

use std::fmt::Write;
use std::path::Path;

use anyhow::Result;
use gristmill_core::{Digest, PluginLimits};
use gristmill_sandbox::Archive;
use serde_json::{Value, json};

use crate::output::kib;
use crate::plugin::loading::Loaded;

/// The report as text and as JSON.
pub(super) fn report(path: &Path, file: &[u8], loaded: Option<&Loaded>) -> Result<(String, Value)> {
    let Archive { manifest, files } = Archive::read(file)?;
    let (digest, language) = (Digest::of(file), manifest.language.name());
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:<10} {value}");
    };
    line("archive", &path.display().to_string());
    line("size", &format!("{}, {} files", kib(file.len() as u64), files.len()));
    line("digest", &digest.to_string());
    line("runtime", &format!("{language}, loads {}", manifest.app));
    let mut document = json!({
        "archive": path.display().to_string(),
        "size_bytes": file.len(),
        "files": files.keys().collect::<Vec<_>>(),
        "runtime": language,
        "app": manifest.app,
        "digest": digest.to_string(),
    });
    if let Some(Loaded { roles, time, initial_memory_bytes }) = loaded {
        line("world", roles.world());
        let (initial, most) = (*initial_memory_bytes, PluginLimits::default().memory_bytes as u64);
        let most = kib(most);
        line(
            "memory",
            &format!("begins with {} (at most {most}, if not configured)", kib(initial)),
        );
        line("loaded", &format!("in {:.1} s on one core", time.as_secs_f64()));
        document["world"] = json!(roles.world());
        document["initial_memory_bytes"] = json!(initial);
        document["load_ms"] = json!(time.as_millis() as u64);
    }
    Ok((text, document))
}
