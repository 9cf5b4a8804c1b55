//! The file by which a plugin for a model of texts gets tokens: `tokenizer.json` of Hugging Face's
//! tokenizers.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::ArgMatches;
use gristmill_core::Name;
use serde_json::Value;

use super::fit::TOKENIZER;
use super::signature::{Signature, Texts};
use crate::args::text;
use crate::plugin::model::Model;

/// The largest file that the host reads.
const BYTES_MAX: u64 = 64 << 20;

/// The file that the command line names, or the one beside a model of texts. None if there is none.
/// `signatures` are those of the models, in the same order.
///
/// # Errors
/// The named file cannot be read, or a file is no tokenizer.
pub(super) fn read(
    models: &[&Model],
    signatures: &[(Option<&Name>, String, Signature)],
    matches: &ArgMatches,
) -> Result<Option<Vec<u8>>> {
    if let Some(file) = text(matches, "tokenizer") {
        return read_file(Path::new(file)).map(Some);
    }
    let of_texts = models
        .iter()
        .zip(signatures)
        .filter(|(_, (_, _, signature))| Texts::of(signature).is_some());
    let mut found = of_texts.filter_map(|(model, _)| beside(model)).filter(|file| file.is_file());
    let Some(first) = found.next() else { return Ok(None) };
    if let Some(other) = found.find(|other| *other != first) {
        bail!(
            "there are {} and {}, and a plugin that is made has one: name it with --tokenizer FILE",
            first.display(),
            other.display()
        );
    }
    read_file(&first).map(Some)
}

/// Where the file of a model that is a file would be.
fn beside(model: &Model) -> Option<PathBuf> {
    let Model::File(file) = model else { return None };
    let folder = if file.is_dir() { file } else { file.parent()? };
    Some(folder.join(TOKENIZER))
}

fn read_file(file: &Path) -> Result<Vec<u8>> {
    let shown = || format!("--tokenizer: cannot read {}", file.display());
    let bytes = fs::metadata(file).with_context(shown)?.len();
    ensure!(
        bytes <= BYTES_MAX,
        "--tokenizer: {} has {bytes} bytes; a server reads at most {BYTES_MAX}",
        file.display()
    );
    let content = fs::read(file).map_err(|error| match error.kind() {
        ErrorKind::IsADirectory => anyhow::anyhow!("it is a folder: name its {TOKENIZER}"),
        _ => error.into(),
    });
    let content = content.with_context(shown)?;
    let document = serde_json::from_slice::<Value>(&content).ok();
    ensure!(
        document.is_some_and(|document| document["model"].is_object()),
        "--tokenizer: {} is not a tokenizer.json of Hugging Face's tokenizers: it has no object \
         \"model\"",
        file.display()
    );
    Ok(content)
}
