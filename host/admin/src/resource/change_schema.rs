//! The schemas of changes: of those that a new release asks for, and of those that a release has.

use std::borrow::Cow;

use gristmill_state::{
    DigestText, ModelConfig, ModelNameText, NameText, PipelineSpec, PluginSignatureDocument,
    TenantDocument, TokenDocument, add_schema,
};
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, OneOfBuilder, Schema};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use super::changes::{KINDS, Kind};
use super::tenant_document::KeyDocument;
use crate::operation::{integer, text};

/// A change that a new release asks for.
pub(super) enum SentChange {}

/// A change of a release. That of a key does not show the key.
pub(super) enum ShownChange {}

/// The content of a change besides names.
enum Content {
    None,
    /// An uploaded file.
    Digest,
    /// An uploaded file that may be signed.
    Signed,
    /// An uploaded file that becomes a version, whose number can be chosen.
    Version,
    /// The document with this schema.
    Document(Cow<'static, str>),
}

/// The names and the content of a change.
fn parts(kind: Kind) -> (&'static [&'static str], Content) {
    match kind {
        Kind::PutTenant => (&["tenant"], Content::Document(TenantDocument::name())),
        Kind::DeleteTenant => (&["tenant"], Content::None),
        Kind::PutKey => (&["tenant", "key"], Content::Document(KeyDocument::name())),
        Kind::DeleteKey => (&["tenant", "key"], Content::None),
        Kind::PutPlugin => (&["tenant", "plugin"], Content::Signed),
        Kind::DeletePlugin => (&["tenant", "plugin"], Content::None),
        Kind::PutAsset => (&["tenant", "asset"], Content::Digest),
        Kind::DeleteAsset => (&["tenant", "asset"], Content::None),
        Kind::PutPipeline => (&["tenant", "pipeline"], Content::Document(PipelineSpec::name())),
        Kind::DeletePipeline => (&["tenant", "pipeline"], Content::None),
        Kind::PutModel => (&["model"], Content::Version),
        Kind::PutModelConfig => (&["model"], Content::Document(ModelConfig::name())),
        Kind::DeleteModel | Kind::LoadModel | Kind::UnloadModel => (&["model"], Content::None),
    }
}

fn change(kind: &str, names: &[&str], content: Content) -> ObjectBuilder {
    let mut change = ObjectBuilder::new()
        .property("kind", text().enum_values(Some([kind])))
        .required("kind")
        .additional_properties(Some(AdditionalProperties::FreeForm(false)));
    for name in names {
        let schema = match *name {
            "model" => ModelNameText::name(),
            _ => NameText::name(),
        };
        let schema = Ref::from_schema_name(schema);
        change = change.property(*name, schema).required(*name);
    }
    let (key, schema) = match content {
        Content::None => return change,
        Content::Digest => ("digest", DigestText::name()),
        Content::Signed => {
            let signature = Ref::from_schema_name(PluginSignatureDocument::name());
            change = change.property("signature", signature);
            ("digest", DigestText::name())
        }
        Content::Version => {
            change = change.property("version", integer(1, None));
            ("digest", DigestText::name())
        }
        Content::Document(name) => ("document", name),
    };
    change.property(key, Ref::from_schema_name(schema)).required(key)
}

impl PartialSchema for SentChange {
    fn schema() -> RefOr<Schema> {
        let forms = KINDS.into_iter().map(|(name, kind)| {
            let (names, content) = parts(kind);
            change(name, names, content)
        });
        let forms = forms.fold(OneOfBuilder::new(), OneOfBuilder::item);
        forms
            .description(Some("A change; `document` is what `PUT` takes for the thing alone"))
            .into()
    }
}

impl ToSchema for SentChange {
    fn name() -> Cow<'static, str> {
        "NewChange".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        add_schema::<TenantDocument>(schemas);
        add_schema::<PipelineSpec>(schemas);
        add_schema::<ModelConfig>(schemas);
        add_schema::<KeyDocument>(schemas);
        add_schema::<PluginSignatureDocument>(schemas);
        add_schema::<NameText>(schemas);
        add_schema::<ModelNameText>(schemas);
        add_schema::<DigestText>(schemas);
    }
}

impl PartialSchema for ShownChange {
    fn schema() -> RefOr<Schema> {
        let mut forms = OneOfBuilder::new();
        for (name, kind) in KINDS {
            let (names, content) = match kind {
                Kind::PutKey => (parts(kind).0, Content::None),
                // What was signed is not kept.
                Kind::PutPlugin => (parts(kind).0, Content::Digest),
                _ => parts(kind),
            };
            forms = forms.item(change(name, names, content));
        }
        let token = Content::Document(TokenDocument::name());
        forms = forms.item(change("put_token", &["token"], token));
        forms = forms.item(change("delete_token", &["token"], Content::None));
        forms.description(Some("A change of a release; that of a key does not show the key")).into()
    }
}

impl ToSchema for ShownChange {
    fn name() -> Cow<'static, str> {
        "Change".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        SentChange::schemas(schemas);
        add_schema::<TokenDocument>(schemas);
    }
}
