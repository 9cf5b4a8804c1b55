//! How the work is done: reading a file once, and encoding texts one after the other, on the right
//! threads and with counted memory.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gristmill_text::{EncodeOptions, Encoded, Stopped, TextError, Tokenizer, Work};

use super::terms::file_error;
use super::{Answer, CapabilityState, wit};
use crate::assets::{KeptTokenizer, ReadTokenizer};
use crate::call::CallState;
use crate::limiter::Limited;
use crate::meter::CpuExhausted;

/// Maximum bytes of texts, and ids, that are worked on on a serving thread.
const INLINE_TEXT_BYTES: usize = 2 << 10;
const INLINE_IDS: usize = 512;

/// The longest work on a serving thread, as far as the steps are shorter.
const INLINE_CPU_MAX: Duration = Duration::from_millis(2);

/// A tokenizer that takes longer than this on a serving thread gets there no more.
const SLOW: Duration = Duration::from_millis(10);

/// The CPU time that a call has besides its own for reading a file: 64 MiB take about as long. With
/// less, a large file could never be read, because a read that was stopped begins anew.
const READING_CPU: Duration = Duration::from_secs(3);

/// What was done, or an error for the guest.
type Done<T> = wasmtime::Result<Result<T, TextError>>;

impl<S: AsMut<CapabilityState> + Send> CallState<S> {
    /// The tokenizer of this asset. The first call that asks reads the file; others wait for it.
    pub(super) async fn tokenizer(&mut self, asset: &str) -> Answer<Arc<KeptTokenizer>> {
        self.meter.take_turns().await?;
        let assets = self.states.as_mut().0.as_ref();
        let Some(file) = assets.and_then(|assets| assets.get(asset)).cloned() else {
            return Ok(Err(wit::TokenizerError::NoAsset(format!(
                "there is no asset {asset:?}: name it in `assets` of the pipeline, or add it to \
                 the plugin"
            ))));
        };
        let read = match file.tokenizer().get() {
            Some(read) => read.clone(),
            None => {
                self.meter.raise_limit(self.limits.cpu + READING_CPU);
                let reading = self.read_tokenizer(file.bytes().clone());
                let read = file.tokenizer().get_or_try_init(|| reading).await?.clone();
                self.check_cpu()?;
                read
            }
        };
        Ok(read.map_err(|error| file_error(asset, &error)))
    }

    async fn read_tokenizer(&mut self, file: Bytes) -> wasmtime::Result<ReadTokenizer> {
        self.meter.off_serving_threads().await;
        let held = self.limiter.held().beside();
        let meter = self.meter.clone();
        let check = || meter.check().map_err(|_| Stopped);
        let mut refused = None;
        let mut reserve = |bytes: usize| {
            held.try_add(bytes).map_err(|error| {
                refused = Some(error);
                Stopped
            })
        };
        let read = Tokenizer::read(&file, &mut Work { check: &check, reserve: &mut reserve });
        if let Some(error) = refused {
            return Err(Limited::Owner(error).into());
        }
        match read {
            Ok(tokenizer) => {
                held.give_back(held.bytes().saturating_sub(tokenizer.bytes()));
                Ok(Ok(Arc::new(KeptTokenizer { tokenizer, _held: held })))
            }
            Err(TextError::Stopped(_)) => Err(CpuExhausted.into()),
            Err(error) => Ok(Err(error)),
        }
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
        let mut rows: Vec<Encoded> = Vec::with_capacity(texts.len());
        for (at, text) in texts.iter().enumerate() {
            let pair = pairs.and_then(|pairs| pairs.get(at).copied());
            let encode = |work: &mut Work<'_>| tokenizer.encode(text, pair, options, work);
            match self.done(tokenizer, encode).await? {
                Ok(row) => {
                    self.hold(row.bytes())?;
                    rows.push(row);
                }
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
        rows: &[Vec<u32>],
        skip_special_tokens: bool,
    ) -> Done<Vec<String>> {
        let ids: usize = rows.iter().map(Vec::len).sum();
        self.before_work(tokenizer, ids > INLINE_IDS).await;
        let mut texts = Vec::with_capacity(rows.len());
        for row in rows {
            let decode = |work: &mut Work<'_>| tokenizer.decode(row, skip_special_tokens, work);
            match self.done(tokenizer, decode).await? {
                Ok(text) => {
                    self.before_copying(text.len()).await?;
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

    /// Do `work` on one text. If it takes long on a serving thread, it is stopped and done again on
    /// another one.
    async fn done<T>(
        &mut self,
        tokenizer: &Tokenizer,
        work: impl Fn(&mut Work<'_>) -> Result<T, TextError> + Send,
    ) -> Done<T> {
        let (is_serving, before) = (!self.meter.is_long(), self.meter.used());
        let done = self.attempt(&work)?;
        if is_serving && self.meter.used().saturating_sub(before) > SLOW {
            tokenizer.set_slow();
        }
        let done = match done {
            Err(TextError::Stopped(_)) if is_serving && self.may_go_on().is_ok() => {
                self.meter.off_serving_threads().await;
                self.attempt(&work)?
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
        work: impl FnOnce(&mut Work<'_>) -> Result<T, TextError>,
    ) -> Result<Result<T, TextError>, Limited> {
        let meter = self.meter.clone();
        let until = (!meter.is_long()).then(|| meter.used() + INLINE_CPU_MAX);
        let check = || {
            let is_late = until.is_some_and(|until| meter.used() > until);
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
        let done = work(&mut Work { check: &check, reserve: &mut reserve });
        self.give_back(held);
        refused.map_or(Ok(done), Err)
    }
}
