//! The named schemas of documents, collected for the description of the API.
//!
//! A document that clients send is closed: a key that the server does not know is refused. And a
//! key that is null counts as not given (`state::Document`), so keys that may be missing may be
//! null, too. Documents that the server shows are left open: a later version may have more keys.

use std::collections::BTreeMap;
use std::mem;

use gristmill_state::add_schema;
use utoipa::ToSchema;
use utoipa::openapi::schema::{
    AdditionalProperties, AllOfBuilder, ObjectBuilder, OneOfBuilder, Schema, SchemaType, Type,
};
use utoipa::openapi::{Ref, RefOr};

/// A schema, or a reference to a named one.
type AnySchema = RefOr<Schema>;

/// The named schemas that operations use.
#[derive(Default)]
pub(crate) struct Schemas {
    shown: Vec<(String, AnySchema)>,
    sent: Vec<(String, AnySchema)>,
}

impl Schemas {
    /// The reference to a document that the server shows.
    pub(crate) fn shown<T: ToSchema>(&mut self) -> AnySchema {
        self.shown.extend(all_of::<T>());
        Ref::from_schema_name(T::name()).into()
    }

    /// The reference to a document that clients send.
    pub(crate) fn sent<T: ToSchema>(&mut self) -> AnySchema {
        let closed = all_of::<T>().into_iter().map(|(name, schema)| (name, closed(schema)));
        self.sent.extend(closed);
        Ref::from_schema_name(T::name()).into()
    }

    /// The schemas that the type refers to, but not its own.
    pub(crate) fn parts<T: ToSchema>(&mut self) {
        T::schemas(&mut self.shown);
    }

    /// Add those of `other`.
    pub(crate) fn extend(&mut self, other: Self) {
        self.shown.extend(other.shown);
        self.sent.extend(other.sent);
    }

    /// All of them by their names. Documents that are shown as they were sent have the form in
    /// which they are sent.
    pub(crate) fn into_named(self) -> BTreeMap<String, AnySchema> {
        self.shown.into_iter().chain(self.sent).collect()
    }
}

/// The schema of the type, and those that it refers to.
fn all_of<T: ToSchema>() -> Vec<(String, AnySchema)> {
    let mut all = Vec::new();
    add_schema::<T>(&mut all);
    all
}

/// The schema as it is for clients who send the document.
fn closed(schema: AnySchema) -> AnySchema {
    let mut object = match schema {
        RefOr::T(Schema::Object(object)) => object,
        other => return other,
    };
    if !object.properties.is_empty() {
        object.additional_properties = Some(Box::new(AdditionalProperties::FreeForm(false)));
        for (name, property) in &mut object.properties {
            if !object.required.contains(name) {
                *property = or_null(mem::replace(property, null()));
            }
        }
    }
    RefOr::T(Schema::Object(object))
}

/// The same, or null.
fn or_null(schema: AnySchema) -> AnySchema {
    match schema {
        RefOr::T(Schema::Object(mut object)) => {
            object.schema_type = type_or_null(object.schema_type);
            // Such a key has no default: it is not given.
            object.default.take_if(|default| default.is_null());
            if let Some(values) = &mut object.enum_values {
                values.push(serde_json::Value::Null);
            }
            RefOr::T(Schema::Object(object))
        }
        RefOr::T(Schema::Array(mut array)) => {
            array.schema_type = type_or_null(array.schema_type);
            RefOr::T(Schema::Array(array))
        }
        RefOr::T(Schema::OneOf(mut forms)) => {
            // That of an `Option` has it already.
            if !forms.items.contains(&null()) {
                forms.items.insert(0, null());
            }
            RefOr::T(Schema::OneOf(forms))
        }
        other => OneOfBuilder::new().item(null()).item(other).into(),
    }
}

fn null() -> AnySchema {
    ObjectBuilder::new().schema_type(SchemaType::new(Type::Null)).into()
}

fn type_or_null(schema_type: SchemaType) -> SchemaType {
    match schema_type {
        SchemaType::Type(Type::Null) | SchemaType::AnyValue => schema_type,
        SchemaType::Type(schema_type) => SchemaType::from_iter([schema_type, Type::Null]),
        SchemaType::Array(types) if types.contains(&Type::Null) => SchemaType::Array(types),
        SchemaType::Array(types) => SchemaType::from_iter(types.into_iter().chain([Type::Null])),
    }
}

/// The schema of a part whose keys stand among those of another document: all of them, or none. The
/// operation has to add the [parts](Schemas::parts) of the type.
pub(crate) fn maybe<T: ToSchema>() -> AnySchema {
    loose(T::schema())
}

/// The same without required keys.
fn loose(schema: AnySchema) -> AnySchema {
    match schema {
        RefOr::T(Schema::Object(mut object)) => {
            object.required.clear();
            RefOr::T(Schema::Object(object))
        }
        RefOr::T(Schema::AllOf(all)) => {
            let parts = all.items.into_iter().map(loose);
            parts.fold(AllOfBuilder::new(), AllOfBuilder::item).into()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use utoipa::ToSchema;

    use super::{Schemas, maybe};

    /// A document.
    #[derive(ToSchema)]
    #[allow(dead_code, reason = "only its schema is looked at")]
    struct Sent {
        must: bool,
        may: Option<u8>,
        #[schema(value_type = Option<Inner>)]
        inner: Inner,
    }

    #[derive(ToSchema)]
    #[allow(dead_code, reason = "only its schema is looked at")]
    struct Inner {
        key: String,
    }

    #[test]
    fn what_is_sent_is_closed_and_keys_that_may_be_missing_may_be_null() {
        let mut schemas = Schemas::default();
        schemas.shown::<Sent>();
        schemas.sent::<Sent>();
        let named = serde_json::to_value(schemas.into_named()).unwrap();
        let sent = &named["Sent"];
        assert_eq!(sent["additionalProperties"], json!(false));
        assert_eq!(sent["required"], json!(["must"]));
        assert_eq!(sent["properties"]["must"]["type"], json!("boolean"));
        assert_eq!(sent["properties"]["may"]["type"], json!(["integer", "null"]));
        let forms = &sent["properties"]["inner"]["oneOf"];
        assert_eq!(forms[0], json!({ "type": "null" }));
        assert_eq!(forms[1]["$ref"], json!("#/components/schemas/Inner"));
        assert_eq!(named["Inner"]["additionalProperties"], json!(false));
    }

    #[test]
    fn keys_that_may_all_be_missing_are_not_required() {
        let schema = serde_json::to_value(maybe::<Inner>()).unwrap();
        assert_eq!(schema["required"], json!(null));
        assert_eq!(schema["properties"]["key"]["type"], json!("string"));
    }
}
