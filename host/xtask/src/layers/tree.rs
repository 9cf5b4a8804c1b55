//! The modules of one crate, and the files to which their paths lead.
//!
//! A path is followed as the compiler does it, except through globs: a name that a module has only
//! by `use other::*` counts as that module's own. A path that leads out of the crate leads to no
//! file.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::source::{self, Source};

/// The most imports that are followed one after the other.
const HOPS_MAX: usize = 32;

/// The modules of a crate, the root first.
pub(super) struct Tree {
    pub(super) modules: Vec<Module>,
}

pub(super) struct Module {
    /// Relative to the crate's `src`. An inline module has the file of the module around it.
    pub(super) file: String,
    pub(super) source: Source,
    parent: Option<usize>,
    children: Vec<(String, usize)>,
}

/// The target of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resolved {
    Module(usize),
    /// An item of this module.
    Item(usize),
}

/// The source of the modules of one root.
struct Reader<'a> {
    read: &'a dyn Fn(&Path) -> Option<String>,
    modules: Vec<Module>,
}

impl Tree {
    /// The modules that `root`, such as `lib.rs`, declares; `read` gives the text of a file.
    ///
    /// # Errors
    /// A declared module has no file.
    pub(super) fn read(root: &str, read: &dyn Fn(&Path) -> Option<String>) -> Result<Self> {
        let mut reader = Reader { read, modules: Vec::new() };
        let text = read(Path::new(root)).with_context(|| format!("cannot read {root}"))?;
        let module = Module::new(root, source::read(&text), None);
        reader.add(module, Path::new(root).parent().unwrap_or(Path::new("")))?;
        Ok(Self { modules: reader.modules })
    }

    /// Whether `module` lies within `ancestor`.
    pub(super) fn is_within(&self, mut module: usize, ancestor: usize) -> bool {
        while let Some(parent) = self.modules[module].parent {
            module = parent;
            if module == ancestor {
                return true;
            }
        }
        false
    }

    /// The target of `path` in `module`. None if it leads out of the crate.
    pub(super) fn resolve(&self, module: usize, path: &[String]) -> Option<Resolved> {
        self.follow(module, path, HOPS_MAX)
    }

    fn follow(&self, module: usize, path: &[String], hops: usize) -> Option<Resolved> {
        let hops = hops.checked_sub(1)?;
        let (first, mut rest) = path.split_first()?;
        let own_module = &self.modules[module];
        let mut at = match first.as_str() {
            "crate" => 0,
            "self" => module,
            "super" => own_module.parent?,
            name => match self.named(module, name, hops)? {
                Resolved::Module(child) => child,
                item => return Some(item),
            },
        };
        while let Some((segment, after)) = rest.split_first() {
            rest = after;
            at = match segment.as_str() {
                "super" => self.modules[at].parent?,
                "self" => at,
                name => match self.named(at, name, hops) {
                    Some(Resolved::Module(child)) => child,
                    Some(item) => return Some(item),
                    None => return Some(Resolved::Item(at)),
                },
            };
        }
        Some(Resolved::Module(at))
    }

    /// The target of `name` in a module, if it is one of its modules or imports.
    fn named(&self, module: usize, name: &str, hops: usize) -> Option<Resolved> {
        let own_module = &self.modules[module];
        if let Some((_, child)) = own_module.children.iter().find(|(child, _)| child == name) {
            return Some(Resolved::Module(*child));
        }
        let import = own_module.source.imports.iter().find(|import| import.name == name)?;
        // `use name;` or `pub use other_crate::name`.
        if import.path.first().is_some_and(|first| first == name) {
            return None;
        }
        self.follow(module, &import.path, hops)
    }
}

impl Module {
    fn new(file: &str, source: Source, parent: Option<usize>) -> Self {
        Self { file: file.into(), source, parent, children: Vec::new() }
    }
}

impl Reader<'_> {
    /// Add a module and those within it, whose files lie in `folder`; returns its number.
    fn add(&mut self, module: Module, folder: &Path) -> Result<usize> {
        let index = self.modules.len();
        let (file, files) = (module.file.clone(), module.source.files.clone());
        self.modules.push(module);
        for name in files {
            let folder = folder.join(&name);
            let places = [folder.with_extension("rs"), folder.join("mod.rs")];
            let found = places.iter().find_map(|place| Some((place, (self.read)(place)?)));
            let (place, text) = found.with_context(|| format!("{file}: no file for {name}"))?;
            let place = place.to_string_lossy().into_owned();
            let child = Module::new(&place, source::read(&text), Some(index));
            let child = self.add(child, &folder)?;
            self.modules[index].children.push((name, child));
        }
        let inline = std::mem::take(&mut self.modules[index].source.inline);
        for (name, source) in inline {
            let folder: PathBuf = folder.join(&name);
            let child = self.add(Module::new(&file, source, Some(index)), &folder)?;
            self.modules[index].children.push((name, child));
        }
        Ok(index)
    }
}
