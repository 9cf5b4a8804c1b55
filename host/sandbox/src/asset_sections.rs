//! The files of a plugin in the file that is uploaded, so that they are a part of its digest: in a
//! component custom sections, in an archive of sources the files of its folder `assets/`.
//!
//! A server reads neither: the child that compiles the file does.

use std::collections::BTreeMap;

use crate::assets::{AssetPlace, check_places, fitting};
use crate::load_error::ComponentError;
use crate::runtime::{ArchiveError, is_archive, places_in};
use crate::sections::{Section, add_section, custom_sections};

/// The beginning of the name of a custom section with a file. The file's own name follows.
const SECTION: &str = "gristmill:asset:";

/// The folder of the files, and its name in an archive.
const ASSETS_FOLDER: &str = "assets";

/// Check the files of a plugin, each with its name and its length.
///
/// # Errors
/// [`ComponentError::Asset`] names the file that is refused.
pub fn check_assets<'a>(
    files: impl IntoIterator<Item = (&'a str, usize)>,
) -> Result<(), ComponentError> {
    let place =
        |(name, bytes): (&str, usize)| AssetPlace { name: name.into(), at: 0, bytes: bytes as u64 };
    check_places(&files.into_iter().map(place).collect::<Vec<_>>())
}

/// Write the files at the end of a component.
///
/// # Errors
/// [`ComponentError::Asset`] names the file that is refused.
pub fn add_assets(
    component: &mut Vec<u8>,
    files: &BTreeMap<String, Vec<u8>>,
) -> Result<(), ComponentError> {
    check_assets(files.iter().map(|(name, content)| (name.as_str(), content.len())))?;
    for (name, content) in files {
        add_section(component, &format!("{SECTION}{name}"), content);
    }
    Ok(())
}

/// Why the files of a plugin are refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AssetsError {
    /// One of them.
    #[error(transparent)]
    Asset(#[from] ComponentError),
    /// The archive cannot be read.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
}

/// Where the files of a plugin stand in its `file`. An archive that was built before there were
/// assets may have other files in that folder. Those that do not fit are left out.
///
/// # Errors
/// The files of a component are too many or too large, or one has a bad name.
pub(crate) fn asset_places(file: &[u8]) -> Result<Vec<AssetPlace>, AssetsError> {
    if is_archive(file) {
        let found = places_in(file)?.into_iter().filter_map(|(name, at, bytes)| {
            let name = name.strip_prefix(ASSETS_FOLDER)?.strip_prefix('/')?.to_owned();
            Some(AssetPlace { name, at, bytes })
        });
        return Ok(fitting(found.collect()));
    }
    let places = sections(file);
    check_places(&places)?;
    Ok(places)
}

fn sections(file: &[u8]) -> Vec<AssetPlace> {
    let place = |Section { name, at, content }: Section<'_>| {
        let name = name.strip_prefix(SECTION.as_bytes())?;
        let name = String::from_utf8_lossy(name).into_owned();
        Some(AssetPlace { name, at: at as u64, bytes: content.len() as u64 })
    };
    custom_sections(file).filter_map(place).collect()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::assets::{ASSETS_MAX, assets_in};
    use crate::language::Language;
    use crate::runtime::{Archive, Manifest};

    fn files(files: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
        files.iter().map(|(name, content)| ((*name).into(), content.as_bytes().into())).collect()
    }

    #[track_caller]
    fn has(file: Vec<u8>, name: &str, content: &str) {
        let places = asset_places(&file).unwrap();
        let assets = assets_in(&Bytes::from(file), &places).unwrap();
        assert_eq!(&assets.get(name).unwrap().bytes()[..], content.as_bytes());
        assert!(assets.get("app.py").is_none());
    }

    #[test]
    fn a_component_has_the_files_that_its_build_adds() {
        let mut file = b"\0asm\x0d\0\x01\0".to_vec();
        add_assets(&mut file, &files(&[("labels.txt", "a\nb"), ("more/x.bin", "")])).unwrap();
        has(file.clone(), "labels.txt", "a\nb");
        has(file.clone(), "more/x.bin", "");
        let refused = add_assets(&mut file, &files(&[("a b", "")])).unwrap_err().to_string();
        assert!(refused.starts_with("asset \"a b\": its name must be"), "{refused}");
    }

    #[test]
    fn a_component_of_another_tool_is_checked_alike() {
        for name in ["../x", "/x", "a\\b", "\u{1}"] {
            let mut file = b"\0asm\x0d\0\x01\0".to_vec();
            add_section(&mut file, &format!("{SECTION}{name}"), b"x");
            let refused = asset_places(&file).unwrap_err().to_string();
            assert!(refused.contains("its name must be"), "{refused}");
        }
        let mut file = b"\0asm\x0d\0\x01\0".to_vec();
        add_section(&mut file, "gristmill:asset:x", b"1");
        add_section(&mut file, "gristmill:asset:x", b"2");
        assert!(asset_places(&file).unwrap_err().to_string().contains("twice"));
    }

    #[test]
    fn an_archive_has_those_of_its_folder() {
        let manifest = Manifest { language: Language::Python, app: "app".into() };
        let all = [("app.py", "x = 1"), ("assets/labels.txt", "a\nb"), ("assets/x", "y")];
        let archive = Archive { manifest, files: files(&all) };
        has(archive.write().unwrap(), "labels.txt", "a\nb");
        has(archive.write().unwrap(), "x", "y");
    }

    #[test]
    fn an_archive_may_have_files_that_are_no_assets() {
        let manifest = Manifest { language: Language::Python, app: "app".into() };
        let icons = (0..300).map(|icon| (format!("assets/icon-{icon:03}.png"), Vec::new()));
        let mut files: BTreeMap<_, _> = icons.collect();
        files.insert("app.py".into(), Vec::new());
        files.insert("assets/a table.txt".into(), Vec::new());
        let places = asset_places(&Archive { manifest, files }.write().unwrap()).unwrap();
        assert_eq!(places.len(), ASSETS_MAX);
        assert!(places.iter().all(|place| place.name.starts_with("icon-")), "{places:?}");
        let refused = check_assets([("a table.txt", 0)]).unwrap_err().to_string();
        assert!(refused.contains("its name must be"), "{refused}");
    }
}
