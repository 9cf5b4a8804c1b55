//! Tables in files: what they have, and what is wrong with files that are not tables.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod csv;
mod npy;
mod parquet;

use bytes::Bytes;
use gristmill_tables::{Key, Stopped, Table, TableError, Work};

/// The table that a file is, and the bytes that were reserved for it.
fn reserved(file: impl Into<Vec<u8>>) -> (Result<Table, TableError>, usize) {
    let mut bytes = 0;
    let mut reserve = |more: usize| {
        bytes += more;
        Ok(())
    };
    let mut work = Work { check: &|| Ok(()), reserve: &mut reserve };
    let table = Table::read(Bytes::from(file.into()), &mut work);
    (table, bytes)
}

fn read(file: impl Into<Vec<u8>>) -> Table {
    reserved(file).0.unwrap()
}

/// Why a file is not a table.
fn refused(file: impl Into<Vec<u8>>) -> String {
    reserved(file).0.unwrap_err().to_string()
}

/// The numbers of the row with this key.
fn row(table: &Table, key: Key<'_>) -> Option<Vec<f32>> {
    part(table, key, None, table.width())
}

/// Those of these columns.
fn part(table: &Table, key: Key<'_>, columns: Option<&[usize]>, width: usize) -> Option<Vec<f32>> {
    let row = table.row(key)?;
    let mut bytes = vec![0; width * 4];
    table.copy(row, columns, &mut bytes);
    Some(bytes.as_chunks::<4>().0.iter().map(|number| f32::from_le_bytes(*number)).collect())
}

#[test]
fn work_that_is_stopped_ends() {
    let file = format!("id,a\n{}", (0..20_000).map(|id| format!("{id},1\n")).collect::<String>());
    for stops_after in 0..2 {
        let asked = std::cell::Cell::new(0);
        let check = || {
            asked.set(asked.get() + 1);
            if asked.get() > stops_after { Err(Stopped) } else { Ok(()) }
        };
        let mut work = Work { check: &check, reserve: &mut |_| Ok(()) };
        let stopped = Table::read(Bytes::from(file.clone()), &mut work).unwrap_err();
        assert_eq!(stopped, TableError::Stopped(Stopped));
    }
    // Lines that are blank are work, too.
    let mut work = Work { check: &|| Err(Stopped), reserve: &mut |_| Ok(()) };
    let stopped = Table::read(Bytes::from(vec![b'\n'; 100_000]), &mut work).unwrap_err();
    assert_eq!(stopped, TableError::Stopped(Stopped));
    let mut work = Work { check: &|| Ok(()), reserve: &mut |_| Err(Stopped) };
    let stopped = Table::read(Bytes::from(file), &mut work).unwrap_err();
    assert_eq!(stopped, TableError::Stopped(Stopped));
}
