//! What the cells of a column are.

use super::thrift::{Reader, Type};

/// What a column has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    I32,
    U32,
    I64,
    U64,
    F32,
    F64,
    Text,
}

impl Kind {
    /// The bytes of a cell that is written plainly. None: they differ, or are less than one.
    pub(super) fn bytes(self) -> Option<usize> {
        match self {
            Self::Bool | Self::Text => None,
            Self::I32 | Self::U32 | Self::F32 => Some(4),
            Self::I64 | Self::U64 | Self::F64 => Some(8),
        }
    }

    /// The number that these bits are.
    pub(super) fn number(self, bits: u64) -> f32 {
        match self {
            Self::Bool | Self::Text | Self::U64 => bits as f32,
            Self::I32 => bits as i32 as f32,
            Self::U32 => bits as u32 as f32,
            Self::I64 => bits as i64 as f32,
            Self::F32 => f32::from_bits(bits as u32),
            Self::F64 => f64::from_bits(bits) as f32,
        }
    }

    /// The whole number that these bits are. None: the column has others.
    pub(super) fn whole(self, bits: u64) -> Option<i128> {
        match self {
            Self::I32 => Some((bits as i32).into()),
            Self::U32 => Some((bits as u32).into()),
            Self::I64 => Some((bits as i64).into()),
            Self::U64 => Some(bits.into()),
            Self::Bool | Self::F32 | Self::F64 | Self::Text => None,
        }
    }
}

/// An element of the schema, which is a column, or a structure of columns.
#[derive(Default)]
pub(super) struct Element<'a> {
    pub(super) name: &'a [u8],
    pub(super) children: Option<usize>,
    physical: Option<u8>,
    repetition: Option<u8>,
    meaning: Meaning,
}

/// What the numbers or bytes of a column stand for.
#[derive(Clone, Copy, Default)]
enum Meaning {
    #[default]
    Itself,
    Signed,
    Unsigned,
    Text,
    Other(&'static str),
}

impl<'a> Element<'a> {
    pub(super) fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let mut element = Self::default();
        reader.fields(|reader, id, kind| {
            match (id, kind) {
                (1, Type::Int) => element.physical = Some(reader.int()?),
                (3, Type::Int) => element.repetition = Some(reader.int()?),
                (4, Type::Binary) => element.name = reader.binary()?,
                (5, Type::Int) => element.children = Some(reader.int()?),
                (6, Type::Int) => element.meaning = Meaning::of_converted(reader.int()?),
                // It says more than the older one before it.
                (10, Type::Struct) => element.meaning = Meaning::of_logical(reader)?,
                _ => return Some(false),
            }
            Some(true)
        })?;
        Some(element)
    }

    pub(super) fn is_optional(&self) -> bool {
        self.repetition == Some(1)
    }

    /// What the column has.
    ///
    /// # Errors
    /// What it has, if it is no cell of a table.
    pub(super) fn kind(&self) -> Result<Kind, &'static str> {
        if self.children.is_some_and(|children| children > 0) || self.repetition == Some(2) {
            return Err("lists or structures");
        }
        match (self.physical, self.meaning) {
            (_, Meaning::Other(what)) => Err(what),
            (Some(0), _) => Ok(Kind::Bool),
            (Some(1), Meaning::Unsigned) => Ok(Kind::U32),
            (Some(1), _) => Ok(Kind::I32),
            (Some(2), Meaning::Unsigned) => Ok(Kind::U64),
            (Some(2), _) => Ok(Kind::I64),
            (Some(3), _) => Err("timestamps"),
            (Some(4), _) => Ok(Kind::F32),
            (Some(5), _) => Ok(Kind::F64),
            (Some(6), _) => Ok(Kind::Text),
            (Some(7), _) => Err("bytes of a fixed length"),
            _ => Err("cells of an unknown type"),
        }
    }
}

impl Meaning {
    fn of_converted(code: u8) -> Self {
        match code {
            0 | 4 => Self::Text,
            5 => Self::Other("decimals"),
            6 => Self::Other("dates"),
            7 | 8 => Self::Other("times"),
            9 | 10 => Self::Other("timestamps"),
            11..=14 => Self::Unsigned,
            15..=18 => Self::Signed,
            21 => Self::Other("intervals"),
            _ => Self::Other("cells of an unsupported type"),
        }
    }

    /// The field of the union says which one it is.
    fn of_logical(reader: &mut Reader<'_>) -> Option<Self> {
        let mut meaning = Self::Itself;
        reader.fields(|reader, id, kind| {
            meaning = match id {
                1 | 4 => Self::Text,
                5 => Self::Other("decimals"),
                6 => Self::Other("dates"),
                7 => Self::Other("times"),
                8 => Self::Other("timestamps"),
                10 if kind == Type::Struct => {
                    meaning = Self::of_integer(reader)?;
                    return Some(true);
                }
                11 => Self::Other("nothing but nulls"),
                14 => Self::Other("UUIDs"),
                15 => Self::Other("float16"),
                _ => Self::Other("cells of an unsupported type"),
            };
            Some(false)
        })?;
        Some(meaning)
    }

    fn of_integer(reader: &mut Reader<'_>) -> Option<Self> {
        let mut meaning = Self::Signed;
        reader.fields(|_, id, kind| {
            if (id, kind) == (2, Type::Bool(false)) {
                meaning = Self::Unsigned;
            }
            Some(false)
        })?;
        Some(meaning)
    }
}
