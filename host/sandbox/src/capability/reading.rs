//! Reading a file among the assets as a tokenizer or a table: once for each version and tenant, off
//! the serving threads.
//!
//! What comes of it counts as memory of the tenant as long as the tenant has the file. The time for
//! it is the call's, besides its own budget, because a read that was stopped begins anew.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Handle;

use crate::assets::{FileForm, FileForms, Parsed};
use crate::call::CallState;
use crate::limiter::Limited;
use crate::meter::CpuExhausted;

/// A form that files are read as.
pub(super) trait Form: Sized + Send + Sync + 'static {
    /// Why a file does not have the form.
    type Error: Clone + Send + Sync + 'static;

    /// Where the files of an owner keep it.
    fn of(forms: &FileForms) -> &FileForm<Self, Self::Error>;

    /// The CPU time for reading, besides the call's own: so many bytes of a file, and of the memory
    /// that is taken for it.
    fn reading_cpu(bytes: usize) -> Duration;

    /// Read a file.
    ///
    /// # Errors
    /// None if the work was stopped.
    fn from_file(file: &Bytes, work: Reading<'_>) -> Result<Self, Option<Self::Error>>;

    /// The memory that it takes besides the file.
    fn memory_bytes(&self) -> usize;
}

/// What the work of reading asks and tells.
pub(super) struct Reading<'a> {
    /// Whether the work may go on.
    pub(super) may_go_on: &'a (dyn Fn() -> bool + Sync),
    /// Counts so many bytes more before they are taken. False if the owner has too little left.
    pub(super) reserve: &'a mut dyn FnMut(usize) -> bool,
}

/// A form, or why the file does not have it.
type Read<F> = Result<Arc<Parsed<F>>, <F as Form>::Error>;

impl<S: Send> CallState<S> {
    /// The file in this form. The owner's first call that asks reads the file; the owner's other
    /// calls wait for it.
    pub(super) async fn read_as<F: Form>(&mut self, file: &FileForms) -> wasmtime::Result<Read<F>> {
        if let Some(read) = F::of(file).get() {
            return Ok(read.clone());
        }
        // First, so that no call waits for the file behind one that waits for a thread.
        self.meter.off_serving_threads().await;
        let reading = async { self.read_now::<F>(file) };
        let read = F::of(file).get_or_try_init(|| reading).await?.clone();
        self.check_cpu()?;
        Ok(read)
    }

    fn read_now<F: Form>(&mut self, file: &FileForms) -> wasmtime::Result<Read<F>> {
        let held = match &file.owner {
            Some(owner) => owner.hold(0),
            None => self.limiter.held().beside(),
        };
        let meter = self.meter.clone();
        let before = meter.used();
        // A file can say more than it has: long runs of a number take time by their memory.
        let allowed = || F::reading_cpu(file.bytes.len() + held.bytes());
        let may_go_on = || meter.check_until(before + allowed()).is_ok();
        let mut refused = None;
        let mut reserve = |bytes: usize| match held.try_add(bytes) {
            Ok(()) => true,
            Err(error) => {
                refused = Some(error);
                false
            }
        };
        let work = Reading { may_go_on: &may_go_on, reserve: &mut reserve };
        let read = F::from_file(&file.bytes, work);
        if let Some(error) = refused {
            return Err(Limited::Owner(error).into());
        }
        let read = match read {
            Ok(form) => {
                held.give_back(held.bytes().saturating_sub(form.memory_bytes()));
                // The file is read on the threads for long calls.
                Ok(Arc::new(Parsed::new(form, held, Handle::current())))
            }
            Err(Some(error)) => Err(error),
            Err(None) => return Err(CpuExhausted.into()),
        };
        // Once for each file, because what came of it is kept.
        meter.raise_limit(meter.limit() + meter.used().saturating_sub(before));
        Ok(read)
    }
}
