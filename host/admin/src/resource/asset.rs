//! `GET`, `PUT` and `DELETE /admin/v1/tenants/{tenant}/assets/{asset}`.

use gristmill_core::Name;
use gristmill_state::{AssetDescription, Change, Subject};
use gristmill_transport::{Allowed, Problem};
use http::Method;

use super::document::FileLength;
use super::query::{CASCADE, SKIP_SAMPLES, flag};
use super::{Answering, Asked, Resource, document, is_read, name};
use crate::answer::{AdminAnswer, Released};
use crate::operation::Operation;
use crate::permission::Permission;

pub(crate) struct Asset {
    tenant: String,
    asset: String,
}

impl Asset {
    pub(crate) fn new(tenant: &str, asset: &str) -> Self {
        Self { tenant: tenant.into(), asset: asset.into() }
    }

    fn subject(&self) -> Result<Subject, Problem> {
        self.names().map(|(tenant, asset)| Subject::Asset { tenant, asset })
    }

    fn names(&self) -> Result<(Name, Name), Problem> {
        Ok((name("tenant", &self.tenant)?, name("asset", &self.asset)?))
    }
}

impl Asset {
    /// Its operations, for the description of the API.
    pub(crate) fn operations() -> Vec<Operation> {
        const PATH: &str = "tenants/{tenant}/assets/{asset}";
        vec![
            Operation::get(PATH, "Describe an asset")
                .reads_both::<AssetDescription<'_>, FileLength>()
                .finds(),
            Operation::put(PATH, "Make an asset, or replace its file")
                .about("Plugins of pipelines that name it open it.")
                .takes_file()
                .flag(SKIP_SAMPLES)
                .changes::<Released>(),
            Operation::delete(PATH, "Delete an asset").flag(CASCADE).changes::<Released>(),
        ]
    }
}

impl Resource for Asset {
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
                let file = received.upload(state, self.subject().ok()).await?;
                let (tenant, asset) = self.names()?;
                options.skips_samples = flag(SKIP_SAMPLES, query)?;
                let put = state.control.put_asset(&tenant, &asset, file, options).await;
                let (digest, published) = put?;
                return AdminAnswer::released(published, Some(digest));
            }
            if *method == Method::DELETE {
                let (tenant, asset) = self.names()?;
                let change = Change::DeleteAsset { tenant, asset };
                return document::delete(state, change, received).await;
            }
            document::get_file(state, &self.subject()?, &received).await
        })
    }
}
