//! Rows of numbers by key, in files: prices, features of products, embeddings.
//!
//! ```no_run
//! # use gristmill_plugin::{tables, Dtype, Failure, Prepared, Request};
//! # fn example(request: &Request) -> Result<Prepared, Failure> {
//! // Neither the keys nor the numbers pass through the plugin.
//! let ids = request.json_tensor("/productIds", &[], Dtype::Int64)?;
//! let features = tables::gather("products.csv", &ids, 16, 0.0)?;
//! # Ok(Prepared::new().input("input", features))
//! # }
//! ```
//!
//! The file is among the assets of the plugin or of its pipeline, under the name that is given
//! here. It is CSV or Parquet, with a column of keys and columns of numbers; or an `.npy` of two
//! dimensions, whose keys are the numbers of its rows, from 0. The host reads it once for each
//! version. Keys are at most 4096 in a call, with at most 1024 bytes each.
//!
//! `?` gives 422 to the client for keys that are over a limit ([`TableError::TooLarge`]), and 500
//! for the other errors, with the text in the log.
//!
//! In tests [`testing::table`](crate::testing::table) stands in for a file.

use crate::Tensor;
use crate::bindings::tables as host;
pub use crate::bindings::tables::{Keys, TableError};

/// The rows of keys, as a float32 tensor of the shape `[keys, width]`: all columns of the file,
/// which must be `width`. Keys are a list of texts, or a tensor of int64 or of strings. The row of
/// a key that the file does not have is filled with `missing`.
///
/// # Errors
/// Why there are no rows. [`TableError::Malformed`] names the line and the column.
pub fn gather<'a>(
    asset: &str,
    keys: impl Into<Keys<'a>>,
    width: usize,
    missing: f32,
) -> Result<Tensor, TableError> {
    let width = u32::try_from(width)
        .map_err(|_| TableError::InvalidArgument(format!("width is {width}: too large")))?;
    host::gather(asset, &keys.into(), &host::Columns::Width(width), missing)
}

/// The same with the columns of these names, in their order.
///
/// # Errors
/// As for [`gather`].
pub fn gather_columns<'a, C: AsRef<str>>(
    asset: &str,
    keys: impl Into<Keys<'a>>,
    columns: &[C],
    missing: f32,
) -> Result<Tensor, TableError> {
    let columns = host::Columns::Named(owned(columns));
    host::gather(asset, &keys.into(), &columns, missing)
}

fn owned<T: AsRef<str>>(texts: &[T]) -> Vec<String> {
    texts.iter().map(|text| text.as_ref().to_owned()).collect()
}

impl<'a> From<&'a Tensor> for Keys<'a> {
    fn from(keys: &'a Tensor) -> Self {
        Self::Tensor(keys)
    }
}

impl<K: AsRef<str>> From<&[K]> for Keys<'_> {
    fn from(keys: &[K]) -> Self {
        Self::List(owned(keys))
    }
}

impl<K: AsRef<str>, const N: usize> From<&[K; N]> for Keys<'_> {
    fn from(keys: &[K; N]) -> Self {
        keys.as_slice().into()
    }
}

impl<K: AsRef<str>> From<&Vec<K>> for Keys<'_> {
    fn from(keys: &Vec<K>) -> Self {
        keys.as_slice().into()
    }
}

impl TableError {
    /// What is wrong, and where.
    pub fn text(&self) -> &str {
        match self {
            Self::NoAsset(text)
            | Self::Malformed(text)
            | Self::TooLarge(text)
            | Self::InvalidArgument(text) => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Failure, testing};

    const COLUMNS: [&str; 2] = ["price", "rating"];

    fn numbers(rows: &Tensor) -> Vec<f32> {
        rows.view::<f32>().unwrap().as_slice().to_vec()
    }

    #[test]
    fn rows_are_gathered_and_missing_ones_filled() {
        let products = testing::table("products.csv", &COLUMNS);
        products.put("7", &[9.5, 4.0]);
        products.put("b", &[2.0, 3.0]);
        let rows = gather("products.csv", &["b", "8", "7"], 2, -1.0).unwrap();
        assert_eq!(rows.dims(), [3, 2]);
        assert_eq!(numbers(&rows), [2.0, 3.0, -1.0, -1.0, 9.5, 4.0]);
        let ids = Tensor::from_slice(&[2], &[7_i64, 8]).unwrap();
        let rows = gather_columns("products.csv", &ids, &["rating"], 0.0).unwrap();
        assert_eq!(numbers(&rows), [4.0, 0.0]);
        let texts = Tensor::from_strings(&[1], &["b"]).unwrap();
        assert_eq!(numbers(&gather("products.csv", &texts, 2, 0.0).unwrap()), [2.0, 3.0]);
    }

    #[test]
    fn faults_are_those_of_the_client_or_of_the_plugin() {
        let refused = gather("products.csv", &["7"], 2, 0.0).unwrap_err();
        assert!(matches!(&refused, TableError::NoAsset(text) if text.contains("testing::table")));
        assert_eq!(Failure::from(refused.clone()), Failure::internal(refused.text()));
        let many = TableError::TooLarge("too many".into());
        assert_eq!(Failure::from(many), Failure::unprocessable("too many"));
        let _products = testing::table("products.csv", &COLUMNS);
        let wrong = gather("products.csv", &["7"], 3, 0.0).unwrap_err();
        assert!(wrong.text().contains("has 2 columns besides the key, but the width is 3"));
        let wrong = gather_columns("products.csv", &["7"], &["stock"], 0.0).unwrap_err();
        assert!(wrong.text().contains("no column \"stock\": its columns are price, rating"));
        let floats = Tensor::from_slice(&[1], &[7.0_f32]).unwrap();
        let wrong = gather("products.csv", &floats, 2, 0.0).unwrap_err();
        assert!(matches!(wrong, TableError::InvalidArgument(_)));
    }
}
