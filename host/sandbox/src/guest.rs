//! A guest: a store and the instance in it, which serves one call or several.
//!
//! Invariant: a guest serves a further call only after one that ended without a trap and without
//! reaching a limit, and only for the same owner, the same plugin and the same limits.
//!
//! A guest that has grown by [`GROWTH_BYTES_MAX`], or that keeps a resource of the host, serves no
//! call of another request ([`Guest::is_unfit`]).

use std::any::Any;
use std::sync::Arc;

use wasmtime::Store;
use wasmtime::component::{ComponentExportIndex, Instance, InstancePre, TypedFunc};

use crate::capability::{StoreData, wasi};
use crate::rewind::{FirstContent, Rewind};
use crate::worlds::World;

/// The linear memory by which a guest that stays may have grown since its first call.
const GROWTH_BYTES_MAX: usize = 16 << 20;

/// A store and the instance in it.
pub(crate) struct Guest {
    pub(crate) store: Store<StoreData>,
    /// None before the first call.
    instance: Option<Instance>,
    /// Its functions that were checked in earlier calls, as [`Function`].
    functions: Vec<Box<dyn Any + Send>>,
    /// The calls that it has served.
    calls: u32,
    /// Its linear memory after the first call.
    first_bytes: usize,
    /// How it is made fresh again, if it can be.
    rewind: Option<Rewind>,
}

/// The export of the world `W`.
type Function<W> = TypedFunc<<W as World>::Params, <W as World>::Results>;

impl Guest {
    pub(crate) fn new(store: Store<StoreData>) -> Self {
        Self {
            store,
            instance: None,
            functions: Vec::new(),
            calls: 0,
            first_bytes: 0,
            rewind: None,
        }
    }

    /// Its export at `index`. Makes the instance before the first call.
    pub(crate) async fn function<W: World>(
        &mut self,
        plugin: &InstancePre<StoreData>,
        first_content: Option<&Arc<FirstContent>>,
        index: &ComponentExportIndex,
    ) -> wasmtime::Result<Function<W>> {
        let typed = |function: &Box<dyn Any + Send>| function.downcast_ref().copied();
        if let Some(function) = self.functions.iter().find_map(typed) {
            return Ok(function);
        }
        let instance = match self.instance {
            Some(instance) => instance,
            None => {
                let instance = plugin.instantiate_async(&mut self.store).await?;
                if let Some(first) = first_content {
                    self.rewind = Rewind::of(first, &mut self.store, &instance).await?;
                }
                *self.instance.insert(instance)
            }
        };
        let function: Function<W> = instance.get_typed_func(&mut self.store, index)?;
        // Most guests serve one call.
        if self.calls > 0 {
            self.functions.push(Box::new(function));
        }
        Ok(function)
    }

    /// A call has ended, after which the guest is to stay.
    pub(crate) fn end_call(&mut self) {
        self.store.data_mut().end();
        if let Some(rewind) = &mut self.rewind {
            rewind.note_call(self.store.data().meter.faults());
        }
        if self.calls == 0 {
            self.first_bytes = self.memory_bytes();
        }
        self.calls = self.calls.saturating_add(1);
    }

    /// Make it fresh again. Until its next call its owner is charged only for the memory that it
    /// does not share with the plugin's file. False if it has to be dropped instead.
    pub(crate) fn rewind(&mut self) -> bool {
        let own_bytes = self.rewind.as_mut().and_then(|rewind| rewind.rewind(&mut self.store));
        own_bytes.inspect(|own_bytes| self.store.data_mut().limiter.rest(*own_bytes)).is_some()
    }

    /// Whether its next call is to count page faults.
    pub(crate) fn wants_faults(&self) -> bool {
        self.rewind.as_ref().is_some_and(Rewind::wants_faults)
    }

    /// Whether it can say in which of the author's functions it was stopped.
    pub(crate) fn knows_functions(&self) -> bool {
        self.rewind.is_some()
    }

    /// The author's functions in which it was stopped, the innermost one first. Empty if it does
    /// not share a runtime.
    pub(crate) fn authors_functions(&self) -> Vec<String> {
        self.rewind.as_ref().map(|rewind| rewind.functions(&self.store)).unwrap_or_default()
    }

    /// The calls that it has served.
    pub(crate) fn calls(&self) -> u32 {
        self.calls
    }

    /// Whether it is not to serve calls of other requests: it has grown too much, or it keeps
    /// resources of the host, which would stay as long as it does.
    pub(crate) fn is_unfit(&mut self) -> bool {
        let wasi: &mut wasi::CapabilityState = self.store.data_mut().states.as_mut();
        wasi.keeps_requests()
            || self.memory_bytes() > self.first_bytes.saturating_add(GROWTH_BYTES_MAX)
            || self.store.data().keeps_resources()
    }

    /// Whether dropping it takes long.
    pub(crate) fn is_large(&self) -> bool {
        self.store.data().meter.is_large()
    }

    /// The bytes that count against its owner's budget.
    pub(crate) fn held_bytes(&self) -> usize {
        self.store.data().limiter.held().bytes()
    }

    fn memory_bytes(&self) -> usize {
        self.store.data().limiter.memory_bytes()
    }
}
