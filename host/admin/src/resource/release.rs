//! `GET /admin/v1/releases/{number}`: one release with its changes.

use gristmill_control::ReleaseHeading;
use gristmill_state::Power;
use gristmill_transport::Allowed;
use http::Method;
use utoipa::openapi::schema::{AllOfBuilder, Array, ObjectBuilder};

use super::change_schema::ShownChange;
use super::query::{POWER, flag, invalid};
use super::{Answering, Asked, Resource};
use crate::answer::AdminAnswer;
use crate::operation::Operation;
use crate::permission::Permission;

pub(crate) struct Release(String);

impl Release {
    pub(crate) fn new(number: &str) -> Self {
        Self(number.into())
    }
}

impl Release {
    /// Its operations, for the description of the API.
    pub(crate) fn operations() -> Vec<Operation> {
        let mut get = Operation::get("releases/{number}", "Read a release with its changes");
        let (heading, change) =
            (get.schemas.shown::<ReleaseHeading>(), get.schemas.shown::<ShownChange>());
        let changes =
            ObjectBuilder::new().property("changes", Array::new(change)).required("changes");
        let changes = changes.property("power", Array::new(get.schemas.shown::<Power>()));
        let document = AllOfBuilder::new().item(heading).item(changes);
        vec![get.flag(POWER).reads_with(document).finds()]
    }
}

impl Resource for Release {
    fn allowed(&self) -> Allowed {
        Allowed::Get
    }

    fn permission(&self, _: &Method) -> Permission<'_> {
        Permission::See
    }

    fn answer<'a>(&'a self, Asked { state, received, .. }: Asked<'a>) -> Answering<'a> {
        Box::pin(async move {
            let power = flag(POWER, received.query)?;
            let number = self.0.parse().map_err(|_| {
                invalid(format!("release is {:?}: must be a whole number from 1 on", self.0))
            })?;
            let token_scope = received.caller.token_scope();
            AdminAnswer::digested(&state.control.past_release(number, power, &token_scope).await?)
        })
    }
}
