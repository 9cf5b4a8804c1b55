//! Schemas of values that several documents have, for the description of the admin API. The
//! documents themselves derive theirs and name these as the types of their fields.

use std::borrow::Cow;

use gristmill_core::ErrorCode;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};

/// A [`Name`](gristmill_core::Name).
pub enum NameText {}

/// The [name of a model](gristmill_core::Name::of_model).
pub enum ModelNameText {}

/// A name, or a name with a version.
pub enum NamedVersionText {}

/// The name of a model, or one with a version.
pub enum NamedModelText {}

/// A [`Digest`](gristmill_core::Digest).
pub enum DigestText {}

/// An [`ErrorCode`].
pub enum ErrorCodeText {}

/// Add the schema of the type, and those that it refers to.
pub fn add<T: ToSchema>(schemas: &mut Vec<(String, RefOr<Schema>)>) {
    T::schemas(schemas);
    schemas.push((T::name().into(), T::schema()));
}

/// Any text.
pub fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::new(Type::String))
}

impl PartialSchema for NameText {
    fn schema() -> RefOr<Schema> {
        let description = "1 to 64 of a-z, 0-9, '-', '_' and '.', beginning with a letter or digit";
        let pattern = text().pattern(Some("^[a-z0-9][a-z0-9._-]{0,63}$"));
        pattern.description(Some(description)).into()
    }
}

impl ToSchema for NameText {
    fn name() -> Cow<'static, str> {
        "Name".into()
    }
}

impl PartialSchema for ModelNameText {
    fn schema() -> RefOr<Schema> {
        let description =
            "1 to 128 of A-Z, a-z, 0-9, '-', '_' and '.', beginning with a letter or digit";
        let pattern = text().pattern(Some("^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"));
        pattern.description(Some(description)).into()
    }
}

impl ToSchema for ModelNameText {
    fn name() -> Cow<'static, str> {
        "ModelName".into()
    }
}

impl PartialSchema for NamedModelText {
    fn schema() -> RefOr<Schema> {
        let description = "A model's name, or one with a version: `ViT-B-16`, `ViT-B-16@16`";
        let pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,127}(@[1-9][0-9]{0,18})?$";
        text().pattern(Some(pattern)).description(Some(description)).into()
    }
}

impl ToSchema for NamedModelText {
    fn name() -> Cow<'static, str> {
        "NamedModel".into()
    }
}

impl PartialSchema for NamedVersionText {
    fn schema() -> RefOr<Schema> {
        let description = "A name, or a name with a version: `digits`, `digits@16`";
        let pattern = text().pattern(Some("^[a-z0-9][a-z0-9._-]{0,63}(@[1-9][0-9]{0,18})?$"));
        pattern.description(Some(description)).into()
    }
}

impl ToSchema for NamedVersionText {
    fn name() -> Cow<'static, str> {
        "NamedVersion".into()
    }
}

impl PartialSchema for DigestText {
    fn schema() -> RefOr<Schema> {
        let pattern = text().pattern(Some("^sha256:[0-9a-f]{64}$"));
        pattern.description(Some("The SHA-256 of a file")).into()
    }
}

impl ToSchema for DigestText {
    fn name() -> Cow<'static, str> {
        "Digest".into()
    }
}

impl PartialSchema for ErrorCodeText {
    fn schema() -> RefOr<Schema> {
        let codes = ErrorCode::ALL.iter().map(|code| code.as_str());
        text().enum_values(Some(codes)).description(Some("A stable code")).into()
    }
}

impl ToSchema for ErrorCodeText {
    fn name() -> Cow<'static, str> {
        "ErrorCode".into()
    }
}
