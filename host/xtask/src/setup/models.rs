//! Models of others, which are not committed: scripts in `models/` take them out of packages.

use std::fs;

use anyhow::Result;

use crate::shell::{program, root, run, step, target};

/// The folders in `models/` whose `fetch.py` fetches models, by the digests in
/// `requirements.txt`, into a folder of the same name in `target/models`.
const FETCHED: [&str; 1] = ["ocr"];

/// Fetch the models that are missing, or whose packages have changed.
pub(crate) fn fetch_models() -> Result<()> {
    for name in FETCHED {
        let wanted = fs::read_to_string(root().join(format!("models/{name}/requirements.txt")))?;
        let folder = target().join("models").join(name);
        let stamp = folder.join("requirements.fetched");
        if fs::read_to_string(&stamp).is_ok_and(|fetched| fetched == wanted) {
            continue;
        }
        step(&format!("fetching the models of the sample {name}"));
        run(program("python3").arg(format!("models/{name}/fetch.py")).arg(&folder))?;
        fs::write(stamp, wanted)?;
    }
    Ok(())
}
