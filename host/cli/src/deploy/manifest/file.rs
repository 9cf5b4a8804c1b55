//! Reading one file of a manifest after the other. All faults are collected.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use gristmill_core::Name;
use serde_json::{Map, Value};
use toml::de::DeTable;

use super::keys::KeyReader;
use super::parts::{ContentSource, Document, Manifest, Model, TenantFile, Variables};
use super::text::{Text, Toml};
use super::values::{Misfit, join, object, value};
use crate::deploy::position::{Faults, FilePosition};
use crate::oci::Reference;

/// Reads files, and merges them.
pub(super) struct Reader<'a> {
    variables: Variables<'a>,
    pub(super) faults: &'a mut Faults,
    pub(super) manifest: Manifest,
    /// Where each thing was defined, by its path.
    defined: BTreeMap<String, FilePosition>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(variables: Variables<'a>, faults: &'a mut Faults) -> Self {
        Self { variables, faults, manifest: Manifest::default(), defined: BTreeMap::new() }
    }

    /// Read one file.
    pub(super) fn read(&mut self, path: &Path) {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) => return self.faults.add(format_args!("{}: {error}", path.display())),
        };
        let folder = path.parent().unwrap_or(Path::new(""));
        let file = Text { file: path.display().to_string(), folder, text: &text };
        let (table, errors) = DeTable::parse_recoverable(&text);
        for error in &errors {
            self.fault(&file, error.span().unwrap_or_default(), error.message());
        }
        if !errors.is_empty() {
            // Half of the file would have faults that only follow from these.
            return;
        }
        for (key, value) in table.get_ref() {
            match &**key.get_ref() {
                "models" => self.each(&file, "models", value, Self::model),
                "tenants" => self.each(&file, "tenants", value, Self::tenant),
                other => {
                    let text = format!("unknown key {other:?}; known are models, tenants");
                    self.fault(&file, key.span(), text);
                }
            }
        }
    }

    fn fault(&mut self, file: &Text<'_>, span: Range<usize>, text: impl fmt::Display) {
        self.faults.at(&file.position(span), text);
    }

    /// Read each member of a table with `read`, which gets its path and its name.
    fn each(
        &mut self,
        file: &Text<'_>,
        path: &str,
        value: &Toml<'_>,
        mut read: impl FnMut(&mut Self, &Text<'_>, (&str, Name), &Toml<'_>),
    ) {
        let Some(table) = self.table(file, path, value) else { return };
        for (key, value) in table {
            let name = match path {
                "models" => Name::of_model(key.get_ref()),
                _ => key.get_ref().parse(),
            };
            match name {
                Ok(name) => read(self, file, (&join(path, key.get_ref()), name), value),
                Err(error) => self.fault(file, key.span(), format_args!("{path}: {error}")),
            }
        }
    }

    fn model(&mut self, file: &Text<'_>, (path, name): (&str, Name), value: &Toml<'_>) {
        let Some(table) = self.table(file, path, value) else { return };
        if !self.define(file, path, value) {
            return;
        }
        self.only(file, path, table, &["file", "digest", "config"]);
        let config = table
            .get("config")
            .and_then(|config| Some(self.document(file, &join(path, "config"), config)?.keys));
        let source = match self.source(file, path, value, &["file", "digest"]) {
            Some(ContentSource::File(path)) => Some(ContentSource::Model(path)),
            other => other,
        };
        let position = file.position(value.span());
        let model = source.map(|source| (name, Model { source, config, position }));
        self.manifest.models.extend(model);
    }

    fn tenant(&mut self, file: &Text<'_>, (path, name): (&str, Name), value: &Toml<'_>) {
        let Some(table) = self.table(file, path, value) else { return };
        // Parts of it may be in other files.
        let mut tenant = self.manifest.tenants.remove(&name).unwrap_or_default();
        let mut document = Map::new();
        let mut is_described = false;
        for (key, value) in table {
            let below = join(path, key.get_ref());
            match &**key.get_ref() {
                "plugins" => self.each(file, &below, value, |reader, file, (path, name), value| {
                    let plugin = reader.file(file, path, value, &["folder", "file", "digest"]);
                    tenant.plugins.extend(plugin.map(|plugin| (name, plugin)));
                }),
                "assets" => self.each(file, &below, value, |reader, file, (path, name), value| {
                    let asset = reader.file(file, path, value, &["file", "digest"]);
                    // Of a model a folder would do.
                    if let Some(TenantFile { source: ContentSource::File(at), position, .. }) =
                        &asset
                        && !at.is_file()
                    {
                        let text = format!("{path}.file: {} is not a file", at.display());
                        return reader.faults.at(position, text);
                    }
                    tenant.assets.extend(asset.map(|asset| (name, asset)));
                }),
                "pipelines" => {
                    self.each(file, &below, value, |reader, file, (path, name), value| {
                        if reader.define(file, path, value) {
                            let pipeline = reader.document(file, path, value);
                            tenant.pipelines.extend(pipeline.map(|pipeline| (name, pipeline)));
                        }
                    })
                }
                key => {
                    is_described = true;
                    if !self.define(file, &below, value) {
                        continue;
                    }
                    match key {
                        "api_keys" => {
                            let variables = self.variables;
                            let mut reader = KeyReader { file, variables, faults: self.faults };
                            tenant.keys = Some(reader.read(&below, value));
                        }
                        _ => {
                            let value = self.json(file, &below, value);
                            document.extend(value.map(|value| (key.to_owned(), value)));
                        }
                    }
                }
            }
        }
        if is_described {
            let position = file.position(value.span());
            let document_entry =
                tenant.document.get_or_insert(Document { keys: Map::new(), position });
            document_entry.keys.extend(document);
        }
        self.manifest.tenants.insert(name, tenant);
    }

    /// A plugin or an asset, whose content one of the keys `allowed` names.
    fn file(
        &mut self,
        file: &Text<'_>,
        path: &str,
        value: &Toml<'_>,
        allowed: &[&str],
    ) -> Option<TenantFile> {
        let table = self.table(file, path, value)?;
        if !self.define(file, path, value) {
            return None;
        }
        // Only a plugin can be built, and only a plugin is signed.
        let signed = allowed.contains(&"folder").then_some("signature");
        let known_keys: Vec<_> = allowed.iter().copied().chain(signed).collect();
        self.only(file, path, table, &known_keys);
        let source = self.source(file, path, value, allowed)?;
        let signature = signed.and_then(|key| Some((key, table.get(key)?)));
        let signature = match signature {
            Some((key, value)) => Some(self.existing(file, &join(path, key), value)?),
            None => None,
        };
        Some(TenantFile { source, signature, position: file.position(value.span()) })
    }

    /// A file that must be there.
    fn existing(&mut self, file: &Text<'_>, path: &str, value: &Toml<'_>) -> Option<PathBuf> {
        let target = value.get_ref().as_str().map(|text| file.folder.join(text));
        let found = target.filter(|target| target.is_file());
        if found.is_none() {
            self.fault(file, value.span(), format_args!("{path} is not the path of a file"));
        }
        found
    }

    /// The source of a file, which one of the keys `known` names.
    fn source(
        &mut self,
        file: &Text<'_>,
        path: &str,
        value: &Toml<'_>,
        allowed: &[&str],
    ) -> Option<ContentSource> {
        let table = value.get_ref().as_table()?;
        let named: Vec<_> = allowed.iter().filter(|key| table.contains_key(**key)).collect();
        let [key] = named[..] else {
            let text = match named.is_empty() {
                true => format!("{path} has none of {}", allowed.join(", ")),
                false => format!("{path} has more than one of {}", allowed.join(", ")),
            };
            self.fault(file, value.span(), text);
            return None;
        };
        let value = table.get(*key)?;
        let path = join(path, key);
        let Some(text) = value.get_ref().as_str() else {
            self.fault(file, value.span(), format_args!("{path} must be text"));
            return None;
        };
        // Only plugins are in registries.
        if *key == "file" && allowed.contains(&"folder") {
            match Reference::of(text) {
                Ok(Some(reference)) => return Some(ContentSource::Artifact(reference)),
                Ok(None) => {}
                Err(error) => {
                    self.fault(file, value.span(), format_args!("{path}: {error}"));
                    return None;
                }
            }
        }
        let target = file.folder.join(text);
        let (is_there, what) = match *key {
            "digest" => match text.parse() {
                Ok(digest) => return Some(ContentSource::Digest(digest)),
                Err(_) => {
                    let must = "must be sha256: and 64 digits 0-9, a-f";
                    self.fault(file, value.span(), format_args!("{path} is {text:?}: {must}"));
                    return None;
                }
            },
            "folder" => (target.is_dir(), "folder"),
            // That of a model may be a folder.
            _ if !allowed.contains(&"folder") => (target.exists(), "file"),
            _ => (target.is_file(), "file"),
        };
        if !is_there {
            let missing = target.display();
            let text = format!("{path} is {text:?}: there is no {what} {missing}");
            self.fault(file, value.span(), text);
            return None;
        }
        Some(if what == "folder" {
            ContentSource::Folder(target)
        } else {
            ContentSource::File(target)
        })
    }

    /// A table that is passed on.
    fn document(&mut self, file: &Text<'_>, path: &str, value: &Toml<'_>) -> Option<Document> {
        let table = self.table(file, path, value)?;
        let mut misfits = Vec::new();
        let keys = object(path, table, &mut misfits);
        self.misfits(file, misfits);
        Some(Document { keys, position: file.position(value.span()) })
    }

    /// A value that is passed on.
    fn json(&mut self, file: &Text<'_>, path: &str, toml: &Toml<'_>) -> Option<Value> {
        let mut misfits = Vec::new();
        let json = value(path, toml, &mut misfits);
        self.misfits(file, misfits);
        json
    }

    fn misfits(&mut self, file: &Text<'_>, misfits: Vec<Misfit>) {
        for Misfit { path, offset, why } in misfits {
            self.fault(file, offset..offset, format_args!("{path} {why}"));
        }
    }

    fn table<'t, 'i>(
        &mut self,
        file: &Text<'_>,
        path: &str,
        value: &'t Toml<'i>,
    ) -> Option<&'t DeTable<'i>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.fault(file, value.span(), format_args!("{path} must be a table"));
        }
        table
    }

    /// A fault for each key that is not among `known`.
    fn only(&mut self, file: &Text<'_>, path: &str, table: &DeTable<'_>, allowed: &[&str]) {
        for key in table.keys().filter(|key| !allowed.contains(&&**key.get_ref())) {
            let text = format!(
                "{path}: unknown key {:?}; known are {}",
                key.get_ref(),
                allowed.join(", ")
            );
            self.fault(file, key.span(), text);
        }
    }

    /// Whether a thing is defined for the first time.
    fn define(&mut self, file: &Text<'_>, path: &str, value: &Toml<'_>) -> bool {
        let position = file.position(value.span());
        if let Some(first) = self.defined.get(path) {
            let text = format!("{path} is defined a second time: first in {first}");
            self.faults.at(&position, text);
            return false;
        }
        self.defined.insert(path.to_owned(), position);
        true
    }
}
