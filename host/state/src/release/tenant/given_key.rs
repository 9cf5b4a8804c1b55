//! The forms of an API key in a tenant's document, for the description of the admin API.

use std::borrow::Cow;

use utoipa::openapi::schema::{
    AdditionalProperties, ObjectBuilder, OneOfBuilder, Schema, SchemaType, Type,
};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use crate::release::tenant::GivenKey;
use crate::schema::{NameText, add, text};

impl PartialSchema for GivenKey {
    fn schema() -> RefOr<Schema> {
        let key = || {
            let length = text().min_length(Some(16)).max_length(Some(512));
            length.pattern(Some("^[!-~]([ -~]*[!-~])?$"))
        };
        let nullable = key().schema_type(SchemaType::from_iter([Type::String, Type::Null]));
        let named = ObjectBuilder::new()
            .property("name", Ref::from_schema_name(NameText::name()))
            .property("key", nullable)
            .required("name")
            .additional_properties(Some(AdditionalProperties::FreeForm(false)))
            .description(Some("A name and a key; without a key, the one of this name stays"));
        let forms = OneOfBuilder::new().item(key()).item(named);
        forms.description(Some("An API key, with or without a name")).into()
    }
}

impl ToSchema for GivenKey {
    fn name() -> Cow<'static, str> {
        "ApiKey".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        add::<NameText>(schemas);
    }
}
