//! Deeds with tables in files. One of them is not hostile: it does what the query names and answers
//! with what it got.

use std::hint::black_box;

use gristmill_plugin::tables::{self, TableError};
use gristmill_plugin::{Dtype, Failure, Prepared, Request, Tensor};

use crate::{Deed, harmless, pictures};

pub(crate) const DEEDS: &[(&str, Deed)] =
    &[("table", asked), ("table-for-ever", |_| for_ever()), ("table-keys", |_| many_keys())];

/// Not hostile: the rows of `keys` (comma between) of the query's `asset`, with all columns, which
/// are `width`, or with `columns` (comma between). If the body is a list of integers, the host
/// reads the keys from there. Answers with the outcome as text.
fn asked(request: &Request) -> Result<Prepared, Failure> {
    let value = |name: &str| request.query_value(name).unwrap_or_default();
    let (asset, keys, columns) = (value("asset"), value("keys"), value("columns"));
    let keys: Vec<_> = keys.split(',').collect();
    let rows = if !columns.is_empty() {
        let columns: Vec<_> = columns.split(',').collect();
        tables::gather_columns(&asset, &keys, &columns, -1.0)
    } else if request.body().len() > 0 {
        let keys = request.json_tensor("", &[], Dtype::Int64)?;
        tables::gather(&asset, &keys, value("width").parse()?, -1.0)
    } else {
        tables::gather(&asset, &keys, value("width").parse()?, -1.0)
    };
    let text = match rows {
        Ok(rows) => format!("{:?} {:?}", rows.dims(), rows.view::<f32>()?.as_slice()),
        Err(error) => {
            let kind = match error {
                TableError::NoAsset(_) => "no-asset",
                TableError::Malformed(_) => "malformed",
                TableError::TooLarge(_) => "too-large",
                TableError::InvalidArgument(_) => "invalid-argument",
            };
            format!("{kind}: {}", error.text())
        }
    };
    let mut prepared = harmless()?;
    prepared.state = [pictures::PIXELS, text.as_bytes()].concat();
    Ok(prepared)
}

/// Asks for rows of a file that it does not have, without end.
fn for_ever() -> ! {
    loop {
        let _ = black_box(tables::gather("secrets.csv", &["k"], 1, 0.0));
    }
}

/// Asks for more keys than a call may have, as texts and as a tensor, and for a longer one.
fn many_keys() -> Result<Prepared, Failure> {
    let million = Tensor::from_slice(&[1_000_000], &vec![7_i64; 1_000_000])?;
    let refused = [
        tables::gather("products.csv", &million, 1, 0.0),
        tables::gather("products.csv", &vec!["k"; 5000], 1, 0.0),
        tables::gather("products.csv", &["k".repeat(2000)], 1, 0.0),
    ];
    if refused.iter().any(|outcome| !matches!(outcome, Err(TableError::TooLarge(_)))) {
        return Err(Failure::internal("the host took the keys"));
    }
    harmless()
}
