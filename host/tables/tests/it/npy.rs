//! Tables in NumPy's format.

use gristmill_tables::{Key, TableError};

use crate::{part, read, refused, reserved, row};

/// A file with this header and these numbers, as NumPy writes version 1.
fn npy(header: &str, numbers: &[u8]) -> Vec<u8> {
    let length = (header.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), numbers].concat()
}

fn of(descr: &str, shape: &str, numbers: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}   \n");
    npy(&header, numbers)
}

#[test]
fn a_row_is_found_by_its_number() {
    let numbers: Vec<u8> = (0..6).flat_map(|number| (number as f32).to_le_bytes()).collect();
    let (table, bytes) = reserved(of("<f4", "(3, 2)", &numbers));
    let table = table.unwrap();
    assert_eq!((table.rows(), table.width(), table.bytes(), bytes), (3, 2, 0, 0));
    assert_eq!(row(&table, Key::Number(2)), Some(vec![4.0, 5.0]));
    assert_eq!(row(&table, Key::Text("0")), Some(vec![0.0, 1.0]));
    assert_eq!(part(&table, Key::Number(1), Some(&[1, 1]), 2), Some(vec![3.0, 3.0]));
    for missing in ["3", "-1", "01", "+1", "1.0", "one", ""] {
        assert_eq!(table.row(Key::Text(missing)), None, "{missing:?}");
    }
    assert_eq!((table.row(Key::Number(-1)), table.row(Key::Number(3))), (None, None));
    let why = table.columns(&["a".to_owned()]);
    let text = "an .npy file has no names of columns: give their number, 2";
    assert_eq!(why, Err(TableError::InvalidArgument(text.into())));
    assert_eq!(read(of("<f4", "(0, 2)", &[])).rows(), 0);
}

#[test]
fn all_kinds_of_numbers_become_float32() {
    for (descr, numbers) in [
        ("<f8", [1.5_f64.to_le_bytes(), (-2.5_f64).to_le_bytes()].concat()),
        ("<i8", [1_i64.to_le_bytes(), (-2_i64).to_le_bytes()].concat()),
        ("<u8", [1_u64.to_le_bytes(), 2_u64.to_le_bytes()].concat()),
        ("<i4", [1_i32.to_le_bytes(), (-2_i32).to_le_bytes()].concat()),
        ("<u4", [1_u32.to_le_bytes(), 2_u32.to_le_bytes()].concat()),
        ("<i2", [1_i16.to_le_bytes(), (-2_i16).to_le_bytes()].concat()),
        ("<u2", [1_u16.to_le_bytes(), 2_u16.to_le_bytes()].concat()),
        ("|i1", vec![1, 254]),
        ("|u1", vec![1, 254]),
    ] {
        let expected = match descr {
            "<f8" => [1.5, -2.5],
            "|u1" => [1.0, 254.0],
            descr if descr.contains('u') => [1.0, 2.0],
            _ => [1.0, -2.0],
        };
        let table = read(of(descr, "(1, 2)", &numbers));
        assert_eq!(row(&table, Key::Number(0)).unwrap(), expected, "{descr}");
        let turned = part(&table, Key::Number(0), Some(&[1, 0]), 2).unwrap();
        assert_eq!(turned, [expected[1], expected[0]], "{descr}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    let fortran = "{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1), }";
    let fields = "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1, 1), }";
    for (file, text) in [
        (of("<f2", "(1, 1)", &[0; 2]), "its dtype is <f2: must be little-endian float32, float64"),
        (of(">f4", "(1, 1)", &[0; 4]), "its dtype is >f4: must be"),
        (of("|O", "(1, 1)", &[0; 8]), "its dtype is |O: must be"),
        (npy(fields, &[0; 4]), "its dtype is a structure: must be"),
        (npy(fortran, &[0; 4]), "its columns follow each other (fortran_order): save numpy.asco"),
        (of("<f4", "(4,)", &[0; 16]), "it has 1 dimensions: a table has 2, rows and columns"),
        (of("<f4", "()", &[0; 4]), "it has 0 dimensions"),
        (of("<f4", "(2, 2)", &[0; 12]), "its header says (2, 2) numbers in 16 bytes, but 12 foll"),
        (of("<f4", "(2, 2)", &[0; 17]), "its header says (2, 2) numbers in 16 bytes, but 17 foll"),
        (of("<f4", "(1, 0)", &[]), "it has the shape (1, 0): a table has at most 268435456 rows"),
        (of("<f4", "(1, 20000)", &[]), "it has the shape (1, 20000): "),
        (of("<f4", "(9999999999, 1)", &[]), "it has the shape (9999999999, 1): "),
        (of("<f4", "(99999999999999999999, 1)", &[]), "the header of the .npy file is not NumPy's"),
        (npy("{}", &[]), "the header of the .npy file is not NumPy's: \"{}\""),
        (b"\x93NUMPY".to_vec(), "it begins as an .npy file, but its header is cut off or of a new"),
        (b"\x93NUMPY\x09\x00aaaa".to_vec(), "it begins as an .npy file, but its header is cut"),
        (b"\x93NUMPY\x01\x00\x10\x00{".to_vec(), "the header of the .npy file is cut off, or over"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff".to_vec(), "the header of the .npy file is cut off"),
    ] {
        let refused = refused(file);
        assert!(refused.starts_with(text), "{refused}");
    }
}
