//! Tables in Parquet: files of pandas, Polars and pyarrow, and such as no program writes.

#[path = "../../../../benches/src/corpus/assets/parquet.rs"]
mod writer;

use bytes::Bytes;
use gristmill_tables::{Key, Stopped, Table, TableError, Work};

use self::writer::{
    BOOLEAN, BYTE_ARRAY, Column, DOUBLE, GZIP, INT32, INT64, SNAPPY, Struct, ZSTD, closed,
    dictionary, element, file, file_with, page,
};
use crate::{read, refused, reserved, row};

/// More than a small file may take.
const MEMORY_MAX: usize = 1 << 20;

/// Of `fixtures/make.py`.
const PANDAS: &[u8] = include_bytes!("../fixtures/pandas.parquet");
const POLARS: &[u8] = include_bytes!("../fixtures/polars.parquet");
/// The same rows in other forms.
const FORMS: [&[u8]; 4] = [
    include_bytes!("../fixtures/snappy.parquet"),
    include_bytes!("../fixtures/spark.parquet"),
    include_bytes!("../fixtures/gzip_v2.parquet"),
    include_bytes!("../fixtures/zstd_pages.parquet"),
];

#[track_caller]
fn has(table: &Table, key: &str, expected: &[f32]) {
    let numbers = row(table, Key::Text(key)).unwrap();
    let is_equal = |(one, other): (&f32, &f32)| one == other || one.is_nan() && other.is_nan();
    assert_eq!(numbers.len(), expected.len());
    assert!(numbers.iter().zip(expected).all(is_equal), "{key}: {numbers:?}");
}

/// What reading comes to if no more than `MEMORY_MAX` can be had.
fn bounded(file: &[u8]) -> Result<Table, TableError> {
    let mut left = MEMORY_MAX;
    let mut reserve = |bytes| {
        left = left.checked_sub(bytes).ok_or(Stopped)?;
        Ok(())
    };
    let mut work = Work { check: &|| Ok(()), reserve: &mut reserve };
    Table::read(Bytes::copy_from_slice(file), &mut work)
}

/// Whole numbers as the cells of a column of INT64.
fn wholes(numbers: &[i64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn texts(texts: &[&[u8]]) -> Vec<u8> {
    let length = |text: &[u8]| (text.len() as u32).to_le_bytes();
    texts.iter().flat_map(|text| [&length(text)[..], text].concat()).collect()
}

fn keys(rows: usize) -> Column {
    let all: Vec<i64> = (0..rows as i64).collect();
    Column::plain("id", INT64, rows, &wholes(&all))
}

fn numbers(rows: usize) -> Column {
    Column::plain("x", INT64, rows, &wholes(&vec![7; rows]))
}

#[test]
fn pandas_index_has_the_keys() {
    let (table, bytes) = reserved(PANDAS);
    let table = table.unwrap();
    assert_eq!((table.rows(), table.width()), (3, 2));
    assert!(table.bytes() <= bytes, "{} > {bytes}", table.bytes());
    has(&table, "7", &[9.5, 4.0]);
    has(&table, "-1", &[f32::NAN, 3.0]);
    assert_eq!(row(&table, Key::Number(1 << 60)), Some(vec![2.0, 5.0]));
    assert_eq!(table.columns(&["rating".to_owned()]), Ok(vec![1]));
    for missing in ["07", "8", "", "7\u{ff}"] {
        assert_eq!(table.row(Key::Text(missing)), None, "{missing:?}");
    }
    // Without an index the first column has them.
    let of = |json: &str| {
        let entry = Struct::default().binary(1, b"pandas").binary(2, json.as_bytes());
        file_with(1, vec![keys(1), numbers(1)], |footer| footer.list(5, 1, vec![entry]))
    };
    let range = "{\"index_columns\": [{\"kind\": \"range\", \"start\": 0}], \"columns\": []}";
    has(&read(of(range)), "0", &[7.0]);
    has(&read(of("{\"index_columns\": [\"x\"]}")), "7", &[0.0]);
    for (json, text) in [
        ("{\"index_columns\": [\"__index_level_0__\"]}", "its pandas index has no name: name it"),
        ("{\"index_columns\": [\"id\", \"x\"]}", "its pandas index has several columns: a table"),
        ("{\"index_columns\": [\"y\"]}", "its pandas index \"y\" is no column: write it anew"),
        ("{", "what pandas wrote about its index is broken: write the file anew"),
    ] {
        let refused = refused(of(json));
        assert!(refused.starts_with(text), "{refused}");
    }
}

#[test]
fn all_kinds_of_numbers_become_float32() {
    let table = read(POLARS);
    assert_eq!((table.rows(), table.width()), (60, 10));
    for at in 0..60_u32 {
        let or_nan = |is_there: bool, number: f32| if is_there { number } else { f32::NAN };
        let expected = [
            (at % 7) as f32 - 3.0,
            (at % 3) as f32 - 300.0,
            or_nan(at % 5 != 0, -(at as f32)),
            2_f32.powi(40),
            255.0 - (at % 2) as f32,
            2_f32.powi(32),
            2_f32.powi(63),
            or_nan(at % 2 == 1, 0.5),
            (at % 4) as f32 / 4.0,
            f32::from(u8::from(at % 3 == 0)),
        ];
        has(&table, &format!("item:{at}"), &expected);
    }
}

#[test]
fn groups_pages_and_compressions_are_read_alike() {
    for form in FORMS {
        let table = read(form);
        assert_eq!((table.rows(), table.width()), (7, 3));
        has(&table, "a,b", &[1.0, f32::NAN, 1.0]);
        has(&table, "say \"c\"", &[2.0, f32::NAN, 0.0]);
        has(&table, "ünï", &[f32::NAN, f32::NAN, f32::NAN]);
        has(&table, "g", &[4.0, f32::NAN, 0.0]);
        assert_eq!(table.row(Key::Text("a")), None);
    }
}

#[test]
fn plain_cells_and_large_keys() {
    let unsigned = Struct::default().int(1, 64).bool(2, false);
    let element = element("id", INT64).nested(10, Struct::default().nested(10, unsigned));
    let id = Column { element, ..Column::plain("id", INT64, 2, &wholes(&[-1, 0])) };
    let doubles = [1e30_f64.to_le_bytes(), (-0.25_f64).to_le_bytes()].concat();
    let is = Column::plain("is", BOOLEAN, 2, &[0b10]);
    let table = read(file(2, vec![id, Column::plain("x", DOUBLE, 2, &doubles), is]));
    has(&table, "18446744073709551615", &[1e30, 0.0]);
    has(&table, "0", &[-0.25, 1.0]);
    assert_eq!(read(file(0, vec![keys(0), numbers(0)])).rows(), 0);
}

#[test]
fn what_writers_have_for_nothing_is_read() {
    // fastparquet has lists of no type; pyarrow has its data at 0 if there are no rows.
    let untyped = file_with(1, vec![keys(1), numbers(1)], |footer| footer.nothing(9));
    has(&read(untyped), "0", &[7.0]);
    let chunk =
        || Struct::default().nested(3, Struct::default().int(4, 0).int(7, 0).int(9, 0).int(11, 4));
    let group = Struct::default().list(1, 2, vec![chunk(), chunk()]).int(3, 0);
    let row = Struct::default().binary(4, b"schema").int(5, 2);
    let schema = vec![row, element("id", INT64), element("x", INT64)];
    let footer = Struct::default().int(1, 1).list(2, 3, schema).list(4, 1, vec![group]);
    assert_eq!(read(closed(b"PAR1".to_vec(), footer)).rows(), 0);
}

#[test]
fn columns_that_are_no_numbers_are_named() {
    let of = |element: Struct| file(1, vec![keys(1), Column::of(element)]);
    let logical = |id: u8| {
        let union = Struct::default().nested(id, Struct::default());
        element("c", INT64).nested(10, union)
    };
    let repeated = Struct::default().int(1, INT64).int(3, 2).binary(4, b"c");
    for (element, what) in [
        (element("c", INT64).int(6, 5), "decimals"),
        (logical(5), "decimals"),
        (element("c", INT32).int(6, 6), "dates"),
        (logical(6), "dates"),
        (element("c", INT32).int(6, 7), "times"),
        (logical(8), "timestamps"),
        (element("c", 3), "timestamps"),
        (element("c", 7), "bytes of a fixed length"),
        (element("c", 7).nested(10, Struct::default().nested(15, Struct::default())), "float16"),
        (logical(11), "nothing but nulls"),
        (logical(16), "cells of an unsupported type"),
        (element("c", 8), "cells of an unknown type"),
        (repeated, "lists or structures"),
        (Struct::default().binary(4, b"c").int(5, 1), "lists or structures"),
    ] {
        let expected =
            format!("column \"c\" has {what}: a table has numbers besides its keys; cast");
        let refused = refused(of(element));
        assert!(refused.starts_with(&expected), "{refused}");
    }
    let name = || Column::plain("name", BYTE_ARRAY, 1, &texts(&[b"chair"]));
    let text = "column \"name\" has texts: a table has numbers besides its keys, which are the";
    assert!(refused(file(1, vec![keys(1), name()])).starts_with(text));
    let price = || Column::plain("price", DOUBLE, 1, &[0; 8]);
    let text = "column \"price\" is the key, because it is the first or pandas' index, but has";
    assert!(refused(file(1, vec![price(), keys(1)])).starts_with(text));
    assert_eq!(
        refused(file(1, vec![keys(1), numbers(1), numbers(1)])),
        "two columns are named \"x\""
    );
    for columns in [vec![], vec![keys(1)]] {
        let (count, refused) = (columns.len(), refused(file(1, columns)));
        let text = format!("it has {count} columns: a table has one of keys, and 1 to 16384 of");
        assert!(refused.starts_with(&text), "{refused}");
    }
}

#[test]
fn cells_that_are_wrong_are_named_with_their_row() {
    let of = |cells: &[&[u8]]| {
        let id = Column::plain("id", BYTE_ARRAY, cells.len(), &texts(cells));
        file(cells.len(), vec![id, numbers(cells.len())])
    };
    let nulls = {
        let element = Struct::default().int(1, INT64).int(3, 1).binary(4, b"id");
        // A run of one 0.
        let pages = page(1, 0, &[2, 0, 0, 0, 2, 0], 6);
        file(1, vec![Column { element, codec: 0, pages }, numbers(1)])
    };
    let doubles = [0_f64, 1e39].map(f64::to_le_bytes).concat();
    let infinite = file(2, vec![keys(2), Column::plain("x", DOUBLE, 2, &doubles)]);
    let coded = |codec| {
        let id = Column { codec, ..keys(1) };
        file(1, vec![id, numbers(1)])
    };
    let encoded = |encoding| {
        let id = Column { pages: page(1, encoding, &[0; 8], 8), ..keys(1) };
        file(1, vec![id, numbers(1)])
    };
    for (file, text) in [
        (of(&[b"a", b""]), "column \"id\" has a key of 0 bytes in row 1: must be 1 to 1024"),
        (of(&[&[b'k'; 1025]]), "column \"id\" has a key of 1025 bytes in row 0"),
        (of(&[b"\xff"]), "column \"id\" has a key that is not UTF-8, in row 0"),
        (
            of(&[b"a", b"b", b"a"]),
            "column \"id\" has the key \"a\" in row 2, and in an earlier one",
        ),
        (nulls, "column \"id\" has no key in row 0"),
        (infinite, "column \"x\" has a number that is infinite, or over the range of float32, in"),
        (coded(4), "column \"id\" is compressed with brotli: write the file with compression=\"sn"),
        (coded(7), "column \"id\" is compressed with lz4"),
        (coded(9), "column \"id\" is compressed with an unknown codec"),
        (encoded(5), "column \"id\" is encoded as DELTA_BINARY_PACKED: write the file with the"),
        (encoded(9), "column \"id\" is encoded as BYTE_STREAM_SPLIT"),
        (encoded(3), "column \"id\" is broken: write the file anew"),
    ] {
        let refused = refused(file);
        assert!(refused.starts_with(text), "{refused}");
    }
}

/// Refused, or stopped, before memory is taken that the file only claims.
#[test]
fn claims_take_no_memory() {
    let with_pages =
        |codec, pages: Vec<u8>| file(1, vec![Column { codec, pages, ..keys(1) }, numbers(1)]);
    let broken = "column \"id\" is broken: write the file anew";
    let footer = "its Parquet footer is broken, encrypted, or of a file that is in several parts";
    // Eight bytes of zeros, where the head of the page says four.
    let long = [8, 28, 0, 0, 0, 0, 0, 0, 0, 0];
    // A frame whose window has 2 TiB.
    let window = [0x28, 0xb5, 0x2f, 0xfd, 0, 0xf8, 1, 0, 0];
    let named = [dictionary(1 << 30, &[0; 8]), page(1, 8, &[1, 2, 0], 3)].concat();
    let outside = {
        let head = || Struct::default().int(3, 0);
        let place = Struct::default().int(4, 0).int(7, 1 << 30).int(9, 4);
        let chunk = || Struct::default().nested(3, Struct::default().int(4, 0).int(7, 0).int(9, 4));
        let group = Struct::default()
            .list(1, 2, vec![Struct::default().nested(3, place), chunk()])
            .int(3, 1);
        let schema =
            vec![head().binary(4, b"schema").int(5, 2), element("id", INT64), element("x", INT64)];
        let footer = Struct::default().int(1, 1).list(2, 3, schema).list(4, 1, vec![group]);
        closed(b"PAR1".to_vec(), footer)
    };
    let lists = |schema: usize, groups: usize| {
        let row = Struct::default().binary(4, b"schema").int(5, 2);
        let schema_of = vec![row, element("id", INT64), element("x", INT64)];
        let footer = Struct::default().int(1, 1).list(2, schema, schema_of);
        closed(b"PAR1".to_vec(), footer.list(4, groups, vec![]))
    };
    let deep = (0..100).fold(Struct::default(), |within, _| Struct::default().nested(1, within));
    let deep = file_with(1, vec![keys(1), numbers(1)], |footer| footer.nested(9, deep));
    for (file, text) in [
        (with_pages(SNAPPY, page(1, 0, &[0; 8], usize::MAX)), broken),
        (
            with_pages(SNAPPY, page(1, 0, &[0; 8], 1 << 31)),
            "column \"id\" has a page of 2147483648",
        ),
        (with_pages(SNAPPY, page(1, 0, &long, 4)), broken),
        (with_pages(SNAPPY, page(1, 0, &[0xff, 0xff, 0xff, 0xff, 0xf], 8)), broken),
        (with_pages(ZSTD, page(1, 0, &window, 8)), "stopped"),
        (with_pages(ZSTD, page(1, 0, b"(", 8)), broken),
        (with_pages(0, named), broken),
        (with_pages(0, page(2, 0, &[0; 16], 16)), broken),
        (with_pages(0, page(1, 0, &[0; 7], 7)), broken),
        (with_pages(0, page(1, 0, &[0; 8], 7)), broken),
        (with_pages(0, page(1, 8, &[0; 8], 8)), broken),
        (with_pages(0, page(1, 8, &[33, 0], 2)), broken),
        (with_pages(0, Vec::new()), broken),
        (outside, footer),
        (lists(1 << 31, 0), footer),
        (lists(3, 1 << 31), footer),
        (lists(3, 5), footer),
        (deep, footer),
        (file(1 << 40, vec![keys(1), numbers(1)]), "it has 1099511627776 rows; a table has at"),
        (file(1 << 28, vec![keys(1), numbers(1)]), "stopped"),
        (b"PAR1\x15".to_vec(), "it begins as a Parquet file, but its end is missing: upload"),
        (b"PAR1\x15\0\0\0\0\0\x10PAR1".to_vec(), "its Parquet footer has 268435456 bytes; at most"),
        (b"PAR1\x15\xff\0\0\0PAR1".to_vec(), footer),
    ] {
        let refused = bounded(&file).unwrap_err().to_string();
        assert!(refused.starts_with(text), "{text}: {refused}");
    }
}

#[test]
fn broken_files_end_in_an_error_or_a_table() {
    for file in [PANDAS, POLARS].into_iter().chain(FORMS) {
        for length in 0..file.len() {
            assert!(bounded(&file[..length]).is_err(), "{length}");
        }
        for at in 0..file.len() {
            for bits in [0x01, 0x80, 0xff] {
                let mut file = file.to_vec();
                file[at] ^= bits;
                if let Ok(table) = bounded(&file) {
                    assert!(table.bytes() <= MEMORY_MAX);
                }
            }
        }
    }
}

#[test]
fn work_that_is_stopped_ends() {
    for stops_after in 0..4 {
        let asked = std::cell::Cell::new(0);
        let check = || {
            asked.set(asked.get() + 1);
            if asked.get() > stops_after { Err(Stopped) } else { Ok(()) }
        };
        let mut work = Work { check: &check, reserve: &mut |_| Ok(()) };
        let stopped = Table::read(Bytes::from_static(PANDAS), &mut work).unwrap_err();
        assert_eq!(stopped, TableError::Stopped(Stopped));
    }
    // Parts that have nothing are work, too.
    let nothing = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0].repeat(20_000);
    let id = Column { codec: GZIP, pages: page(1, 0, &nothing, 8), ..keys(1) };
    let file = file(1, vec![id, numbers(1)]);
    let asked = std::cell::Cell::new(0);
    let check = || {
        asked.set(asked.get() + 1);
        if asked.get() > 10 { Err(Stopped) } else { Ok(()) }
    };
    let mut work = Work { check: &check, reserve: &mut |_| Ok(()) };
    let stopped = Table::read(Bytes::from(file), &mut work).unwrap_err();
    assert_eq!(stopped, TableError::Stopped(Stopped));
}
