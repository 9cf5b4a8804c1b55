//! `POST /admin/v1/tenants/{tenant}/stores/{store}`, and `GET`, `PUT` and `DELETE` of
//! `.../values/{store_key}`: the values that a tenant's plugins find in a store of this server.
//!
//! They are no part of a release. Tenants may share the keys of a store, so only the role `admin`
//! comes to them. Invariant: a call has one document of at most 1 MiB, so its work is bounded.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use gristmill_core::{ErrorCode, Name};
use gristmill_sandbox::{
    STORE_KEY_BYTES_MAX, STORE_VALUE_BYTES_MAX, StoreCall, StoreFault, StoreFaultKind, Stores,
    WantedValues,
};
use gristmill_state::{ChangeOptions, Document, Faults, StateError};
use gristmill_transport::{Allowed, Problem};
use http::Method;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::query::{invalid, none};
use super::{Resource, is_read, name};
use crate::answer::{AdminAnswer, Outcome};
use crate::operation::Operation;
use crate::permission::Permission;
use crate::receive::Received;
use crate::state::AdminState;

/// The time for a call of a store. Its own `timeout_ms` is shorter as a rule.
const CALL_TIME: Duration = Duration::from_secs(30);

/// Maximum values of one call.
const VALUES_MAX: usize = 1000;

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

/// The value of a key: a text, or any bytes.
#[derive(ToSchema)]
#[schema(as = NewValue)]
struct NewValue {
    /// The value as text.
    text: Option<String>,
    /// The value as base64, in place of `text`.
    base64: Option<String>,
    /// The milliseconds after which the store forgets it; without them it stays.
    #[schema(minimum = 1)]
    ttl_ms: Option<u64>,
}

/// Values of several keys.
#[derive(ToSchema)]
#[schema(as = NewValues)]
struct NewValues {
    /// At most 1000.
    values: Vec<KeyValue>,
    /// The milliseconds after which the store forgets them; without them they stay.
    #[schema(minimum = 1)]
    ttl_ms: Option<u64>,
}

/// A key with its value.
#[derive(ToSchema)]
#[schema(as = KeyValue)]
struct KeyValue {
    key: String,
    /// The value as text.
    text: Option<String>,
    /// The value as base64, in place of `text`.
    base64: Option<String>,
}

/// The value that a key has: `text` if it is UTF-8, otherwise `base64`.
#[derive(Serialize, ToSchema)]
#[schema(as = FoundValue)]
struct FoundValue {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

/// How many values were set or forgotten.
#[derive(Serialize, ToSchema)]
#[schema(as = ChangedValues)]
struct ChangedValues {
    changed: usize,
}

impl NewValue {
    /// # Errors
    /// All faults of the document.
    fn read(keys: Map<String, Value>) -> Result<Self, StateError> {
        let mut document = Document::new(keys);
        let (text, base64) = read_value(&mut document);
        let ttl_ms = read_ttl(&mut document);
        refused(document.finish())?;
        Ok(Self { text, base64, ttl_ms })
    }
}

impl NewValues {
    /// # Errors
    /// All faults of the document.
    fn read(keys: Map<String, Value>) -> Result<Self, StateError> {
        let mut document = Document::new(keys);
        let values = document.objects("values", |item| {
            let key = item.text("key");
            let key = item.require("key", key);
            if let Some(why) = key.as_deref().and_then(fault_of_key) {
                item.fault("key", why);
            }
            let (text, base64) = read_value(item);
            Some(KeyValue { key: key?, text, base64 })
        });
        let values = document.require("values", values);
        if let Some(count) = values.as_ref().map(Vec::len).filter(|count| *count > VALUES_MAX) {
            document.fault("values", format_args!(" has {count} items: the limit is {VALUES_MAX}"));
        }
        let ttl_ms = read_ttl(&mut document);
        refused(document.finish())?;
        Ok(Self { values: values.unwrap_or_default(), ttl_ms })
    }
}

/// # Errors
/// There are faults.
fn refused(faults: Faults) -> Result<(), StateError> {
    match faults.is_empty() {
        true => Ok(()),
        false => Err(StateError::Invalid(faults)),
    }
}

/// Read `text` or `base64`, one of which is given.
fn read_value(document: &mut Document) -> (Option<String>, Option<String>) {
    let given = (document.gives("text"), document.gives("base64"));
    let (text, base64) = (document.text("text"), document.text("base64"));
    match given {
        (true, true) => document.fault("base64", " is given beside text: give one of them"),
        (false, false) => document.fault("text", " is missing: give it, or base64"),
        _ => {}
    }
    if base64.as_ref().is_some_and(|base64| STANDARD.decode(base64).is_err()) {
        document.fault("base64", " must be base64 with its padding");
    }
    (text, base64)
}

fn read_ttl(document: &mut Document) -> Option<u64> {
    let ttl_ms: Option<u64> = document.whole("ttl_ms");
    if ttl_ms.is_some_and(|ttl_ms| ttl_ms == 0 || i64::try_from(ttl_ms).is_err()) {
        document.fault("ttl_ms", format_args!(" must be 1 to {}", i64::MAX));
    }
    ttl_ms
}

/// What is wrong with a key.
fn fault_of_key(key: &str) -> Option<String> {
    match key.len() {
        0 => Some(" is empty".to_owned()),
        1..=STORE_KEY_BYTES_MAX => None,
        bytes => Some(format!(" has {bytes} bytes: the limit is {STORE_KEY_BYTES_MAX}")),
    }
}

/// The bytes of a value that was read.
fn bytes_of(text: Option<String>, base64: Option<String>) -> Vec<u8> {
    match base64 {
        Some(base64) => STANDARD.decode(base64).unwrap_or_default(),
        None => text.unwrap_or_default().into_bytes(),
    }
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
        ]
    }

    /// The stores, and a call of this one.
    ///
    /// # Errors
    /// There is no such tenant, or this server has no such store.
    fn call(&self, state: &AdminState) -> Result<(Arc<dyn Stores>, StoreCall), Problem> {
        let tenant = name("tenant", &self.tenant)?;
        let store: Name = name("store", &self.store)?;
        if !state.control.desired().tenants.contains_key(&tenant) {
            return Err(StateError::not_found("tenant", &tenant).into());
        }
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
        let found = stores.get_many(call, wanted).await.map_err(problem)?;
        let value = found.into_iter().flatten().next().ok_or_else(|| self.not_found())?;
        if value.len() > STORE_VALUE_BYTES_MAX {
            let detail = format!("the value has more than {STORE_VALUE_BYTES_MAX} bytes");
            return Err(Problem::new(ErrorCode::Unprocessable, detail));
        }
        Ok(AdminAnswer::of(&FoundValue::of(&value))?.unkept())
    }
}

impl FoundValue {
    fn of(value: &Bytes) -> Self {
        match str::from_utf8(value) {
            Ok(text) => Self { text: Some(text.to_owned()), base64: None },
            Err(_) => Self { text: None, base64: Some(STANDARD.encode(value)) },
        }
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

#[async_trait]
impl Resource for Store {
    fn allowed(&self) -> Allowed {
        Allowed::Post
    }

    fn permission(&self, _: &Method) -> Permission<'_> {
        Permission::Administer
    }

    async fn answer(&self, state: &AdminState, _: &Method, received: Received<'_>) -> Outcome {
        let checked = check(&received.options, received.query);
        let keys = received.document(&state.limits).await?;
        checked?;
        let NewValues { values, ttl_ms } = NewValues::read(keys)?;
        let values =
            values.into_iter().map(|value| (value.key, bytes_of(value.text, value.base64)));
        self.set(state, values.collect(), ttl_ms).await
    }
}

#[async_trait]
impl Resource for StoreValue {
    fn allowed(&self) -> Allowed {
        Allowed::GetPutDelete
    }

    fn permission(&self, _: &Method) -> Permission<'_> {
        Permission::Administer
    }

    async fn answer(&self, state: &AdminState, method: &Method, received: Received<'_>) -> Outcome {
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
        match stores.remove(call, &self.key).await.map_err(problem)? {
            true => AdminAnswer::of(&ChangedValues { changed: 1 }),
            false => Err(self.not_found()),
        }
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
