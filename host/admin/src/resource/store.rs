//! `POST` and `DELETE` of `/admin/v1/tenants/{tenant}/stores/{store}`, and `GET`, `PUT` and
//! `DELETE` of `.../values/{store_key}`: the values that a tenant's plugins find in a store of this
//! server.
//!
//! They are no part of a release, and stay when their tenant is deleted. Tenants may share the keys
//! of a store, so only the role `admin` comes to them. Invariant: a call has one document of at
//! most 1 MiB, or a maximum time, so its work is bounded.

mod documents;

use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill_core::{ErrorCode, Name};
use gristmill_sandbox::{
    Cleared, STORE_VALUE_BYTES_MAX, StoreCall, StoreFault, StoreFaultKind, Stores, WantedValues,
};
use gristmill_state::{ChangeOptions, StateError};
use gristmill_transport::{Allowed, Problem};
use http::Method;

use self::documents::{
    ChangedValues, ClearedValues, FoundValue, NewValue, NewValues, bytes_of, fault_of_key,
};
use super::query::{invalid, none};
use super::{Answering, Asked, Resource, is_read, name};
use crate::answer::{AdminAnswer, Outcome};
use crate::operation::Operation;
use crate::permission::Permission;
use crate::state::AdminState;

/// The time for a call of a store. Its `timeout_ms` is for plugins.
const CALL_TIME: Duration = Duration::from_secs(30);

/// The time after which a call that clears a store begins no further step.
const CLEAR_TIME: Duration = Duration::from_secs(10);

/// A tenant's part of a store.
pub(crate) struct Store {
    tenant: String,
    store: String,
}

/// One value in it.
pub(crate) struct StoreValue {
    store: Store,
    key: String,
}

impl Store {
    pub(crate) fn new(tenant: &str, store: &str) -> Self {
        Self { tenant: tenant.into(), store: store.into() }
    }

    /// Its operations, for the description of the API.
    pub(crate) fn operations() -> Vec<Operation> {
        const PATH: &str = "tenants/{tenant}/stores/{store}";
        vec![
            Operation::post(PATH, "Set values in a store")
                .about("If the store fails, some of them may be set. It is no release.")
                .takes::<NewValues>()
                .answers::<ChangedValues>()
                .finds(),
            Operation::delete(PATH, "Forget all values of a tenant in a store")
                .about(
                    "The tenant may be deleted already. Repeat the call until is_empty is true. It \
                     is no release. Not for a store in Redis, and not where tenants share keys.",
                )
                .answers::<ClearedValues>()
                .problems(&[ErrorCode::Unprocessable])
                .finds(),
        ]
    }

    /// The stores, and a call of this one.
    ///
    /// # Errors
    /// There is no such tenant, or this server has no such store.
    fn call(&self, state: &AdminState) -> Result<(Arc<dyn Stores>, StoreCall), Problem> {
        let (stores, call) = self.call_of_any_tenant(state)?;
        match state.control.desired().tenants.contains_key(&call.tenant) {
            true => Ok((stores, call)),
            false => Err(StateError::not_found("tenant", &call.tenant).into()),
        }
    }

    /// The same for a tenant that may be deleted already.
    fn call_of_any_tenant(
        &self,
        state: &AdminState,
    ) -> Result<(Arc<dyn Stores>, StoreCall), Problem> {
        let tenant = name("tenant", &self.tenant)?;
        let store: Name = name("store", &self.store)?;
        let stores = state.control.stores().clone();
        if stores.prefix_bytes(store.as_str(), &tenant).is_none() {
            let detail = format!(
                "this server has no store {:?}: its configuration binds one with [stores.{0}]",
                store.as_str()
            );
            return Err(Problem::new(ErrorCode::NotFound, detail));
        }
        let deadline = Instant::now() + CALL_TIME;
        Ok((stores, StoreCall::of_operator(tenant, store, deadline)))
    }

    /// Set values.
    async fn set(
        &self,
        state: &AdminState,
        values: Vec<(String, Vec<u8>)>,
        ttl_ms: Option<u64>,
    ) -> Outcome {
        let (stores, call) = self.call(state)?;
        let changed = values.len();
        let values: Vec<_> =
            values.iter().map(|(key, value)| (key.as_str(), value.as_slice())).collect();
        if !values.is_empty() {
            stores.set(call, &values, ttl_ms).await.map_err(problem)?;
        }
        AdminAnswer::of(&ChangedValues { changed })
    }

    /// Forget the tenant's values, step by step, so that calls of plugins go on between them.
    async fn clear(&self, state: &AdminState) -> Outcome {
        let (began, mut changed) = (Instant::now(), 0);
        loop {
            let (stores, call) = self.call_of_any_tenant(state)?;
            let Cleared { values, is_all } = stores.clear(call).await.map_err(problem)?;
            changed += values;
            if is_all || began.elapsed() >= CLEAR_TIME {
                return AdminAnswer::of(&ClearedValues { changed, is_empty: is_all });
            }
        }
    }
}

impl StoreValue {
    pub(crate) fn new(tenant: &str, store: &str, key: &str) -> Self {
        Self { store: Store::new(tenant, store), key: key.into() }
    }

    /// Its operations, for the description of the API.
    pub(crate) fn operations() -> Vec<Operation> {
        const PATH: &str = "tenants/{tenant}/stores/{store}/values/{store_key}";
        let too_long = [ErrorCode::Unprocessable];
        vec![
            Operation::get(PATH, "Read a value in a store")
                .answers::<FoundValue>()
                .problems(&too_long)
                .finds(),
            Operation::put(PATH, "Set a value in a store")
                .about("It is no release.")
                .takes::<NewValue>()
                .answers::<ChangedValues>()
                .finds(),
            Operation::delete(PATH, "Forget a value in a store")
                .about("It is no release.")
                .answers::<ChangedValues>()
                .problems(&too_long)
                .finds(),
        ]
    }

    fn not_found(&self) -> Problem {
        let shown = &self.key[..self.key.floor_char_boundary(100)];
        let detail = format!("the store {:?} has no key {shown:?}", self.store.store);
        Problem::new(ErrorCode::NotFound, detail)
    }

    async fn get(&self, stores: &dyn Stores, call: StoreCall) -> Outcome {
        let keys = [self.key.as_str()];
        let wanted =
            WantedValues { keys: &keys, most_bytes: STORE_VALUE_BYTES_MAX, none_if_empty: false };
        let values = stores.get_many(call, wanted).await.map_err(problem)?;
        let value = values.into_iter().flatten().next().ok_or_else(|| self.not_found())?;
        if value.len() > STORE_VALUE_BYTES_MAX {
            let detail = format!("the value has more than {STORE_VALUE_BYTES_MAX} bytes");
            return Err(Problem::new(ErrorCode::Unprocessable, detail));
        }
        Ok(AdminAnswer::of(&FoundValue::of(&value))?.unkept())
    }
}

/// A store's fault, for an operator.
fn problem(StoreFault { kind, text }: StoreFault) -> Problem {
    let code = match kind {
        StoreFaultKind::Unavailable => ErrorCode::Unavailable,
        _ => ErrorCode::Unprocessable,
    };
    Problem::new(code, text)
}

/// Check what the request has besides its document.
fn check(options: &ChangeOptions, query: Option<&str>) -> Result<(), Problem> {
    match options.conditions.are_none() {
        true => none(query),
        false => Err(invalid("If-Match and If-None-Match are not for values in stores".to_owned())),
    }
}

impl Resource for Store {
    fn allowed(&self) -> Allowed {
        Allowed::PostAndDelete
    }

    fn permission(&self, _: &Method) -> Permission<'_> {
        Permission::Administer
    }

    fn answer<'a>(&'a self, Asked { state, method, received }: Asked<'a>) -> Answering<'a> {
        Box::pin(async move {
            let checked = check(&received.options, received.query);
            if *method == Method::DELETE {
                checked?;
                return self.clear(state).await;
            }
            let keys = received.document(&state.limits).await?;
            checked?;
            let NewValues { values, ttl_ms } = NewValues::read(keys)?;
            let values =
                values.into_iter().map(|value| (value.key, bytes_of(value.text, value.base64)));
            self.set(state, values.collect(), ttl_ms).await
        })
    }
}

impl Resource for StoreValue {
    fn allowed(&self) -> Allowed {
        Allowed::GetPutDelete
    }

    fn permission(&self, _: &Method) -> Permission<'_> {
        Permission::Administer
    }

    fn answer<'a>(&'a self, Asked { state, method, received }: Asked<'a>) -> Answering<'a> {
        Box::pin(async move {
            let checked = check(&received.options, received.query);
            if *method == Method::PUT {
                let keys = received.document(&state.limits).await?;
                checked?;
                let NewValue { text, base64, ttl_ms } = NewValue::read(keys)?;
                self.check_key()?;
                let values = vec![(self.key.clone(), bytes_of(text, base64))];
                return self.store.set(state, values, ttl_ms).await;
            }
            checked?;
            let (stores, call) = self.store.call(state)?;
            self.check_key()?;
            if is_read(method) {
                return self.get(&*stores, call).await;
            }
            match stores.remove(call, &[self.key.as_str()]).await.map_err(problem)? {
                0 => Err(self.not_found()),
                changed => AdminAnswer::of(&ChangedValues { changed }),
            }
        })
    }
}

impl StoreValue {
    fn check_key(&self) -> Result<(), Problem> {
        match fault_of_key(&self.key) {
            Some(why) => Err(Problem::new(ErrorCode::Unprocessable, format!("the key{why}"))),
            None => Ok(()),
        }
    }
}
