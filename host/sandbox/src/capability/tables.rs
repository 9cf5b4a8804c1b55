//! `tables`: rows of numbers by key, in files among the call's assets.
//!
//! A file is read once for each version and tenant (`reading`). Then a call finds rows in memory:
//! it waits for nothing, and copies them into a tensor that was counted before.

mod bindings;
mod keys;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gristmill_core::{Dtype, Tensor};
use gristmill_tables::{Key, Stopped, Table, TableError, Work};
use wasmtime::component::{HasSelf, Linker, Resource};

pub use self::bindings::wit;
use self::keys::Source;
use super::assets::CapabilityState;
use super::reading::{Form, Reading};
use super::tensors::text_of;
use crate::assets::{FileForm, FileForms, Parsed};
use crate::call::CallState;

/// The interface that it links.
pub(crate) const INTERFACES: &[&str] = &["gristmill:plugin/tables@0.3.0"];

/// The bytes of a number of a row.
const ELEMENT_BYTES: usize = size_of::<f32>();

/// Maximum columns that a call names.
const NAMES_MAX: usize = 4096;

/// How many rows are copied between two checks.
const BETWEEN_CHECKS: usize = 64;

/// The CPU time for reading a file, besides the call's, and for each MiB of it and its memory.
const READING_CPU: Duration = Duration::from_secs(1);
const READING_CPU_PER_MIB: Duration = Duration::from_millis(50);

pub(crate) fn link<S: AsMut<CapabilityState> + Send + 'static>(
    linker: &mut Linker<CallState<S>>,
) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<_>>(linker, |state| state)
}

type HostResult<T> = wasmtime::Result<Result<T, wit::TableError>>;

impl<S: AsMut<CapabilityState> + Send> wit::Host for CallState<S> {
    async fn gather(
        &mut self,
        asset: String,
        keys: wit::Keys,
        columns: wit::Columns,
        missing: f32,
    ) -> HostResult<Resource<Tensor>> {
        let source = match keys {
            wit::Keys::List(keys) => Source::List(keys),
            wit::Keys::Tensor(keys) => Source::Tensor(self.table.get(&keys)?.clone()),
        };
        self.before_looking_at(source.work() + work_of(&columns)).await?;
        let keys = or_tell!(source.keys());
        let parsed = or_tell!(self.table_of(&asset).await?);
        let chosen = chosen_columns(parsed.form(), columns);
        let chosen = or_tell!(chosen.map_err(|error| error_of(&asset, error)));
        let rows = Rows { table: parsed.form(), keys, chosen, missing };
        let bytes = rows.keys.len().saturating_mul(rows.row_bytes());
        let reserved = self.reserve_tensor(2, bytes).await?;
        or_tell!(reserved.map_err(|error| wit::TableError::TooLarge(text_of(error))));
        let buffer = self.pool.try_fill(bytes, |target| rows.copy(target, || self.may_go_on()))?;
        let shape = [rows.keys.len(), rows.width()].as_slice().into();
        let tensor = self.table.push(Tensor::new(Dtype::Float32, shape, buffer)?)?;
        self.check_cpu()?;
        Ok(Ok(tensor))
    }
}

/// The rows that a tensor is made of.
struct Rows<'a> {
    table: &'a Table,
    keys: Vec<Key<'a>>,
    /// The places of the columns. None: all of them.
    chosen: Option<Vec<usize>>,
    missing: f32,
}

impl Rows<'_> {
    fn width(&self) -> usize {
        self.chosen.as_ref().map_or(self.table.width(), Vec::len)
    }

    fn row_bytes(&self) -> usize {
        self.width() * ELEMENT_BYTES
    }

    /// Write all rows, as far as `go_on` allows.
    fn copy<E>(&self, target: &mut [u8], go_on: impl Fn() -> Result<(), E>) -> Result<(), E> {
        let missing = self.missing.to_le_bytes();
        let rows = target.chunks_exact_mut(self.row_bytes());
        for (at, (row, key)) in rows.zip(&self.keys).enumerate() {
            if at % BETWEEN_CHECKS == 0 {
                go_on()?;
            }
            match self.table.row(*key) {
                Some(found) => self.table.copy(found, self.chosen.as_deref(), row),
                None => row
                    .chunks_exact_mut(ELEMENT_BYTES)
                    .for_each(|element| element.copy_from_slice(&missing)),
            }
        }
        Ok(())
    }
}

impl<S: AsMut<CapabilityState> + Send> CallState<S> {
    /// The table that this asset is.
    async fn table_of(&mut self, asset: &str) -> HostResult<Arc<Parsed<Table>>> {
        let assets = self.states.as_mut().files();
        let Some(file) = assets.forms(asset).cloned() else {
            return Ok(Err(wit::TableError::NoAsset(assets.not_found(asset))));
        };
        let read = self.read_as::<Table>(&file).await?;
        Ok(read.map_err(|error| error_of(asset, error)))
    }
}

impl Form for Table {
    type Error = TableError;

    fn of(forms: &FileForms) -> &FileForm<Self, TableError> {
        &forms.table
    }

    fn reading_cpu(bytes: usize) -> Duration {
        READING_CPU + READING_CPU_PER_MIB * (bytes >> 20) as u32
    }

    fn from_file(file: &Bytes, work: Reading<'_>) -> Result<Self, Option<TableError>> {
        let Reading { may_go_on, reserve } = work;
        let go_on = |may: bool| if may { Ok(()) } else { Err(Stopped) };
        let check = || go_on(may_go_on());
        let mut reserve = |bytes: usize| go_on(reserve(bytes));
        let mut work = Work { check: &check, reserve: &mut reserve };
        Self::read(file.clone(), &mut work).map_err(|error| match error {
            TableError::Stopped(_) => None,
            error => Some(error),
        })
    }

    fn memory_bytes(&self) -> usize {
        self.bytes()
    }
}

/// The work of looking up the names of columns, as bytes that are read.
fn work_of(columns: &wit::Columns) -> usize {
    match columns {
        wit::Columns::Width(_) => 0,
        wit::Columns::Named(names) => names.iter().map(String::len).sum(),
    }
}

/// The places of the columns that are asked for. None: all of them.
fn chosen_columns(table: &Table, columns: wit::Columns) -> Result<Option<Vec<usize>>, TableError> {
    let invalid = |why: String| Err(TableError::InvalidArgument(why));
    match columns {
        wit::Columns::Width(width) if width as usize == table.width() => Ok(None),
        wit::Columns::Width(width) => {
            let has = table.width();
            invalid(format!("it has {has} columns besides the key, but the width is {width}"))
        }
        wit::Columns::Named(names) if !(1..=NAMES_MAX).contains(&names.len()) => {
            let count = names.len();
            invalid(format!("{count} columns are named: must be 1 to {NAMES_MAX}"))
        }
        wit::Columns::Named(names) => table.columns(&names).map(Some),
    }
}

/// The error for the guest.
fn error_of(asset: &str, error: TableError) -> wit::TableError {
    let why = format!("asset {asset:?}: {error}");
    match error {
        TableError::InvalidArgument(_) => wit::TableError::InvalidArgument(why),
        // What was stopped ends the guest instead.
        TableError::Malformed(_) | TableError::Stopped(_) => wit::TableError::Malformed(why),
    }
}
