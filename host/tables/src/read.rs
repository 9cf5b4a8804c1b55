//! Reading a file of any format.

use bytes::Bytes;

use crate::error::{TableError, Work};
use crate::table::Table;
use crate::{csv, npy, parquet};

/// Maximum bytes of a file.
const FILE_BYTES_MAX: usize = 1 << 30;

impl Table {
    /// The table that this file is: an `.npy` or Parquet if it begins as one, otherwise CSV.
    ///
    /// # Errors
    /// It is not a table, is over a limit, or the work was stopped.
    pub fn read(file: Bytes, work: &mut Work<'_>) -> Result<Self, TableError> {
        if file.len() > FILE_BYTES_MAX {
            let bytes = file.len();
            return Err(TableError::Malformed(format!(
                "it has {bytes} bytes; a table has at most {FILE_BYTES_MAX}"
            )));
        }
        match file {
            file if npy::is_npy(&file) => npy::read(file),
            file if parquet::is_parquet(&file) => parquet::read(&file, work),
            file => csv::read(file, work),
        }
    }
}
