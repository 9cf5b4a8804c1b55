//! A loaded plugin, and the calls that a pipeline makes. `load` makes one of a compiled component.
//!
//! Three functions stand around the work of a guest while it runs:
//! - `PluginPair::preprocess` or `postprocess`, or `HandlerPlugin::handle`: where the guest comes
//!   from, and how long requests take;
//! - `NewCall::run` (`long_calls`): on which threads it runs, and what is noted when it ends or its
//!   request leaves;
//! - `MovableCall::turn`: one poll of it, with its CPU time, its panic and the end of its guest. It
//!   stands apart from `run`, because it goes to another thread and may outlive its request.
//!
//! [`Plugin::begin`] comes before: it waits for permits and takes a guest. The guest's work is in a
//! box, so that it can move, and lowers, calls and lifts (`Plugin::call_in`).

mod load;

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use gristmill_core::{Code, Digest};
use tokio::runtime::Handle;
use wasmtime::component::{ComponentExportIndex, InstancePre};

use crate::account::Account;
use crate::assets::Assets;
use crate::call::ModelAccess;
use crate::capability::{StoreData, wasi};
use crate::diagnose;
use crate::engine::PluginEngine;
use crate::error::CallError;
use crate::grant::{Grant, PerCall};
use crate::guest::Guest;
use crate::idle::{IdleGuests, Keep, TenantReuse};
use crate::kept::KeptAccess;
use crate::language::Language;
use crate::long_calls::{CallFuture, NewCall};
use crate::mapped::named_code;
use crate::meter::Meter;
use crate::pace::Export;
use crate::pause::HeldPermits;
use crate::queue::{Half, Wanted};
use crate::request::{Context, Prepared, Request, Response, Results};
use crate::rewind::FirstContent;
use crate::runtime::{LinkedRuntime, RuntimeVersion};
use crate::worlds::{
    Contract, HandleRequest, Postprocess, Postprocess01, Preprocess, Preprocess01, Roles, World,
};

/// A loaded plugin. Calls run side by side, in different instances.
pub struct Plugin {
    engine: Arc<PluginEngine>,
    instance: InstancePre<StoreData>,
    preprocess: Option<ComponentExportIndex>,
    postprocess: Option<ComponentExportIndex>,
    handle: Option<ComponentExportIndex>,
    imports: Vec<String>,
    contract: Contract,
    /// Whether it imports WASI.
    has_wasi: bool,
    /// The digest of its sources, if its file says so.
    sources: Option<Digest>,
    /// The runtime that has its code, if it was uploaded as sources.
    runtime: Option<Arc<LinkedRuntime>>,
    /// The size of its file.
    file_bytes: u64,
    /// The memory that an instance begins with, in bytes.
    memory_bytes: u64,
    /// What its guests' memories begin with, if they can be rewound.
    first_content: Option<Arc<FirstContent>>,
    /// The files that it brings.
    assets: Assets,
}

/// A call that is to be made, apart from its request: within what, with which guest, when it
/// begins, and on which threads.
pub(crate) struct Placing<'a> {
    pub(crate) grant: Grant<'a>,
    /// Where its guest comes from.
    pub(crate) keep: Keep,
    pub(crate) export: &'a Export,
    pub(crate) half: Half,
    /// The time at which it has to begin; none if its request is not refused any more.
    pub(crate) latest: Option<Instant>,
    /// Is set when it begins.
    pub(crate) began: Option<&'a OnceLock<Instant>>,
    /// What its request keeps. None if it has only one call.
    pub(crate) kept: Option<KeptAccess>,
}

impl Plugin {
    /// Instantiate once within `grant`, and drop the instance. So a start function that traps, or a
    /// memory over the limit, is found when the plugin is deployed and not at its first request.
    ///
    /// # Errors
    /// As for [`PluginPair::preprocess`](crate::PluginPair::preprocess).
    pub async fn probe(self: &Arc<Self>, grant: Grant<'_>) -> Result<(), CallError> {
        let plugin = self.clone();
        let work = |mut guest: Guest| -> CallFuture<()> {
            Box::pin(async move {
                let instance = plugin.instance.instantiate_async(&mut guest.store).await;
                let language = plugin.language();
                let outcome = instance.map(drop).map_err(|error| {
                    diagnose::trap(&error, guest.store.data(), language, Vec::new)
                });
                (guest, outcome)
            })
        };
        let (keep, export) = (Keep::Never, &Export::default());
        let (half, latest, began, kept) = (Half::First, None, None, None);
        let placing = Placing { grant, keep, export, half, latest, began, kept };
        self.begin(work, placing).await?.run().await
    }

    /// The roles that its exports give it.
    pub fn roles(&self) -> Roles {
        Roles {
            pre: self.preprocess.is_some(),
            post: self.postprocess.is_some(),
            handle: self.handle.is_some(),
        }
    }

    /// The version of the contract that it was built for, such as 0.3.
    pub fn contract(&self) -> &'static str {
        self.contract.version()
    }

    /// The largest of the linear memories that an instance begins with, in bytes.
    pub fn initial_memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// The size of its compiled file, which is mapped: its code, its types, and the contents that
    /// its memories begin with. The kernel can evict these pages, and reads them again.
    pub fn mapped_bytes(&self) -> usize {
        let mapped = self.instance.component().image_range();
        mapped.end.addr() - mapped.start.addr()
    }

    /// Its compiled code in this process, for profiles, under this name. A function without a name
    /// in the plugin is called by its number.
    pub fn code(&self, name: String) -> Code {
        named_code(self.instance.component(), name)
    }

    /// The code of the runtime that it shares with other plugins.
    pub fn runtime_code(&self) -> Option<Code> {
        let runtime = self.runtime.as_ref()?;
        let language = runtime.version.language;
        Some(named_code(&runtime.code, format!("{} runtime", language.name())))
    }

    /// Whether its guests can be made fresh again.
    pub(crate) fn is_rewindable(&self) -> bool {
        self.first_content.is_some()
    }

    /// The digest of its sources, if its build wrote it into the file.
    pub fn sources(&self) -> Option<Digest> {
        self.sources
    }

    /// The files that it brings.
    pub fn assets(&self) -> &Assets {
        &self.assets
    }

    /// The size of its uploaded file.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// The language of the runtime that its sources share with those of other plugins.
    pub fn language(&self) -> Option<Language> {
        self.runtime().map(|runtime| runtime.language)
    }

    /// This runtime, which another server may have in another version.
    pub fn runtime(&self) -> Option<RuntimeVersion> {
        self.runtime.as_ref().map(|runtime| runtime.version)
    }

    /// The interfaces that it imports, without those of WASI that give it nothing outside of its
    /// instance: clocks, random bytes, lines of the log, a file system and sockets without content.
    pub fn imports_with_power(&self) -> impl Iterator<Item = &str> {
        self.imports.iter().map(String::as_str).filter(|import| !wasi::is_powerless(import))
    }

    /// The interfaces that it imports.
    pub fn imports(&self) -> &[String] {
        &self.imports
    }

    /// The work of a guest in a call of `preprocess`.
    pub(crate) fn preprocess(
        self: &Arc<Self>,
        context: Arc<Context>,
        request: Request,
    ) -> impl FnOnce(Guest) -> CallFuture<Prepared> + use<> {
        let (plugin, export, contract) = (self.clone(), self.preprocess, self.contract);
        move |guest| match contract {
            Contract::V0_1 => plugin.call::<Preprocess01>(guest, export, context, request),
            Contract::V0_2 | Contract::V0_3 => {
                plugin.call::<Preprocess>(guest, export, context, request)
            }
        }
    }

    /// The work of a guest in a call of `postprocess`.
    pub(crate) fn postprocess(
        self: &Arc<Self>,
        context: Arc<Context>,
        results: Results,
    ) -> impl FnOnce(Guest) -> CallFuture<Response> + use<> {
        let (plugin, export, contract) = (self.clone(), self.postprocess, self.contract);
        move |guest| match contract {
            Contract::V0_1 => plugin.call::<Postprocess01>(guest, export, context, results),
            Contract::V0_2 | Contract::V0_3 => {
                plugin.call::<Postprocess>(guest, export, context, results)
            }
        }
    }

    /// The work of a guest in a call of `handle`.
    pub(crate) fn handle(
        self: &Arc<Self>,
        context: Arc<Context>,
        request: Request,
    ) -> impl FnOnce(Guest) -> CallFuture<Response> + use<> {
        let (plugin, export) = (self.clone(), self.handle);
        move |guest| plugin.call::<HandleRequest>(guest, export, context, request)
    }

    /// A call of the export `W` of `guest`.
    fn call<W: World>(
        self: Arc<Self>,
        mut guest: Guest,
        export: Option<ComponentExportIndex>,
        context: Arc<Context>,
        request: W::Request,
    ) -> CallFuture<W::Output> {
        Box::pin(async move {
            let outcome = self.call_in::<W>(&mut guest, export, context, request).await;
            guest.store.data_mut().states.end(outcome.is_err());
            (guest, outcome)
        })
    }

    /// Wait for the permits of a call, and give it a guest: one that `placing` has, or a fresh one.
    /// `work` is that of the guest.
    ///
    /// # Errors
    /// [`CallError::TooBusy`] if its request would be answered after its deadline,
    /// [`CallError::Busy`] if its owner has too little memory left.
    pub(crate) async fn begin<'a, T>(
        &'a self,
        work: impl FnOnce(Guest) -> CallFuture<T>,
        placing: Placing<'a>,
    ) -> Result<NewCall<'a, T>, CallError> {
        let Placing { grant, keep, export, half, latest, began, kept } = placing;
        let Grant { limits, account, usage, models, .. } = grant;
        let threads = self.engine.long_calls();
        // What a call may pass beyond the default takes too long to copy on a serving thread.
        let is_long =
            threads.begins(export, account, half) || limits.hostcall_bytes_over_default() > 0;
        let rests = half == Half::First && (keep.rests() || models.is_some());
        let wanted = Wanted { half, is_long, rests, latest };
        let (permits, rest) = self.engine.permits(account, wanted, export.round()).await?;
        if let Some(began) = began {
            let _ = began.set(Instant::now());
        }
        let permits = match (rest, models) {
            (Some(rest), Some(_)) => {
                let held = (permits, rest);
                HeldPermits::Pausable(self.engine.pausable(account, export.round(), held))
            }
            (rest, _) => {
                if let Some(rest) = rest {
                    keep.set_permit(rest);
                }
                HeldPermits::Whole(permits)
            }
        };
        let meter = Arc::new(Meter::new(limits.cpu));
        let stayed = keep.take().and_then(|guest| self.engine.renew(guest, &grant, meter.clone()));
        let fresh = || Guest::new(self.engine.store(grant, meter.clone(), self.has_wasi));
        let mut guest = stayed.unwrap_or_else(fresh);
        guest.store.data_mut().kept = kept;
        let access = models.zip(permits.pausable());
        guest.store.data_mut().models =
            access.map(|(runs, permits)| ModelAccess { runs: runs.clone(), permits });
        let call = work(self.engine.begin(guest, account)?);
        Ok(NewCall {
            call,
            meter,
            usage,
            export,
            account,
            threads,
            begins_long: is_long,
            permits,
            keep,
        })
    }

    async fn call_in<W: World>(
        &self,
        guest: &mut Guest,
        export: Option<ComponentExportIndex>,
        context: Arc<Context>,
        request: W::Request,
    ) -> Result<W::Output, CallError> {
        let index = export.ok_or(CallError::NotExported(W::EXPORT))?;
        let params = W::lower(context, request, guest.store.data_mut())?;
        let outcome = async {
            let function =
                guest.function::<W>(&self.instance, self.first_content.as_ref(), &index).await?;
            let results = function.call_async(&mut guest.store, params).await?;
            // Lifting the results takes CPU time, too.
            guest.store.data().check_cpu()?;
            Ok(results)
        };
        match outcome.await {
            Ok(results) => W::lift(results, guest.store.data_mut()),
            Err(error) => {
                // Its memory is read then, which may take long.
                if guest.knows_functions() {
                    let meter = guest.store.data().meter.clone();
                    meter.off_serving_threads().await;
                }
                let authors = || guest.authors_functions();
                Err(diagnose::trap(&error, guest.store.data(), self.language(), authors))
            }
        }
    }

    /// The idle guests of this plugin in a pipeline whose calls count against `account`.
    pub(crate) fn idle_guests(&self, reuse: &TenantReuse, account: &Account) -> Arc<IdleGuests> {
        self.engine.idle_guests(reuse, account)
    }

    /// The runtime for long calls.
    pub(crate) fn long_calls(&self) -> Handle {
        self.engine.long_calls().handle().clone()
    }
}
