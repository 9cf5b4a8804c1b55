//! The list of changes in the document of a new release. Each has the form in which `GET` shows the
//! changes of a release; a `document` is what `PUT` takes for the thing alone.

use gristmill_core::{Digest, Name};
use gristmill_state::{AskedChange, Change, Document, ModelConfig, PluginSignature, StateError};
use serde_json::{Map, Value};

use super::tenant_document;
use crate::state::AdminState;

/// Maximum changes of a release.
const CHANGES_MAX: usize = 1000;

/// The kinds of changes, by the names that documents give them.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    PutTenant,
    DeleteTenant,
    PutKey,
    DeleteKey,
    PutPlugin,
    DeletePlugin,
    PutAsset,
    DeleteAsset,
    PutPipeline,
    DeletePipeline,
    PutModel,
    PutModelConfig,
    DeleteModel,
    LoadModel,
    UnloadModel,
}

pub(super) const KINDS: [(&str, Kind); 15] = [
    ("put_tenant", Kind::PutTenant),
    ("delete_tenant", Kind::DeleteTenant),
    ("put_key", Kind::PutKey),
    ("delete_key", Kind::DeleteKey),
    ("put_plugin", Kind::PutPlugin),
    ("delete_plugin", Kind::DeletePlugin),
    ("put_asset", Kind::PutAsset),
    ("delete_asset", Kind::DeleteAsset),
    ("put_pipeline", Kind::PutPipeline),
    ("delete_pipeline", Kind::DeletePipeline),
    ("put_model", Kind::PutModel),
    ("put_model_config", Kind::PutModelConfig),
    ("delete_model", Kind::DeleteModel),
    ("load_model", Kind::LoadModel),
    ("unload_model", Kind::UnloadModel),
];

/// Read the key `changes` of a release's document. None if it has faults.
pub(super) fn read(document: &mut Document, state: &AdminState) -> Option<Vec<AskedChange>> {
    let reader = Reader(state);
    let changes = document.objects("changes", |change| reader.change(change));
    match changes.as_deref() {
        Some([]) => document.fault("changes", " is empty: a release has at least one"),
        Some(some) if some.len() > CHANGES_MAX => {
            let count = some.len();
            document.fault("changes", format_args!(" has {count}: the limit is {CHANGES_MAX}"));
        }
        _ => {}
    }
    document.require("changes", changes)
}

struct Reader<'a>(&'a AdminState);

impl Reader<'_> {
    /// One change. None if it has faults, which the document has then.
    fn change(&self, document: &mut Document) -> Option<AskedChange> {
        let kind = document.one_of("kind", &KINDS);
        let kind = document.require("kind", kind)?;
        let change = match kind {
            Kind::PutTenant => return self.put_tenant(document),
            Kind::PutPipeline => return self.put_pipeline(document),
            Kind::PutKey => {
                let (tenant, key) = (name(document, "tenant"), key_name(document));
                let read = content(document).map(|keys| tenant_document::read_key(keys, self.0));
                let (tenant, key) = (tenant?, key?);
                match read? {
                    Ok(sent) => return Some(AskedChange::PutKey { tenant, key, sent }),
                    Err(faults) => {
                        document.faults_of("document", faults);
                        return None;
                    }
                }
            }
            Kind::PutModelConfig => {
                let (model, keys) = (model_name(document), content(document));
                match ModelConfig::read(keys?) {
                    Ok(config) => {
                        Change::PutModelConfig { model: model?, config: Box::new(config) }
                    }
                    Err(StateError::Invalid(faults)) => {
                        document.faults_of("document", faults);
                        return None;
                    }
                    Err(error) => {
                        document.fault("document", format_args!(": {error}"));
                        return None;
                    }
                }
            }
            Kind::DeleteTenant => Change::DeleteTenant { tenant: name(document, "tenant")? },
            Kind::DeleteKey => {
                let (tenant, key) = (name(document, "tenant"), name(document, "key"));
                Change::DeleteKey { tenant: tenant?, key: key? }
            }
            Kind::PutPlugin => {
                let (tenant, plugin) = (name(document, "tenant"), name(document, "plugin"));
                let digest = digest(document);
                let signature = match document.gives("signature") {
                    true => Some(document.nested("signature", PluginSignature::read)?.into()),
                    false => None,
                };
                return Some(AskedChange::PutPlugin {
                    tenant: tenant?,
                    plugin: plugin?,
                    digest: digest?,
                    signature,
                });
            }
            Kind::DeletePlugin => {
                let (tenant, plugin) = (name(document, "tenant"), name(document, "plugin"));
                Change::DeletePlugin { tenant: tenant?, plugin: plugin? }
            }
            Kind::PutAsset => {
                let (tenant, asset) = (name(document, "tenant"), name(document, "asset"));
                let digest = digest(document);
                Change::PutAsset { tenant: tenant?, asset: asset?, digest: digest? }
            }
            Kind::DeleteAsset => {
                let (tenant, asset) = (name(document, "tenant"), name(document, "asset"));
                Change::DeleteAsset { tenant: tenant?, asset: asset? }
            }
            Kind::DeletePipeline => {
                let (tenant, pipeline) = (name(document, "tenant"), name(document, "pipeline"));
                Change::DeletePipeline { tenant: tenant?, pipeline: pipeline? }
            }
            Kind::PutModel => {
                let (model, digest) = (model_name(document), digest(document));
                let version = document.whole("version");
                Change::PutModel { model: model?, digest: digest?, version }
            }
            Kind::DeleteModel => Change::DeleteModel { model: model_name(document)? },
            Kind::LoadModel => Change::LoadModel { model: model_name(document)? },
            Kind::UnloadModel => Change::UnloadModel { model: model_name(document)? },
        };
        Some(change.into())
    }

    fn put_tenant(&self, document: &mut Document) -> Option<AskedChange> {
        let (tenant, keys) = (name(document, "tenant"), content(document));
        let (read, faults) = tenant_document::read(keys?, self.0);
        let is_whole = faults.is_empty();
        document.faults_of("document", faults);
        let tenant = tenant.filter(|_| is_whole)?;
        Some(AskedChange::PutTenant { tenant, document: read })
    }

    fn put_pipeline(&self, document: &mut Document) -> Option<AskedChange> {
        let (tenant, pipeline) = (name(document, "tenant"), name(document, "pipeline"));
        match self.0.control.read_pipeline(content(document)?) {
            Ok(spec) => {
                let (tenant, pipeline) = (tenant?, pipeline?);
                Some(Change::PutPipeline { tenant, pipeline, spec: spec.into() }.into())
            }
            Err(faults) => {
                document.faults_of("document", faults);
                None
            }
        }
    }
}

fn name(document: &mut Document, key: &'static str) -> Option<Name> {
    let name = document.name(key);
    document.require(key, name)
}

fn model_name(document: &mut Document) -> Option<Name> {
    let name = document.model_name("model");
    document.require("model", name)
}

fn digest(document: &mut Document) -> Option<Digest> {
    let digest = document.digest("digest");
    document.require("digest", digest)
}

/// The name of a key. No fault repeats the text: it may be the key itself.
fn key_name(document: &mut Document) -> Option<Name> {
    let value = document.value("key");
    let name = value.as_ref().and_then(Value::as_str).and_then(|text| text.parse().ok());
    if value.is_some() && name.is_none() {
        document.fault("key", " must be the key's name; the key itself belongs into document.key");
    }
    document.require("key", name)
}

/// The content of a thing. No fault repeats another value: it may be a key.
fn content(document: &mut Document) -> Option<Map<String, Value>> {
    match document.value("document") {
        Some(Value::Object(keys)) => Some(keys),
        Some(_) => {
            document.fault("document", " must be a JSON object");
            None
        }
        None => document.require("document", None),
    }
}
