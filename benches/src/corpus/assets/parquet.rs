//! Writes Parquet files as writers do, and as none does: everything that a file says of itself can
//! be a lie. The tests of tables include this file.

/// A struct of Thrift's compact protocol.
#[derive(Default)]
pub(super) struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

impl Struct {
    pub(super) fn int(self, id: u8, value: i64) -> Self {
        const INT: u8 = 5;
        let zigzag = (value << 1) ^ (value >> 63);
        self.field(id, INT, &varint(zigzag as u64))
    }

    pub(super) fn bool(self, id: u8, value: bool) -> Self {
        self.field(id, if value { 1 } else { 2 }, &[])
    }

    pub(super) fn binary(self, id: u8, value: &[u8]) -> Self {
        let bytes = [&varint(value.len() as u64), value].concat();
        self.field(id, BINARY, &bytes)
    }

    pub(super) fn nested(self, id: u8, value: Struct) -> Self {
        self.field(id, STRUCT, &value.end())
    }

    /// A list that says that it has `count` structs.
    pub(super) fn list(self, id: u8, count: usize, items: Vec<Struct>) -> Self {
        let mut bytes = vec![0xf0 | STRUCT];
        bytes.extend(varint(count as u64));
        bytes.extend(items.into_iter().flat_map(Struct::end));
        self.field(id, LIST, &bytes)
    }

    /// A list of nothing, and of no type.
    pub(super) fn nothing(self, id: u8) -> Self {
        self.field(id, LIST, &[0])
    }

    fn field(mut self, id: u8, kind: u8, value: &[u8]) -> Self {
        match id - self.last {
            step @ ..16 => self.bytes.push(step << 4 | kind),
            _ => self.bytes.extend([kind, id << 1]),
        }
        self.bytes.extend_from_slice(value);
        self.last = id;
        self
    }

    pub(super) fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A column, whose cells lie in one chunk.
pub(super) struct Column {
    /// What the schema says of it.
    pub(super) element: Struct,
    pub(super) codec: i64,
    /// Heads and bodies of its pages.
    pub(super) pages: Vec<u8>,
}

pub(super) const BOOLEAN: i64 = 0;
pub(super) const INT32: i64 = 1;
pub(super) const INT64: i64 = 2;
pub(super) const DOUBLE: i64 = 5;
pub(super) const BYTE_ARRAY: i64 = 6;

pub(super) const SNAPPY: i64 = 1;
pub(super) const GZIP: i64 = 2;
pub(super) const ZSTD: i64 = 6;

const REQUIRED: i64 = 0;

impl Column {
    /// A column in which no cell is null, with one page of cells that are written plainly.
    pub(super) fn plain(name: &str, physical: i64, rows: usize, cells: &[u8]) -> Self {
        let page = page(rows, 0, cells, cells.len());
        Self { element: element(name, physical), codec: 0, pages: page }
    }

    /// With this in place of what the schema says.
    pub(super) fn of(element: Struct) -> Self {
        Self { element, codec: 0, pages: page(1, 0, &[0; 8], 8) }
    }
}

pub(super) fn element(name: &str, physical: i64) -> Struct {
    Struct::default().int(1, physical).int(3, REQUIRED).binary(4, name.as_bytes())
}

/// A page of data that says that it has `plain_bytes` without compression.
pub(super) fn page(rows: usize, encoding: i64, body: &[u8], plain_bytes: usize) -> Vec<u8> {
    let about = Struct::default().int(1, rows as i64).int(2, encoding).int(3, 3).int(4, 3);
    let head = Struct::default().int(1, 0).int(2, plain_bytes as i64).int(3, body.len() as i64);
    [head.nested(5, about).end(), body.to_vec()].concat()
}

/// A dictionary that says that it has so many cells.
pub(super) fn dictionary(cells: usize, body: &[u8]) -> Vec<u8> {
    let about = Struct::default().int(1, cells as i64).int(2, 0);
    let head = Struct::default().int(1, 2).int(2, body.len() as i64).int(3, body.len() as i64);
    [head.nested(7, about).end(), body.to_vec()].concat()
}

/// A file with one group that says that it has so many rows.
pub(super) fn file(rows: usize, columns: Vec<Column>) -> Vec<u8> {
    file_with(rows, columns, |footer| footer)
}

/// With more in its footer.
pub(super) fn file_with(
    rows: usize,
    columns: Vec<Column>,
    more: impl FnOnce(Struct) -> Struct,
) -> Vec<u8> {
    let mut file = b"PAR1".to_vec();
    let width = columns.len();
    let mut schema = vec![Struct::default().binary(4, b"schema").int(5, width as i64)];
    let mut chunks = Vec::new();
    for column in columns {
        schema.push(column.element);
        let place = Struct::default()
            .int(4, column.codec)
            .int(7, column.pages.len() as i64)
            .int(9, file.len() as i64);
        chunks.push(Struct::default().int(2, 0).nested(3, place));
        file.extend(column.pages);
    }
    let group = Struct::default().list(1, width, chunks).int(3, rows as i64);
    let footer = Struct::default().int(1, 1).list(2, width + 1, schema).int(3, rows as i64);
    closed(file, more(footer.list(4, 1, vec![group])))
}

/// The file with this footer.
pub(super) fn closed(mut file: Vec<u8>, footer: Struct) -> Vec<u8> {
    let footer = footer.end();
    let length = (footer.len() as u32).to_le_bytes();
    file.extend(footer);
    file.extend(length);
    file.extend(b"PAR1");
    file
}
