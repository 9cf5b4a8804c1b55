//! The description of the admin API as an OpenAPI document, from the operations that resources
//! describe and the types of their documents.
//!
//! Invariant: each route and method has a description, and each description a route. A test
//! compares both.

use gristmill_core::ErrorCode;
use gristmill_state::ErrorCodeText;
use gristmill_transport::status_of;
use serde_json::Value;
use utoipa::openapi::path::{PathItem, PathsBuilder};
use utoipa::openapi::schema::{Array, ComponentsBuilder, ObjectBuilder, Schema, SchemaType, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ContentBuilder, InfoBuilder, OpenApi, OpenApiBuilder, Ref, Response, ResponseBuilder,
};

use crate::operation::{CODES, UNCHANGED, integer, problem_name, tag_header, text, text_header};
use crate::schemas::Schemas;
use crate::{public, routes};

/// The name of the scheme of tokens.
const TOKEN: &str = "token";

/// The name of the schema of problem documents.
const PROBLEM: &str = "Problem";

const ABOUT: &str = "\
The admin plane of a Gristmill server. Every call needs an admin token, but for this document and \
its page. Each `GET` is also a `HEAD`, and `OPTIONS` lists the methods of a path. A key of a \
document that is null counts as not given. Everything that an error says is in its problem \
document (RFC 9457); `errors` has all faults of a request's document at once, each with the JSON \
pointer of its value.";

/// The document, as it is served and kept: with one key for each line.
///
/// # Errors
/// It cannot be written as JSON.
pub fn openapi_document() -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(&document()?)? + "\n")
}

/// The document, with its keys sorted.
pub(crate) fn document() -> Result<Value, serde_json::Error> {
    serde_json::to_value(described())
}

fn described() -> OpenApi {
    let mut schemas = Schemas::default();
    schemas.shown::<ErrorCodeText>();
    let mut paths = PathsBuilder::new();
    let needs = || SecurityRequirement::new::<_, [&str; 0], &str>(TOKEN, []);
    for operation in routes::operations() {
        let built = operation.built.security(needs());
        paths = paths.path(operation.path, PathItem::new(operation.method, built));
        schemas.extend(operation.schemas);
    }
    for operation in public::operations() {
        let built = operation.built.security(SecurityRequirement::default());
        paths = paths.path(operation.path, PathItem::new(operation.method, built));
    }
    let scheme = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("An admin token"))
        .build();
    let unchanged = ResponseBuilder::new().description("The reader has this version");
    let mut components = ComponentsBuilder::new()
        .security_scheme(TOKEN, SecurityScheme::Http(scheme))
        .schemas_from_iter(schemas.into_named())
        .schema(PROBLEM, problem())
        .response(UNCHANGED, unchanged.header("ETag", tag_header()).build());
    let mut statuses: Vec<u16> = CODES.iter().map(|code| status_of(*code).as_u16()).collect();
    statuses.sort_unstable();
    statuses.dedup();
    for status in statuses {
        components = components.response(problem_name(status), problem_answer(status));
    }
    let info =
        InfoBuilder::new().title("Gristmill admin API").version("v1").description(Some(ABOUT));
    OpenApiBuilder::new()
        .info(info.build())
        .paths(paths.build())
        .components(Some(components.build()))
        .build()
}

/// The answer with this status, with the codes that it can have.
fn problem_answer(status: u16) -> Response {
    let codes = CODES.iter().filter(|code| status_of(**code).as_u16() == status);
    let meanings = codes.map(|code: &ErrorCode| format!("`{}`: {}", code.as_str(), code.meaning()));
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(PROBLEM))).build();
    let answer = ResponseBuilder::new()
        .description(meanings.collect::<Vec<_>>().join(" "))
        .content("application/problem+json", content);
    match status {
        401 => answer.header("WWW-Authenticate", text_header("`Bearer`")).build(),
        405 => answer.header("Allow", text_header("The methods of the path")).build(),
        429 | 503 => answer.header("Retry-After", text_header("In seconds")).build(),
        _ => answer.build(),
    }
}

/// The schema of problem documents (`transport::Problem`).
fn problem() -> Schema {
    let fault = ObjectBuilder::new()
        .property("pointer", text().description(Some("The JSON pointer of the value (RFC 6901)")))
        .required("pointer")
        .property("detail", text())
        .required("detail");
    let faults = Array::new(fault);
    let keys = [
        ("type", text()),
        ("title", text()),
        ("status", integer(400, Some(599))),
        ("detail", text().description(Some("What is wrong, in words for people"))),
        ("request_id", text().description(Some("The id of the request, as in the log"))),
    ];
    let mut problem = ObjectBuilder::new().schema_type(SchemaType::new(Type::Object));
    for (key, schema) in keys {
        problem = problem.property(key, schema).required(key);
    }
    problem
        .property("code", Ref::from_schema_name(<ErrorCodeText as utoipa::ToSchema>::name()))
        .required("code")
        .property("errors", faults)
        .description(Some("An error, as RFC 9457 has it"))
        .into()
}

#[cfg(test)]
mod tests;
