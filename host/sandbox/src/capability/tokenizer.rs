//! `tokenizer`: tokens of texts, by a `tokenizer.json` among the call's assets.
//!
//! A file is read once for each version and tenant, off the serving threads, and what comes of it
//! counts as memory of this tenant as long as it has the file. Short texts are encoded on the
//! serving thread for at most two milliseconds, all of a function's together; then the call moves,
//! and goes on with the text that it was at.

mod bindings;
mod rows;
mod terms;
mod texts;
mod work;

use gristmill_core::Tensor;
use wasmtime::component::{HasSelf, Linker, Resource};

pub use self::bindings::wit;
use self::rows::{Grid, Row};
use self::terms::{Plan, error_of, invalid};
use self::texts::{Source, ids_bytes, ids_of};
use super::assets::CapabilityState;
use super::tensors::text_of;
use crate::call::CallState;

/// The interface that it links.
pub(crate) const INTERFACES: &[&str] = &["gristmill:plugin/tokenizer@0.3.0"];

pub(crate) fn link<S: AsMut<CapabilityState> + Send + 'static>(
    linker: &mut Linker<CallState<S>>,
) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<_>>(linker, |state| state)
}

type HostResult<T> = wasmtime::Result<Result<T, wit::TokenizerError>>;

impl<S: AsMut<CapabilityState> + Send> wit::Host for CallState<S> {
    async fn encode(
        &mut self,
        asset: String,
        texts: wit::Texts,
        pairs: Option<wit::Texts>,
        options: wit::Options,
    ) -> HostResult<wit::Encoded> {
        let kept = or_tell!(self.tokenizer(&asset).await?);
        let tokenizer = kept.form();
        let plan = or_tell!(Plan::of(options, tokenizer));
        let texts = self.source(texts)?;
        let pairs = pairs.map(|pairs| self.source(pairs)).transpose()?;
        let bytes = texts.bytes() + pairs.as_ref().map_or(0, Source::bytes);
        self.before_looking_at(bytes).await?;
        let texts = or_tell!(texts.texts("texts"));
        let pairs = or_tell!(pairs.as_ref().map(|pairs| pairs.texts("pairs")).transpose());
        if let Some(pairs) = &pairs
            && pairs.len() != texts.len()
        {
            let why = format!("there are {} texts, but {} pairs", texts.len(), pairs.len());
            return Ok(Err(invalid(why)));
        }
        let encoded = self.encoded(tokenizer, &texts, pairs.as_deref(), &plan.encode).await?;
        let rows = or_tell!(encoded.map_err(error_of));
        let held: usize = rows.iter().map(Row::bytes).sum();
        let encoding = self.encoding(&rows, &plan).await?;
        drop(rows);
        self.give_back(held);
        self.check_cpu()?;
        Ok(encoding)
    }

    async fn decode(
        &mut self,
        asset: String,
        ids: Resource<Tensor>,
        skip_special_tokens: bool,
    ) -> HostResult<Vec<String>> {
        let kept = or_tell!(self.tokenizer(&asset).await?);
        let ids = self.table.get(&ids)?.clone();
        self.before_looking_at(ids.as_bytes().len()).await?;
        let held = ids_bytes(&ids);
        self.hold(held)?;
        let texts = match ids_of(&ids) {
            Ok(ids) => self.decoded_texts(kept.form(), &ids, skip_special_tokens).await?,
            Err(error) => {
                self.give_back(held);
                return Ok(Err(error));
            }
        };
        self.give_back(held);
        self.check_cpu()?;
        Ok(texts.map_err(error_of))
    }

    async fn token_to_id(&mut self, asset: String, token: String) -> HostResult<Option<u32>> {
        let kept = or_tell!(self.tokenizer(&asset).await?);
        self.before_looking_at(token.len()).await?;
        Ok(Ok(kept.form().token_to_id(&token)))
    }
}

impl<S: AsMut<CapabilityState> + Send> CallState<S> {
    /// The texts, with what their handle stands for.
    fn source(&self, texts: wit::Texts) -> wasmtime::Result<Source> {
        Ok(match texts {
            wit::Texts::List(texts) => Source::List(texts),
            wit::Texts::Tensor(tensor) => Source::Tensor(self.table.get(&tensor)?.clone()),
            wit::Texts::Blob(blob) => Source::Blob(self.table.get(&blob)?.clone()),
        })
    }

    /// The tensors of these rows.
    async fn encoding(&mut self, rows: &[Row], plan: &Plan) -> HostResult<wit::Encoded> {
        let lengths: Vec<u32> = rows.iter().map(|row| row.ids.len() as u32).collect();
        let length = or_tell!(plan.length(lengths.iter().copied().max().unwrap_or(0)));
        let grid = Grid { rows, length, pad_left: plan.pad_left, dtype: plan.dtype };
        let one = grid.bytes();
        // A row of offsets is twice as long.
        let with_offsets = plan.encode.offsets.is_some();
        let all =
            if with_offsets { vec![one, one, one, one.saturating_mul(2)] } else { vec![one; 3] };
        for bytes in all {
            let reserved = self.reserve_tensor(3, bytes).await?;
            or_tell!(reserved.map_err(|error| wit::TokenizerError::TooLarge(text_of(error))));
        }
        let (pool, pad_id, type_id) = (&self.pool, plan.pad_id, plan.pad_type_id);
        let ids = grid.tensor(pool, pad_id, |row, at| row.ids[at].into())?;
        self.may_go_on()?;
        let mask = grid.tensor(pool, 0, |_, _| 1)?;
        self.may_go_on()?;
        let types = grid.tensor(pool, type_id, |row, at| row.type_ids[at].into())?;
        self.may_go_on()?;
        let offsets = match with_offsets {
            true => Some(grid.offsets(pool)?),
            false => None,
        };
        Ok(Ok(wit::Encoded {
            ids: self.table.push(ids)?,
            attention_mask: self.table.push(mask)?,
            type_ids: self.table.push(types)?,
            lengths,
            offsets: offsets.map(|offsets| self.table.push(offsets)).transpose()?,
        }))
    }
}
