//! From the files that a model names to parts of its package.

use std::collections::BTreeSet;
use std::path::Path;

use super::{ENTRIES_MAX, Package, PackageError, PackageFile, has_models_name, plain_path};
use crate::onnx::weights::{self, External, Placed, Range, Unclear};

/// The paths of the files in which a model has weights, sorted and without `.` in them.
///
/// # Errors
/// The file is not an ONNX file; a tensor does not say where its data is, or has it elsewhere; or
/// the files are too many for a package.
pub fn files_of(onnx: &[u8]) -> Result<Vec<String>, PackageError> {
    let mut files = BTreeSet::new();
    weights::placed(onnx, |external| -> Result<_, PackageError> {
        files.insert(inside(&external.tensor, external.range)?.location);
        // One more is the model.
        match files.len() < ENTRIES_MAX {
            true => Ok(None),
            false => Err(PackageError::Scattered(ENTRIES_MAX)),
        }
    })?;
    Ok(files.into_iter().collect())
}

/// The `onnx` of a package with all data of its tensors in the file `archive`, the package itself.
///
/// # Errors
/// The model names a file that is not in the package, or a part of one that is not in the file; or
/// the package has a file that the model does not name.
pub(crate) fn placed(
    package: &Package,
    onnx: Vec<u8>,
    archive: &str,
) -> Result<Vec<u8>, PackageError> {
    let model = package.model()?;
    let folder = Path::new(&model.name).parent().and_then(Path::to_str).unwrap_or_default();
    let mut named = BTreeSet::from([model.name.clone()]);
    let placed = weights::placed(&onnx, |external| -> Result<_, PackageError> {
        let (part, placed) = place(package, folder, external, archive)?;
        named.insert(part.name.clone());
        Ok(Some(placed))
    })?;
    let unnamed = package.parts.iter().filter(|part| !named.contains(&part.name));
    let unnamed: Vec<_> = unnamed.map(|part| part.name.clone()).collect();
    if !unnamed.is_empty() {
        return Err(PackageError::Unnamed(unnamed));
    }
    Ok(placed.unwrap_or(onnx))
}

fn place<'a>(
    package: &'a Package,
    folder: &str,
    external: External,
    archive: &str,
) -> Result<(&'a PackageFile, Placed), PackageError> {
    let External { tensor, range, needed } = external;
    let Range { location, offset, length } = inside(&tensor, range)?;
    let path = if folder.is_empty() { location.clone() } else { format!("{folder}/{location}") };
    let Some(part) = package.part(&path) else {
        return Err(PackageError::Missing { tensor, file: location });
    };
    let rest = part.bytes.saturating_sub(offset);
    // Without a length the data ends where the tensor does, or else with the file.
    let length = length.or(needed).unwrap_or(rest);
    if offset > part.bytes || length > rest {
        let (file, bytes) = (location, part.bytes);
        return Err(PackageError::Outside { tensor, file, offset, length, bytes });
    }
    if let Some(needed) = needed.filter(|needed| *needed != length) {
        return Err(PackageError::OtherLength { tensor, file: location, length, needed });
    }
    let location = archive.to_owned();
    Ok((part, Placed { location, offset: part.offset + offset, length }))
}

/// The part of a file that a tensor names, if the file may be one beside the model.
fn inside(tensor: &str, range: Result<Range, Unclear>) -> Result<Range, PackageError> {
    let tensor = tensor.to_owned();
    let range = match range {
        Ok(range) => range,
        Err(unclear) => return Err(PackageError::Unclear { tensor, unclear }),
    };
    match plain_path(&range.location) {
        Ok(path) if has_models_name(&path) => {
            Err(PackageError::InModel { tensor, file: range.location })
        }
        Ok(location) if !location.is_empty() => Ok(Range { location, ..range }),
        _ => Err(PackageError::Elsewhere { tensor, file: range.location }),
    }
}
