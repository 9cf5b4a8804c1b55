//! Tables in CSV.

use gristmill_tables::{Key, TableError};

use crate::{part, read, refused, reserved, row};

const PRODUCTS: &str = "id,price,rating\n7,9.5,4\nseven eight,-1e-3,nan\r\n\n 9 , 2 ,3";

#[test]
fn a_row_is_found_by_its_key() {
    let table = read(PRODUCTS);
    assert_eq!((table.rows(), table.width()), (3, 2));
    assert_eq!(row(&table, Key::Text("7")), Some(vec![9.5, 4.0]));
    assert_eq!(row(&table, Key::Number(7)), Some(vec![9.5, 4.0]));
    let numbers = row(&table, Key::Text("seven eight")).unwrap();
    assert!(numbers[0] == -0.001 && numbers[1].is_nan(), "{numbers:?}");
    assert_eq!(row(&table, Key::Text(" 9 ")), Some(vec![2.0, 3.0]));
    for missing in ["9", "id", "", "7,9.5", "07", &"k".repeat(5000)] {
        assert_eq!(table.row(Key::Text(missing)), None, "{missing:?}");
    }
    assert_eq!(table.row(Key::Number(i64::MIN)), None);
}

#[test]
fn columns_are_chosen_by_their_names() {
    let table = read(PRODUCTS);
    let columns = |names: &[&str]| {
        table.columns(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    };
    let chosen = columns(&["rating", "price", "rating"]).unwrap();
    assert_eq!(part(&table, Key::Number(7), Some(&chosen), 3), Some(vec![4.0, 9.5, 4.0]));
    let text = "it has no column \"stock\": its columns are price, rating";
    assert_eq!(columns(&["stock"]), Err(TableError::InvalidArgument(text.into())));
    // As pandas names columns that have no names, behind a mark that some programs write.
    let table = read("\u{feff},0,1\n7,1,2\n");
    assert_eq!(table.columns(&["1".to_owned()]), Ok(vec![1]));
    assert_eq!(row(&table, Key::Number(7)), Some(vec![1.0, 2.0]));
}

#[test]
fn cells_may_be_quoted() {
    let table =
        read("\"id\",\"price, net\",\"6\"\"\"\r\n\"7\",\"9.5\",4\r\n\"a, b\",1,\" 2\"\r\nc,3,4");
    assert_eq!(row(&table, Key::Number(7)), Some(vec![9.5, 4.0]));
    assert_eq!(row(&table, Key::Text("a, b")), Some(vec![1.0, 2.0]));
    assert_eq!(row(&table, Key::Text("c")), Some(vec![3.0, 4.0]));
    for missing in ["a", "\"7\"", "7\"", " b", "c\""] {
        assert_eq!(table.row(Key::Text(missing)), None, "{missing:?}");
    }
    let columns = ["6\"", "price, net"].map(str::to_owned);
    assert_eq!(table.columns(&columns), Ok(vec![1, 0]));
}

#[test]
fn many_rows_are_found_and_their_memory_is_reserved() {
    let file: String = (0..30_000).map(|id| format!("item:{id},{id}.5,{}\n", id * 2)).collect();
    let file = format!("id,a,b\n{file}");
    let (table, bytes) = reserved(file.as_bytes());
    let table = table.unwrap();
    assert_eq!(table.rows(), 30_000);
    for id in [0, 1, 17, 29_999] {
        let expected = vec![id as f32 + 0.5, (id * 2) as f32];
        assert_eq!(row(&table, Key::Text(&format!("item:{id}"))), Some(expected));
    }
    assert_eq!(table.row(Key::Text("item:30000")), None);
    assert!((table.rows() * 12..=bytes).contains(&table.bytes()), "{}, {bytes}", table.bytes());
    // The shortest rows.
    let short: String = ('a'..='z').map(|key| format!("{key},1\n")).collect();
    let file = format!("k,x\n{short}");
    let (table, bytes) = reserved(file.as_bytes());
    assert_eq!(table.unwrap().rows(), 26);
    assert!(bytes <= file.len() * 8 + 80, "{bytes}");
    // Blank lines reserve nothing, and one with too few numbers is refused in what was reserved.
    let (table, bytes) = reserved(format!("k,x,y\n{}a,1\n", "\n".repeat(100_000)));
    assert!(table.is_err());
    assert!(bytes < 1_100_000, "{bytes}");
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let long_key = format!("id,a\n{},1\n", "k".repeat(1025));
    let long_line = format!("id,a\n7,{}1\n", " ".repeat(1 << 20));
    let columns = (0..20_000).map(|column| format!(",c{column}")).collect::<String>();
    for (file, text) in [
        ("", "it is empty: the first line names the columns, as id,price,rating, and each"),
        ("\n \n", "it is empty: "),
        ("id\n7\n", "line 1: it names no column after the key: the first line names"),
        (
            "\n7,0.5,4\n",
            "line 2: \"0.5\" is not the name of a column: the first line names the columns",
        ),
        ("id,a,a\n", "line 1: two columns are named \"a\""),
        ("id,a\n7,1\n8,x\n", "line 3: column \"a\" has \"x\", which is not a finite number of"),
        ("id,a\n7,1\n8,\n", "line 3: column \"a\" has \"\", which is not a finite number of"),
        ("id,a,b\n7,1,1e99\n", "line 2: column \"b\" has \"1e99\", which is not a finite number"),
        ("id,a\n7,inf\n", "line 2: column \"a\" has \"inf\""),
        ("id,a\n7\n", "line 2: it has 0 numbers after the key, but the heading has 1 columns"),
        ("id,a,b\n7,1\n", "line 2: it has 1 numbers after the key, but the heading has 2 columns"),
        ("id,a\n7,1,2\n", "line 2: it has more than 1 numbers"),
        ("id,a\n,1\n", "line 2: its key has 0 bytes: must be 1 to 1024"),
        (&long_key, "line 2: its key has 1025 bytes"),
        ("id,a\n7,1\n\n7,2\n", "line 4: an earlier line has the key \"7\", too"),
        ("id,a\n\"6\"\" pipe\",1\n", "line 2: its key has a quotation mark, which a key of CSV"),
        ("id,a\n\"7,1\n8\",1\n", "line 2: a cell begins with a quotation mark, and no other one"),
        ("id,a\n\"7\" ,1\n", "line 2: a cell goes on behind its second quotation mark"),
        ("id,a\n7\",1\n", "line 2: a quotation mark stands within a cell that does not begin"),
        ("id,a\n7,\"1\"\"\"\n", "line 2: column \"a\" has "),
        ("id,\"a\n7,1\n", "line 1: a cell begins with a quotation mark"),
        ("\"id,a\n7,1\n", "line 1: a cell begins with a quotation mark"),
        ("id,a\n7,1\n\"7\",2\n", "line 3: an earlier line has the key \"7\", too"),
        ("id,a\n\"\",1\n", "line 2: its key has 0 bytes"),
        (&long_line, "line 2 is longer than 1048576 bytes: the first line names the columns"),
        (&columns, "line 1: a table has at most 16384 columns besides the key"),
    ] {
        let refused = refused(file);
        assert!(refused.starts_with(text), "{:?}: {refused}", &file[..file.len().min(40)]);
    }
    assert!(refused(*b"id,a\n\xff,1\n").starts_with("line 2 is not UTF-8, so it is neither CSV"));
}
