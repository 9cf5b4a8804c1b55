//! A model on this machine: an ONNX file, alone or with the files beside it that hold its weights,
//! a folder, or an archive of them.
//!
//! A model of several files becomes a package (`gristmill_backend::package`): only the files that
//! the model names, under their names. It is put together while it is uploaded. The same files give
//! the same package, wherever they come from.

mod zip;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use flate2::read::MultiGzDecoder;
use gristmill_backend::package::{
    END, MODEL, Package, PackageError, has_models_name, header_of, padding_of, plain_path,
};
use gristmill_backend::{ModelFile, files_of};
use tempfile::TempDir;

use self::zip::{Entry, Zip};
use crate::content::{Content, FilePart};

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
        if path.is_dir() {
            return Ok(Self::Folder);
        }
        let mut start = Vec::new();
        File::open(path)?.take(Package::HEAD_BYTES as u64).read_to_end(&mut start)?;
        Ok(match start[..] {
            _ if Package::is_one(&start) => Self::Tar,
            [b'P', b'K', 3, 4, ..] => Self::Zip,
            [0x1f, 0x8b, ..] => Self::Gzip,
            _ => Self::File,
        })
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
                let mut zip = Unzipped { zip: Zip::open(path)?, folder: folder.clone(), files: 0 };
                packed(&mut zip, Some(folder))
            }
            Form::Gzip => {
                let folder = Arc::new(unpacked()?);
                let tar = folder.path().join("tar");
                let mut decoder = MultiGzDecoder::new(File::open(path)?);
                io::copy(&mut decoder, &mut File::create(&tar)?).context("cannot unpack it")?;
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
        (several, None) => bail!("it has several models ({}): name one", several.join(", ")),
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
    // The server refuses a larger file.
    let names = match ModelFile::check_onnx_bytes(model.bytes) {
        Ok(()) => {
            let mut onnx = vec![0; model.bytes as usize];
            let mut file = File::open(&model.path)?;
            file.seek(SeekFrom::Start(model.offset))?;
            file.read_exact(&mut onnx)?;
            files_of(&onnx).unwrap_or_default()
        }
        Err(_) => Vec::new(),
    };
    if names.is_empty() {
        content.add_file(model);
        return Ok(ModelContent { content, is_package: false });
    }
    let mut parts = BTreeMap::new();
    for name in names {
        let Ok(plain) = plain_path(&name) else {
            bail!("the model has weights in {name:?}: the path must be relative, without \"..\"");
        };
        ensure!(plain != MODEL, "the model has weights in {name:?}, the name of the model itself");
        let path = if base.is_empty() { plain.clone() } else { format!("{base}/{plain}") };
        let failed = || format!("the model has weights in {name:?}, which must be beside it");
        parts.insert(plain, files.file(&path).with_context(failed)?);
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
            let about = at.symlink_metadata().with_context(|| at.display().to_string())?;
            ensure!(!about.is_symlink(), "{} is a link: put the file there", at.display());
        }
        ensure!(at.is_file(), "{} is not a file", at.display());
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
        let part = part.with_context(|| format!("{path} is not in the archive"))?;
        Ok(FilePart { path: self.path.clone(), offset: part.offset, bytes: part.bytes })
    }
}

/// A zip archive, whose files are unpacked one by one.
struct Unzipped {
    zip: Zip,
    folder: Arc<TempDir>,
    files: usize,
}

impl Files for Unzipped {
    fn models(&self) -> Result<Vec<String>> {
        let names = self.zip.entries.iter().map(|entry| entry.name.clone());
        Ok(names.filter(|name| has_models_name(name)).collect())
    }

    fn file(&mut self, path: &str) -> Result<FilePart> {
        let is_it = |entry: &&Entry| entry.name == path;
        let entry = self.zip.entries.iter().find(is_it).cloned();
        let entry = entry.with_context(|| format!("{path} is not in the archive"))?;
        self.files += 1;
        let unpacked = self.folder.path().join(self.files.to_string());
        self.zip.unpack(&entry, &mut File::create(&unpacked)?).with_context(|| entry.name)?;
        Ok(FilePart::whole(&unpacked)?)
    }
}
