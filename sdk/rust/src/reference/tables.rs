//! `tables`: files are maps that the thread's test has made.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use super::tensors::{Dtype, Tensor};

#[derive(Clone, Debug, PartialEq)]
pub enum TableError {
    NoAsset(String),
    Malformed(String),
    TooLarge(String),
    InvalidArgument(String),
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for TableError {}

#[derive(Clone, Debug)]
pub enum Keys<'a> {
    List(Vec<String>),
    Tensor(&'a Tensor),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Columns {
    Width(u32),
    Named(Vec<String>),
}

/// The rows of a file.
pub(crate) struct Table {
    pub(crate) name: String,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: RefCell<BTreeMap<String, Vec<f32>>>,
}

thread_local! {
    /// The tables, in the order in which they were made.
    static TABLES: RefCell<Vec<Rc<Table>>> = const { RefCell::new(Vec::new()) };
}

/// Let this thread's calls find the table, until [`remove`].
pub(crate) fn register(table: Rc<Table>) {
    TABLES.with_borrow_mut(|tables| tables.push(table));
}

pub(crate) fn remove(table: &Rc<Table>) {
    TABLES.with_borrow_mut(|tables| tables.retain(|other| !Rc::ptr_eq(other, table)));
}

pub fn gather(
    asset: &str,
    keys: &Keys<'_>,
    columns: &Columns,
    missing: f32,
) -> Result<Tensor, TableError> {
    let table = find(asset)?;
    let places = places(&table, columns)?;
    let keys = list(keys)?;
    let rows = table.rows.borrow();
    let mut bytes = Vec::with_capacity(keys.len() * places.len() * size_of::<f32>());
    for key in &keys {
        let row = rows.get(key);
        for place in &places {
            bytes.extend(row.map_or(missing, |row| row[*place]).to_le_bytes());
        }
    }
    let shape = [keys.len() as u32, places.len() as u32];
    let tensor = Tensor::create(Dtype::Float32, &shape, &bytes);
    tensor.map_err(|error| TableError::InvalidArgument(error.to_string()))
}

/// The places of the columns in a row.
fn places(table: &Table, columns: &Columns) -> Result<Vec<usize>, TableError> {
    let (name, has) = (&table.name, table.columns.len());
    match columns {
        Columns::Width(width) if *width as usize == has => Ok((0..has).collect()),
        Columns::Width(width) => Err(TableError::InvalidArgument(format!(
            "asset {name:?}: it has {has} columns besides the key, but the width is {width}"
        ))),
        Columns::Named(names) => {
            let place = |column: &String| {
                let place = table.columns.iter().position(|other| other == column);
                place.ok_or_else(|| {
                    let mut known = table.columns.clone();
                    known.sort();
                    TableError::InvalidArgument(format!(
                        "asset {name:?}: it has no column {column:?}: its columns are {}",
                        known.join(", ")
                    ))
                })
            };
            names.iter().map(place).collect()
        }
    }
}

fn list(keys: &Keys<'_>) -> Result<Vec<String>, TableError> {
    let tensor = match keys {
        Keys::List(keys) => return Ok(keys.clone()),
        Keys::Tensor(tensor) => tensor,
    };
    keys_of(tensor).ok_or_else(|| {
        let why = "keys must be a tensor of int64 or strings of one dimension";
        TableError::InvalidArgument(why.into())
    })
}

/// The elements of a tensor of int64 or strings of one dimension, as texts.
pub(super) fn keys_of(tensor: &Tensor) -> Option<Vec<String>> {
    if tensor.shape().len() != 1 {
        return None;
    }
    if tensor.dtype() == Dtype::Int64 {
        let data = tensor.data();
        let numbers = data.as_chunks::<8>().0.iter();
        return Some(numbers.map(|number| i64::from_le_bytes(*number).to_string()).collect());
    }
    tensor.strings().ok()
}

/// The table of this name, the one that was made last.
fn find(name: &str) -> Result<Rc<Table>, TableError> {
    let found = TABLES
        .with_borrow(|tables| tables.iter().rev().find(|table| table.name == name).map(Rc::clone));
    found.ok_or_else(|| {
        TableError::NoAsset(format!(
            "this test has no table {name:?}: make one with testing::table({name:?}, ..)"
        ))
    })
}
