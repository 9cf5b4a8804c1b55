//! What an operation of the admin API takes and answers, as OpenAPI describes it.
//!
//! Each resource describes its own operations, and `openapi` makes one document of all. The parts
//! that `plane` gives to all of them stand here: problem documents, conditions, `?wait=all`.

mod naming;
mod parts;

use gristmill_core::ErrorCode;
use gristmill_state::{DigestText, ModelNameText, NameText};
use gristmill_transport::status_of;
use utoipa::ToSchema;
use utoipa::openapi::path::{OperationBuilder, Parameter, ParameterIn};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{AllOfBuilder, Array, ObjectBuilder, Schema, SchemaType, Type};
use utoipa::openapi::{
    ContentBuilder, HttpMethod, Ref, RefOr, Required, Response, ResponseBuilder,
};

use self::naming::{group, id};
use self::parts::{file, parameter, response};
pub(crate) use self::parts::{integer, problem_name, tag_header, text, text_header};
use crate::change_options::{MESSAGE_CHARS_MAX, MESSAGE_FORM};
use crate::schemas::Schemas;
use crate::wait::WaitedDocument;

/// The prefix of all paths.
pub(crate) const PREFIX: &str = "/admin/v1/";

/// The codes of the admin plane's problem documents.
pub(crate) const CODES: [ErrorCode; 21] = [
    ErrorCode::InvalidRequest,
    ErrorCode::Unauthenticated,
    ErrorCode::Forbidden,
    ErrorCode::NotFound,
    ErrorCode::MethodNotAllowed,
    ErrorCode::RequestTimeout,
    ErrorCode::Conflict,
    ErrorCode::PreconditionFailed,
    ErrorCode::BodyTooLarge,
    ErrorCode::Unprocessable,
    ErrorCode::InvalidPlugin,
    ErrorCode::UnsignedPlugin,
    ErrorCode::InvalidModel,
    ErrorCode::SampleFailed,
    ErrorCode::TenantBusy,
    ErrorCode::TooManyFailures,
    ErrorCode::TokenBusy,
    ErrorCode::TooManyReleases,
    ErrorCode::Internal,
    ErrorCode::Unavailable,
    ErrorCode::InsufficientStorage,
];

/// The problems that every operation with a token can have.
const ALWAYS: [ErrorCode; 6] = [
    ErrorCode::InvalidRequest,
    ErrorCode::Unauthenticated,
    ErrorCode::Forbidden,
    ErrorCode::TooManyFailures,
    ErrorCode::Internal,
    ErrorCode::Unavailable,
];

/// The media type of documents.
const JSON: &str = "application/json";

/// The form of `If-Match` and `If-None-Match`: at most 64 tags.
const TAGS: &str = r#"^(\*|(W/)?"[!#-~]*"([ \t]*,[ \t]*(W/)?"[!#-~]*"){0,63})$"#;

/// The name of the answer to a reader who has the current version.
pub(crate) const UNCHANGED: &str = "Unchanged";

/// One operation.
pub(crate) struct Operation {
    pub(crate) path: String,
    pub(crate) method: HttpMethod,
    pub(crate) built: OperationBuilder,
    pub(crate) schemas: Schemas,
}

/// A flag in the query, and its meaning.
pub(crate) struct Flag(pub(crate) &'static str, pub(crate) &'static str);

impl Operation {
    /// `GET`, and `HEAD` with it.
    pub(crate) fn get(below: &str, summary: &str) -> Self {
        Self::new(HttpMethod::Get, below, summary)
    }

    /// `PUT`.
    pub(crate) fn put(below: &str, summary: &str) -> Self {
        Self::new(HttpMethod::Put, below, summary)
    }

    /// `POST`.
    pub(crate) fn post(below: &str, summary: &str) -> Self {
        Self::new(HttpMethod::Post, below, summary)
    }

    /// `PATCH`.
    pub(crate) fn patch(below: &str, summary: &str) -> Self {
        Self::new(HttpMethod::Patch, below, summary)
    }

    /// `DELETE`.
    pub(crate) fn delete(below: &str, summary: &str) -> Self {
        Self::new(HttpMethod::Delete, below, summary)
    }

    /// `GET` of something that needs no token.
    pub(crate) fn public(below: &str, summary: &str) -> Self {
        let open = Self::described(HttpMethod::Get, below, summary);
        open.problems(&[ErrorCode::InvalidRequest, ErrorCode::Unavailable])
    }

    fn new(method: HttpMethod, below: &str, summary: &str) -> Self {
        Self::described(method, below, summary).problems(&ALWAYS)
    }

    fn described(method: HttpMethod, below: &str, summary: &str) -> Self {
        let built = OperationBuilder::new()
            .operation_id(Some(id(&method, below)))
            .tag(group(below))
            .summary(Some(summary));
        let path = format!("{PREFIX}{below}");
        let mut operation = Self { path, method, built, schemas: Schemas::default() };
        let names = below.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        for name in names {
            let schema = match name {
                "digest" => operation.schemas.shown::<DigestText>(),
                "number" => integer(1, None).into(),
                "store_key" => text().min_length(Some(1)).into(),
                "model" => operation.schemas.shown::<ModelNameText>(),
                _ => operation.schemas.shown::<NameText>(),
            };
            let parameter = parameter(name, ParameterIn::Path, schema);
            operation = operation.with(parameter.required(Required::True));
        }
        operation
    }

    /// More about it.
    pub(crate) fn about(mut self, description: &str) -> Self {
        self.built = self.built.description(Some(description));
        self
    }

    fn with(mut self, parameter: impl Into<Parameter>) -> Self {
        self.built = self.built.parameter(parameter);
        self
    }

    fn answer(mut self, status: u16, answer: impl Into<RefOr<Response>>) -> Self {
        self.built = self.built.response(status.to_string(), answer);
        self
    }

    /// It can have these problems.
    pub(crate) fn problems(mut self, codes: &[ErrorCode]) -> Self {
        for code in codes {
            let status = status_of(*code).as_u16();
            self = self.answer(status, Ref::from_response_name(problem_name(status)));
        }
        self
    }

    /// It names something that may not exist.
    pub(crate) fn finds(self) -> Self {
        self.problems(&[ErrorCode::NotFound])
    }

    /// A flag in the query.
    pub(crate) fn flag(self, Flag(name, meaning): Flag) -> Self {
        let schema = ObjectBuilder::new().schema_type(SchemaType::new(Type::Boolean));
        self.with(parameter(name, ParameterIn::Query, schema).description(Some(meaning)))
    }

    /// A number in the query, from 1 on.
    pub(crate) fn number(self, name: &str, most: Option<usize>, meaning: &str) -> Self {
        let schema = integer(1, most);
        self.with(parameter(name, ParameterIn::Query, schema).description(Some(meaning)))
    }

    /// A number from 0 on in the query.
    pub(crate) fn position(self, name: &str, meaning: &str) -> Self {
        let schema = integer(0, None);
        self.with(parameter(name, ParameterIn::Query, schema).description(Some(meaning)))
    }

    /// A text in the query.
    pub(crate) fn text(self, name: &str, meaning: &str) -> Self {
        self.with(parameter(name, ParameterIn::Query, text()).description(Some(meaning)))
    }

    /// A text of this pattern in the query.
    pub(crate) fn text_like(self, name: &str, pattern: &str, meaning: &str) -> Self {
        let schema = text().pattern(Some(pattern));
        self.with(parameter(name, ParameterIn::Query, schema).description(Some(meaning)))
    }

    /// One of these texts in the query.
    pub(crate) fn choice<const N: usize>(
        self,
        name: &str,
        values: [&str; N],
        meaning: &str,
    ) -> Self {
        let schema = text().enum_values(Some(values));
        self.with(parameter(name, ParameterIn::Query, schema).description(Some(meaning)))
    }

    /// A name in the query.
    pub(crate) fn name(mut self, name: &str, meaning: &str) -> Self {
        let schema = self.schemas.shown::<NameText>();
        self.with(parameter(name, ParameterIn::Query, schema).description(Some(meaning)))
    }

    /// A header that must be there.
    pub(crate) fn header(self, name: &str, schema: ObjectBuilder, meaning: &str) -> Self {
        let parameter = parameter(name, ParameterIn::Header, schema);
        self.with(parameter.required(Required::True).description(Some(meaning)))
    }

    /// A header with a text that may be missing.
    pub(crate) fn optional_header(self, name: &str, meaning: &str) -> Self {
        let parameter = parameter(name, ParameterIn::Header, text());
        self.with(parameter.description(Some(meaning)))
    }

    /// It takes a document.
    pub(crate) fn takes<T: ToSchema>(mut self) -> Self {
        let content = ContentBuilder::new().schema(Some(self.schemas.sent::<T>())).build();
        let body = RequestBodyBuilder::new().content(JSON, content).required(Some(Required::True));
        self.built = self.built.request_body(Some(body.build()));
        self.problems(&[
            ErrorCode::RequestTimeout,
            ErrorCode::BodyTooLarge,
            ErrorCode::Unprocessable,
        ])
    }

    /// It takes a file of any media type, which must not be empty.
    pub(crate) fn takes_file(self) -> Self {
        self.takes_bytes_if(Required::True)
    }

    /// It takes any bytes, of any media type.
    pub(crate) fn takes_bytes(self) -> Self {
        self.takes_bytes_if(Required::False)
    }

    fn takes_bytes_if(mut self, required: Required) -> Self {
        let content = ContentBuilder::new().schema(Some(file())).build();
        let body = RequestBodyBuilder::new().content("application/octet-stream", content);
        self.built = self.built.request_body(Some(body.required(Some(required)).build()));
        self.problems(&[ErrorCode::RequestTimeout, ErrorCode::BodyTooLarge])
    }

    /// It answers a document.
    pub(crate) fn answers<T: ToSchema>(mut self) -> Self {
        let schema = self.schemas.shown::<T>();
        self.answers_with(schema)
    }

    /// The same for a schema that does not belong to a type.
    pub(crate) fn answers_with(self, schema: impl Into<RefOr<Schema>>) -> Self {
        self.answer(200, response("The answer", JSON, schema))
    }

    /// It answers a file of one of these media types.
    pub(crate) fn answers_as<const N: usize>(self, media_types: [&str; N]) -> Self {
        let mut answer = ResponseBuilder::new().description("The answer");
        for media_type in media_types {
            let content = ContentBuilder::new().schema(Some(file()));
            answer = answer.content(media_type, content.build());
        }
        self.answer(200, answer.build())
    }

    /// It answers events, whose form this version of OpenAPI cannot describe.
    pub(crate) fn answers_events(self, media_type: &str) -> Self {
        let content = ContentBuilder::new().build();
        let answer = ResponseBuilder::new().description("The events");
        self.answer(200, answer.content(media_type, content).build())
    }

    /// It answers a document with a tag. A reader who has this version gets 304.
    pub(crate) fn reads<T: ToSchema>(mut self) -> Self {
        let schema = self.schemas.shown::<T>();
        self.reads_with(schema)
    }

    /// The same for a schema that does not belong to a type.
    pub(crate) fn reads_with(self, schema: impl Into<RefOr<Schema>>) -> Self {
        self.reads_as(JSON, schema)
    }

    /// The same with a media type.
    pub(crate) fn reads_as(self, media_type: &str, schema: impl Into<RefOr<Schema>>) -> Self {
        let answer = ResponseBuilder::from(response("The document", media_type, schema));
        self.answer(200, answer.header("ETag", tag_header())).tagged()
    }

    /// It answers a document with the keys of both types.
    pub(crate) fn reads_both<T: ToSchema, U: ToSchema>(mut self) -> Self {
        let (one, other) = (self.schemas.shown::<T>(), self.schemas.shown::<U>());
        self.reads_with(AllOfBuilder::new().item(one).item(other))
    }

    /// It answers a page of a list of such items, sorted by name.
    pub(crate) fn lists<T: ToSchema>(mut self, most: usize) -> Self {
        // Models have the longest names.
        let (item, name) = (self.schemas.shown::<T>(), self.schemas.shown::<ModelNameText>());
        let after = parameter("after", ParameterIn::Query, name.clone());
        self.number("limit", Some(most), "The most items of a page")
            .with(after.description(Some("The name before the page")))
            .pages(item, name)
    }

    /// It answers a page of items. The next one is found by `next`.
    pub(crate) fn pages(self, item: RefOr<Schema>, next: impl Into<RefOr<Schema>>) -> Self {
        let page = ObjectBuilder::new()
            .property("items", Array::new(item))
            .required("items")
            .property("next", next);
        let link = text_header("The next page, if there is one, as RFC 8288 has it");
        let answer = ResponseBuilder::from(response("A page", JSON, page));
        self.answer(200, answer.header("ETag", tag_header()).header("Link", link)).tagged()
    }

    /// It answers a file.
    pub(crate) fn reads_file(self, media_type: &str) -> Self {
        self.reads_as(media_type, file())
    }

    /// The conditions of reading.
    fn tagged(self) -> Self {
        self.answer(304, Ref::from_response_name(UNCHANGED))
            .conditions()
            .problems(&[ErrorCode::PreconditionFailed])
    }

    fn conditions(self) -> Self {
        let tags = |name: &str, meaning: &str| {
            let schema = text().pattern(Some(TAGS));
            parameter(name, ParameterIn::Header, schema).description(Some(meaning))
        };
        self.with(tags("If-Match", "Tags, one of which the thing must have, or `*`"))
            .with(tags("If-None-Match", "Tags, none of which the thing may have, or `*`"))
    }

    /// It makes a release that changes one thing, and answers a document.
    pub(crate) fn changes<T: ToSchema>(self) -> Self {
        self.conditions().releases::<T>().finds()
    }

    /// It makes a release, and answers a document.
    pub(crate) fn releases<T: ToSchema>(mut self) -> Self {
        let document = self.schemas.shown::<T>();
        let replicas = self.schemas.shown::<WaitedDocument>();
        let waited = ObjectBuilder::new().property("replicas", replicas);
        let schema: RefOr<Schema> = AllOfBuilder::new().item(document).item(waited).into();
        let (whole, partly) = (
            response("The release is made", JSON, schema.clone()),
            response("It is made, but some servers do not serve it yet", JSON, schema),
        );
        let message = text().max_length(Some(MESSAGE_CHARS_MAX)).pattern(Some(MESSAGE_FORM));
        let message = parameter("Gristmill-Message", ParameterIn::Header, message);
        let all = text().enum_values(Some(["all"]));
        let wait = parameter("wait", ParameterIn::Query, all);
        self.answer(200, whole)
            .answer(202, partly)
            .with(message.description(Some("Why, for the history of releases; UTF-8")))
            .with(wait.description(Some("Wait until all servers that live serve the release")))
            .problems(&[
                ErrorCode::Conflict,
                ErrorCode::PreconditionFailed,
                ErrorCode::Unprocessable,
                ErrorCode::InsufficientStorage,
            ])
    }
}
