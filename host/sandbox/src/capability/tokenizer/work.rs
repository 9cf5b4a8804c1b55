//! How the work is done: reading a file, and encoding texts one after the other, on the right
//! threads and with counted memory.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gristmill_text::{EncodeOptions, Encoded, Stopped, TextError, Tokenizer, Work};

use super::terms::file_error;
use super::texts::Ids;
use super::{CapabilityState, HostResult, wit};
use crate::assets::{FileForm, FileForms, Parsed};
use crate::call::CallState;
use crate::capability::reading::{Form, Reading};
use crate::limiter::Limited;
use crate::meter::CpuExhausted;

/// Maximum bytes of texts, and ids, that are worked on on a serving thread. A token has at most a
/// kilobyte.
const INLINE_TEXT_BYTES: usize = 2 << 10;
const INLINE_IDS: usize = 512;

/// The most that a search with an expression may cost on a serving thread: about a millisecond. The
/// one of GPT-4o costs less on [`INLINE_TEXT_BYTES`].
const INLINE_SEARCH_COST: usize = 256 << 10;

/// The longest work of a function on a serving thread, as far as the steps are shorter.
const INLINE_CPU_MAX: Duration = Duration::from_millis(2);

/// A tokenizer that takes longer than this on a serving thread gets there no more.
const SLOW: Duration = Duration::from_millis(10);

/// The CPU time for reading a file, besides the call's own: 64 MiB take about as long. With less, a
/// large file could never be read, because a read that was stopped begins anew.
const READING_CPU: Duration = Duration::from_secs(3);

/// What was done, or an error for the guest.
type Done<T> = wasmtime::Result<Result<T, TextError>>;

impl Form for Tokenizer {
    type Error = TextError;

    fn of(forms: &FileForms) -> &FileForm<Self, TextError> {
        &forms.tokenizer
    }

    fn reading_cpu(_: usize) -> Duration {
        READING_CPU
    }

    fn from_file(file: &Bytes, work: Reading<'_>) -> Result<Self, Option<TextError>> {
        let Reading { may_go_on, reserve } = work;
        let go_on = |may: bool| if may { Ok(()) } else { Err(Stopped) };
        let check = || go_on(may_go_on());
        let mut reserve = |bytes: usize| go_on(reserve(bytes));
        let mut work = Work { check: &check, search_cost_max: usize::MAX, reserve: &mut reserve };
        Self::read(file, &mut work).map_err(|error| match error {
            TextError::Stopped(_) => None,
            error => Some(error),
        })
    }

    fn memory_bytes(&self) -> usize {
        self.bytes()
    }
}

impl<S: AsMut<CapabilityState> + Send> CallState<S> {
    /// The tokenizer of this asset.
    pub(super) async fn tokenizer(&mut self, asset: &str) -> HostResult<Arc<Parsed<Tokenizer>>> {
        self.meter.take_turns().await?;
        let Some(file) = self.states.as_mut().files().forms(asset).cloned() else {
            return Ok(Err(wit::TokenizerError::NoAsset(format!(
                "there is no asset {asset:?}: name it in `assets` of the pipeline, or add it to \
                 the plugin"
            ))));
        };
        let read = self.read_as::<Tokenizer>(&file).await?;
        Ok(read.map_err(|error| file_error(asset, &error)))
    }

    /// The tokens of texts and their pairs. They are counted.
    pub(super) async fn encoded(
        &mut self,
        tokenizer: &Tokenizer,
        texts: &[&str],
        pairs: Option<&[&str]>,
        options: &EncodeOptions,
    ) -> Done<Vec<Encoded>> {
        let bytes: usize =
            texts.iter().chain(pairs.unwrap_or_default()).map(|text| text.len()).sum();
        self.before_work(tokenizer, bytes > INLINE_TEXT_BYTES).await;
        let until = self.meter.used() + INLINE_CPU_MAX;
        let mut rows: Vec<Encoded> = Vec::with_capacity(texts.len());
        for (at, text) in texts.iter().enumerate() {
            let pair = pairs.and_then(|pairs| pairs.get(at).copied());
            let encode = |work: &mut Work<'_>| tokenizer.encode(text, pair, options, work);
            match self.done(tokenizer, until, encode, Encoded::bytes).await? {
                Ok(row) => rows.push(row),
                Err(error) => {
                    self.give_back(rows.iter().map(Encoded::bytes).sum());
                    return Ok(Err(error));
                }
            }
        }
        Ok(Ok(rows))
    }

    /// The texts of rows of ids.
    pub(super) async fn decoded_texts(
        &mut self,
        tokenizer: &Tokenizer,
        ids: &Ids,
        skip_special_tokens: bool,
    ) -> Done<Vec<String>> {
        self.before_work(tokenizer, ids.len() > INLINE_IDS).await;
        let until = self.meter.used() + INLINE_CPU_MAX;
        let mut texts = Vec::with_capacity(ids.rows().len());
        for row in ids.rows() {
            let decode = |work: &mut Work<'_>| tokenizer.decode(row, skip_special_tokens, work);
            match self.done(tokenizer, until, decode, String::len).await? {
                Ok(text) => {
                    self.before_copying(text.len()).await?;
                    self.give_back(text.len());
                    texts.push(text);
                }
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Ok(texts))
    }

    /// Large work, and that of a slow tokenizer, leaves the serving threads.
    async fn before_work(&mut self, tokenizer: &Tokenizer, is_large: bool) {
        if is_large || tokenizer.is_slow() {
            self.meter.off_serving_threads().await;
        }
    }

    /// Do `work` on one text of several. If those before it took long on a serving thread, or it
    /// does, it is done on another one, from its begin. `until` is the CPU time of the call then.
    /// The bytes of what was done, which `size` tells, stay counted.
    async fn done<T>(
        &mut self,
        tokenizer: &Tokenizer,
        until: Duration,
        work: impl Fn(&mut Work<'_>) -> Result<T, TextError> + Send,
        size: fn(&T) -> usize,
    ) -> Done<T> {
        self.meter.take_turns().await?;
        if !self.meter.is_long() && self.meter.used() > until {
            self.meter.off_serving_threads().await;
        }
        let (is_serving, before) = (!self.meter.is_long(), self.meter.used());
        let done = self.attempt(until, &work, size)?;
        if is_serving && self.meter.used().saturating_sub(before) > SLOW {
            tokenizer.set_slow();
        }
        let done = match done {
            Err(TextError::Stopped(_)) if is_serving && self.may_go_on().is_ok() => {
                self.meter.off_serving_threads().await;
                self.attempt(until, &work, size)?
            }
            done => done,
        };
        match done {
            Err(TextError::Stopped(_)) => Err(CpuExhausted.into()),
            done => Ok(done),
        }
    }

    fn attempt<T>(
        &mut self,
        until: Duration,
        work: impl FnOnce(&mut Work<'_>) -> Result<T, TextError>,
        size: fn(&T) -> usize,
    ) -> Result<Result<T, TextError>, Limited> {
        let meter = self.meter.clone();
        let check = || {
            let is_late = !meter.is_long() && meter.used() > until;
            if is_late || meter.check().is_err() { Err(Stopped) } else { Ok(()) }
        };
        let (mut held, mut refused) = (0, None);
        let mut reserve = |bytes: usize| match self.hold(bytes) {
            Ok(()) => {
                held += bytes;
                Ok(())
            }
            Err(limited) => {
                refused = Some(limited);
                Err(Stopped)
            }
        };
        let search_cost_max = if meter.is_long() { usize::MAX } else { INLINE_SEARCH_COST };
        let done = work(&mut Work { check: &check, search_cost_max, reserve: &mut reserve });
        let bytes = done.as_ref().map_or(0, size);
        self.hold(bytes.saturating_sub(held))?;
        self.give_back(held.saturating_sub(bytes));
        refused.map_or(Ok(done), Err)
    }
}
