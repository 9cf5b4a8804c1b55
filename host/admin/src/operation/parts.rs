//! The parts that operations are described with.

use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, SchemaType, Type};
use utoipa::openapi::{ContentBuilder, Header, RefOr, Required, Response, ResponseBuilder};

/// The name under which the problems of a status are described.
pub(crate) fn problem_name(status: u16) -> String {
    format!("Problem{status}")
}

/// A text.
pub(crate) fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::new(Type::String))
}

/// The highest number that every reader of JSON can hold in an integer.
const INTEGER_MAX: usize = i64::MAX as usize;

/// A whole number.
pub(crate) fn integer(least: usize, most: Option<usize>) -> ObjectBuilder {
    let number = ObjectBuilder::new().schema_type(SchemaType::new(Type::Integer));
    number.minimum(Some(least)).maximum(most.or(Some(INTEGER_MAX)))
}

/// An answer with this content.
pub(crate) fn response(
    description: &str,
    media_type: &str,
    schema: impl Into<RefOr<Schema>>,
) -> Response {
    let content = ContentBuilder::new().schema(Some(schema)).build();
    ResponseBuilder::new().description(description).content(media_type, content).build()
}

/// A header that is a text.
pub(crate) fn text_header(description: &str) -> Header {
    HeaderBuilder::new().schema(text()).description(Some(description)).build()
}

/// The header of an answer with a tag.
pub(crate) fn tag_header() -> Header {
    text_header("The tag of this version")
}

/// The content of a file.
pub(super) fn file() -> ObjectBuilder {
    text().format(Some(SchemaFormat::KnownFormat(KnownFormat::Binary)))
}

/// A parameter that may be missing.
pub(super) fn parameter(
    name: &str,
    place: ParameterIn,
    schema: impl Into<RefOr<Schema>>,
) -> ParameterBuilder {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(place)
        .required(Required::False)
        .schema(Some(schema))
}
