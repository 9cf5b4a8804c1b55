//! A model on this machine: an ONNX file, alone or with the files beside it that hold its weights,
//! a folder, or an archive of them.
//!
//! A model of several files becomes a package (`gristmill_backend::package`): only the files that
//! the model names, under their names. It is put together while it is uploaded. The same files give
//! the same package, wherever they come from.

mod zip;

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use flate2::read::MultiGzDecoder;
use gristmill_backend::package::{
    END, MODEL, Package, PackageError, files_of, has_models_name, header_of, padding_of,
};
use gristmill_backend::{ModelFile, archive_of};
use tempfile::TempDir;

use self::zip::{Entry, Zip, unpacking_failed};
use crate::content::{Content, FilePart};
use crate::output::cut;
use crate::progress::{Progress, bytes_text};

/// How much larger than an archive the files in it may be, unless they are small. Weights do not
/// shrink so much; what does would fill the disk.
const UNPACKED_PER_PACKED: u64 = 100;
const UNPACKED_BYTES: u64 = 1 << 30;

/// Maximum characters of a path, and maximum models, that a text repeats.
const PATH_CHARS: usize = 200;
const MODELS_SHOWN: usize = 5;

/// The file of a model, alone or with others.
#[derive(Debug)]
pub(crate) struct ModelContent {
    pub(crate) content: Content,
    /// Whether it is a package.
    is_package: bool,
}

/// What is at a path.
#[derive(Clone, Copy, Debug)]
enum Form {
    Folder,
    File,
    Tar,
    Zip,
    Gzip,
}

impl Form {
    fn of(path: &Path) -> Result<Self> {
        let about = path.metadata()?;
        if about.is_dir() {
            return Ok(Self::Folder);
        }
        // It is read more than once.
        ensure!(about.is_file(), "it is neither a file nor a folder");
        let mut start = Vec::new();
        File::open(path)?.take(Package::HEAD_BYTES as u64).read_to_end(&mut start)?;
        Ok(match archive_of(&start) {
            _ if Package::is_one(&start) => Self::Tar,
            Some("zip") => Self::Zip,
            Some("gzip") => Self::Gzip,
            Some(other) => bail!("it is a {other} archive: pack the files with tar or zip"),
            None => Self::File,
        })
    }
}

/// The bytes that may still be unpacked.
#[derive(Clone, Copy, Debug)]
struct Room(u64);

impl Room {
    /// That of an archive.
    fn of(path: &Path) -> io::Result<Self> {
        let bytes = path.metadata()?.len().saturating_mul(UNPACKED_PER_PACKED);
        Ok(Self(bytes.max(UNPACKED_BYTES)))
    }

    /// Take so many bytes.
    fn take(&mut self, bytes: u64) -> Result<()> {
        let left = self.0.checked_sub(bytes).with_context(|| {
            format!(
                "it has more than {} and {UNPACKED_PER_PACKED} times the bytes of the archive, as no \
                 weights have: unpack the archive, and give the folder",
                bytes_text(UNPACKED_BYTES)
            )
        })?;
        self.0 = left;
        Ok(())
    }
}

/// Finds the files of a model.
trait Files {
    /// The paths of all models.
    fn models(&self) -> Result<Vec<String>>;

    /// The content of the file at this path.
    fn file(&mut self, path: &str) -> Result<FilePart>;
}

impl ModelContent {
    /// The model at this path: a file, a folder or an archive.
    ///
    /// # Errors
    /// A file is missing, is a link, or lies elsewhere; or the archive cannot be read.
    pub(crate) fn at(path: &Path) -> Result<Self> {
        let unpacked = || tempfile::tempdir().context("no folder for the files of the archive");
        match Form::of(path)? {
            Form::Tar => packed(&mut Tar::open(path)?, None),
            Form::Zip => {
                let folder = Arc::new(unpacked()?);
                let (zip, room) = (Zip::open(path)?, Room::of(path)?);
                let mut zip = Unzipped { zip, folder: folder.clone(), files: 0, room };
                packed(&mut zip, Some(folder))
            }
            Form::Gzip => {
                let folder = Arc::new(unpacked()?);
                let tar = folder.path().join("tar");
                gunzip(path, Room::of(path)?, &mut File::create(&tar)?)?;
                packed(&mut Tar::open(&tar).context("a gzip archive of no tar")?, Some(folder))
            }
            Form::Folder | Form::File => Self::plain(path),
        }
    }

    /// The model at this path: a file or a folder. So nothing is unpacked, which could take any
    /// number of bytes.
    ///
    /// # Errors
    /// As for [`Self::at`], or it is an archive.
    pub(crate) fn plain(path: &Path) -> Result<Self> {
        match Form::of(path)? {
            Form::Folder => packed(&mut Folder(path.to_owned()), None),
            Form::File => {
                let parent = path.parent().unwrap_or(Path::new(""));
                with_files(&mut Folder(parent.to_owned()), "", FilePart::whole(path)?)
            }
            Form::Tar | Form::Zip | Form::Gzip => {
                bail!("it is an archive, not an ONNX file or a folder with one: unpack it")
            }
        }
    }

    /// Give the model to `load`, from memory or from a file that is gone afterwards.
    ///
    /// # Errors
    /// It cannot be read, or written.
    pub(crate) fn with_file<T>(&self, load: impl FnOnce(ModelFile<'_>) -> T) -> Result<T> {
        let mut reader = self.content.reader();
        if !self.is_package {
            let mut onnx = Vec::new();
            reader.read_to_end(&mut onnx)?;
            return Ok(load((&onnx).into()));
        }
        let mut file = tempfile::NamedTempFile::new()?;
        io::copy(&mut reader, &mut file)?;
        file.flush()?;
        Ok(load(ModelFile::Package(file.path())))
    }
}

/// The only model among `files`, or the one with the usual name, with the files that it names.
/// `folder` has some of them.
fn packed(files: &mut impl Files, folder: Option<Arc<TempDir>>) -> Result<ModelContent> {
    let models = files.models()?;
    let usual = models.iter().find(|path| *path == MODEL);
    let model = match (&models[..], usual) {
        (_, Some(model)) | ([model], None) => model.clone(),
        ([], None) => bail!("it has no file whose name ends in .onnx"),
        (several, None) => {
            let first: Vec<_> = several.iter().take(MODELS_SHOWN).map(|path| shown(path)).collect();
            let more = if several.len() > MODELS_SHOWN { ", ..." } else { "" };
            let names = first.join(", ");
            bail!("it has several models ({names}{more}): name one of them, or call it {MODEL}")
        }
    };
    let base = model.rsplit_once('/').map_or("", |(base, _)| base).to_owned();
    let part = files.file(&model)?;
    let mut model = with_files(files, &base, part)?;
    if let Some(folder) = folder {
        model.content.keep(folder);
    }
    Ok(model)
}

/// The model with the files that it names, which are relative to the folder `base`.
fn with_files(files: &mut impl Files, base: &str, model: FilePart) -> Result<ModelContent> {
    let mut content = Content::default();
    // The server refuses a larger file, and one that is not an ONNX file, with more words.
    let names = match ModelFile::check_onnx_bytes(model.bytes) {
        Ok(()) => {
            let mut onnx = vec![0; model.bytes as usize];
            let mut file = File::open(&model.path)?;
            file.seek(SeekFrom::Start(model.offset))?;
            file.read_exact(&mut onnx)?;
            match files_of(&onnx) {
                Err(PackageError::NoOnnx(_)) => Vec::new(),
                files => files?,
            }
        }
        Err(_) => Vec::new(),
    };
    if names.is_empty() {
        content.add_file(model);
        return Ok(ModelContent { content, is_package: false });
    }
    let mut parts = Vec::new();
    for name in names {
        let path = if base.is_empty() { name.clone() } else { format!("{base}/{name}") };
        let failed =
            || format!("the model has weights in {:?}, which must be beside it", shown(&name));
        let part = files.file(&path).with_context(failed)?;
        parts.push((name, part));
    }
    for (name, part) in std::iter::once((MODEL.to_owned(), model)).chain(parts) {
        content.add(header_of(&name, part.bytes));
        let padding = padding_of(part.bytes);
        content.add_file(part);
        content.add(padding);
    }
    content.add(END.to_vec());
    Ok(ModelContent { content, is_package: true })
}

/// A folder of this machine.
struct Folder(PathBuf);

impl Files for Folder {
    fn models(&self) -> Result<Vec<String>> {
        let mut models = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            let name = entry?.file_name();
            models.extend(name.to_str().filter(|name| has_models_name(name)).map(str::to_owned));
        }
        models.sort_unstable();
        Ok(models)
    }

    fn file(&mut self, path: &str) -> Result<FilePart> {
        // A link could lead to any file of the person who pushes a model of someone else.
        let mut at = self.0.clone();
        for name in path.split('/') {
            at.push(name);
            let shown = || shown(&at.display().to_string());
            let about = at.symlink_metadata().with_context(shown)?;
            ensure!(!about.is_symlink(), "{} is a link: put the file there", shown());
        }
        ensure!(at.is_file(), "{} is not a file", shown(&at.display().to_string()));
        Ok(FilePart::whole(&at)?)
    }
}

/// A tar archive, from which files are read in place.
struct Tar {
    path: PathBuf,
    package: Package,
}

impl Tar {
    fn open(path: &Path) -> Result<Self, PackageError> {
        let package = Package::read(&mut File::open(path)?)?;
        Ok(Self { path: path.to_owned(), package })
    }
}

impl Files for Tar {
    fn models(&self) -> Result<Vec<String>> {
        let names = self.package.parts.iter().map(|part| part.name.clone());
        Ok(names.filter(|name| has_models_name(name)).collect())
    }

    fn file(&mut self, path: &str) -> Result<FilePart> {
        let part = self.package.part(path);
        let part = part.with_context(|| format!("{} is not in the archive", shown(path)))?;
        Ok(FilePart { path: self.path.clone(), offset: part.offset, bytes: part.bytes })
    }
}

/// A zip archive, whose files are unpacked one by one.
struct Unzipped {
    zip: Zip,
    folder: Arc<TempDir>,
    files: usize,
    room: Room,
}

impl Files for Unzipped {
    fn models(&self) -> Result<Vec<String>> {
        let names = self.zip.entries.iter().map(|entry| entry.name.clone());
        Ok(names.filter(|name| has_models_name(name)).collect())
    }

    fn file(&mut self, path: &str) -> Result<FilePart> {
        let is_it = |entry: &&Entry| entry.name == path;
        let entry = self.zip.entries.iter().find(is_it).cloned();
        let entry = entry.with_context(|| format!("{} is not in the archive", shown(path)))?;
        self.room.take(entry.bytes).with_context(|| shown(path))?;
        self.files += 1;
        let unpacked = self.folder.path().join(self.files.to_string());
        let out = &mut File::create(&unpacked)?;
        self.zip.unpack(&entry, out).with_context(|| shown(path))?;
        Ok(FilePart::whole(&unpacked)?)
    }
}

/// A path in a text.
fn shown(path: &str) -> String {
    cut(path, PATH_CHARS)
}

/// Unpack a gzip file.
fn gunzip(path: &Path, mut room: Room, out: &mut File) -> Result<()> {
    let packed = File::open(path)?;
    let bytes = packed.metadata()?.len();
    let progress = Progress::bytes(&format!("unpacking {}", path.display()), bytes);
    // One byte more shows that there is more.
    let most = room.0.saturating_add(1);
    let mut unpacked = MultiGzDecoder::new(progress.of_read(packed)).take(most);
    room.take(io::copy(&mut unpacked, out).with_context(unpacking_failed)?)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    #[test]
    fn no_more_is_unpacked_than_there_is_room() {
        let folder = tempfile::tempdir().unwrap();
        let (path, tar) = (folder.path().join("gz"), folder.path().join("tar"));
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&[0; 100_000]).unwrap();
        fs::write(&path, encoder.finish().unwrap()).unwrap();
        assert_eq!(Room::of(&path).unwrap().0, UNPACKED_BYTES);
        gunzip(&path, Room(100_000), &mut File::create(&tar).unwrap()).unwrap();
        assert_eq!(tar.metadata().unwrap().len(), 100_000);
        let error = gunzip(&path, Room(1000), &mut File::create(&tar).unwrap()).unwrap_err();
        assert_eq!(tar.metadata().unwrap().len(), 1001);
        let named = "it has more than 1.00 GiB and 100 times the bytes of the archive";
        assert!(error.to_string().starts_with(named), "{error}");
    }
}
