//! `GET`, `PUT` and `DELETE /admin/v1/tenants/{tenant}/plugins/{plugin}`.

use gristmill_core::Name;
use gristmill_state::{Change, PluginDescription, Subject};
use gristmill_transport::{Allowed, Problem};
use http::Method;

use super::document::FileLength;
use super::query::{CASCADE, SKIP_SAMPLES, flag};
use super::{Answering, Asked, Resource, document, is_read, name};
use crate::answer::{AdminAnswer, Released};
use crate::operation::Operation;
use crate::permission::Permission;
use crate::plugin_signature::{self, SIGNATURE};
use crate::receive::drop_some;

pub(crate) struct Plugin {
    tenant: String,
    plugin: String,
}

impl Plugin {
    pub(crate) fn new(tenant: &str, plugin: &str) -> Self {
        Self { tenant: tenant.into(), plugin: plugin.into() }
    }

    fn subject(&self) -> Result<Subject, Problem> {
        self.names().map(|(tenant, plugin)| Subject::Plugin { tenant, plugin })
    }

    fn names(&self) -> Result<(Name, Name), Problem> {
        Ok((name("tenant", &self.tenant)?, name("plugin", &self.plugin)?))
    }
}

impl Plugin {
    /// Its operations, for the description of the API.
    pub(crate) fn operations() -> Vec<Operation> {
        const PATH: &str = "tenants/{tenant}/plugins/{plugin}";
        vec![
            Operation::get(PATH, "Describe a plugin")
                .reads_both::<PluginDescription<'_>, FileLength>()
                .finds(),
            Operation::put(PATH, "Make a plugin, or replace its file")
                .takes_file()
                .optional_header(SIGNATURE, plugin_signature::MEANING)
                .flag(SKIP_SAMPLES)
                .changes::<Released>(),
            Operation::delete(PATH, "Delete a plugin").flag(CASCADE).changes::<Released>(),
        ]
    }
}

impl Resource for Plugin {
    fn allowed(&self) -> Allowed {
        Allowed::GetPutDelete
    }

    fn permission(&self, method: &Method) -> Permission<'_> {
        match is_read(method) {
            true => Permission::SeeTenant(&self.tenant),
            false => Permission::ChangeTenant(&self.tenant),
        }
    }

    fn answer<'a>(&'a self, Asked { state, method, received }: Asked<'a>) -> Answering<'a> {
        Box::pin(async move {
            if *method == Method::PUT {
                let (query, mut options) = (received.query, received.options.clone());
                let signature = match plugin_signature::of(received.headers) {
                    Ok(signature) => signature,
                    Err(problem) => {
                        drop_some(received.body).await;
                        return Err(problem);
                    }
                };
                let file = received.upload(state, self.subject().ok()).await?;
                let (tenant, plugin) = self.names()?;
                options.skips_samples = flag(SKIP_SAMPLES, query)?;
                let file = (file, signature);
                let put = state.control.put_plugin(&tenant, &plugin, file, options).await;
                let (digest, published) = put?;
                return AdminAnswer::released(published, Some(digest));
            }
            if *method == Method::DELETE {
                let (tenant, plugin) = self.names()?;
                let change = Change::DeletePlugin { tenant, plugin };
                return document::delete(state, change, received).await;
            }
            document::get_file(state, &self.subject()?, &received).await
        })
    }
}
