//! Assets of a few hundred KB to a few MB that become many times that when a plugin asks for a
//! token or a row of them. Each has a number, which makes it different from all others.

#[expect(dead_code, reason = "the tests of tables need more of it")]
mod parquet;

use std::fmt::Write as _;

use self::parquet::{Column, INT64, dictionary, element, file, page};

/// A `tokenizer.json` with a vocabulary of 400,000 words, and a pattern with which each search
/// reads its text to the end.
pub fn tokenizer(number: u64) -> Vec<u8> {
    const WORDS: usize = 400_000;
    let mut file = format!(r#"{{"version":"{number}","#);
    file.push_str(
        r#""pre_tokenizer":{"type":"Split","pattern":{"Regex":"[a]*b|a"},"behavior":"Isolated",
           "invert":false},"model":{"type":"WordLevel","unk_token":"a","vocab":{"a":0"#,
    );
    for id in 1..WORDS {
        let _ = write!(file, r#","w{id}":{id}"#);
    }
    file.push_str("}}}");
    file.into_bytes()
}

/// A CSV of 300,000 keys with one number each.
pub fn csv(number: u64) -> Vec<u8> {
    const ROWS: usize = 300_000;
    let mut file = String::from("key,x\n");
    for key in 0..ROWS {
        let _ = writeln!(file, "k{key},1");
    }
    let _ = writeln!(file, "last,{number}");
    file.into_bytes()
}

/// A Parquet file of 200,000 keys and 256 columns, each of them one number that is said to be there
/// 200,000 times: 200 MB, of which the file has 1.6 MB.
pub fn parquet(number: u64) -> Vec<u8> {
    const ROWS: usize = 200_000;
    const COLUMNS: usize = 256;
    const PLAIN_DICTIONARY: i64 = 2;
    let whole = |number: usize| (number as i64).to_le_bytes();
    let keys: Vec<u8> = (0..ROWS).flat_map(whole).collect();
    let column = |index: usize| {
        // Indices of one bit, in one run of zeros.
        let mut run = vec![1];
        let mut header = ROWS << 1;
        while header >= 0x80 {
            run.push(header as u8 | 0x80);
            header >>= 7;
        }
        run.extend([header as u8, 0]);
        let page = page(ROWS, PLAIN_DICTIONARY, &run, run.len());
        let pages = [dictionary(1, &number.to_le_bytes()), page].concat();
        Column { element: element(&format!("x{index}"), INT64), codec: 0, pages }
    };
    let columns = std::iter::once(Column::plain("key", INT64, ROWS, &keys));
    file(ROWS, columns.chain((0..COLUMNS).map(column)).collect())
}
