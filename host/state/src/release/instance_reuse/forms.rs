//! The forms of the key `instance_reuse`, for the description of the admin API.

use std::borrow::Cow;

use utoipa::openapi::schema::{OneOfBuilder, Schema};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use crate::release::instance_reuse::{InstanceReuse, ReuseMode};
use crate::schema::add;

/// The values that the key takes.
pub enum InstanceReuseForms {}

impl PartialSchema for InstanceReuseForms {
    fn schema() -> RefOr<Schema> {
        let forms = OneOfBuilder::new()
            .item(Ref::from_schema_name(ReuseMode::name()))
            .item(Ref::from_schema_name(InstanceReuse::name()));
        forms.description(Some("A mode, or an object with the mode and its bounds")).into()
    }
}

impl ToSchema for InstanceReuseForms {
    fn name() -> Cow<'static, str> {
        "InstanceReuseForms".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        add::<ReuseMode>(schemas);
        add::<InstanceReuse>(schemas);
    }
}
