//! Reading Thrift's compact protocol, in which a Parquet file describes itself.
//!
//! Nothing is collected here, and no more than the bytes that there are is read. `None`: they are
//! cut off, or are not of the protocol.

/// How deep what is skipped may be nested.
const DEPTH_MAX: usize = 16;

/// Bytes of the protocol that are not read yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a>(&'a [u8]);

/// What a field or an element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Bool(bool),
    Byte,
    /// Of any width.
    Int,
    Double,
    Binary,
    List,
    Map,
    Struct,
    Uuid,
}

impl Type {
    fn of(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::Bool(true),
            2 => Self::Bool(false),
            3 => Self::Byte,
            4..=6 => Self::Int,
            7 => Self::Double,
            8 => Self::Binary,
            9 | 10 => Self::List,
            11 => Self::Map,
            12 => Self::Struct,
            13 => Self::Uuid,
            _ => return None,
        })
    }
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// What is not read yet.
    pub(super) fn rest(self) -> &'a [u8] {
        self.0
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// A number with a sign, which is its lowest bit.
    pub(super) fn number(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// A number that must be in the range of its type.
    pub(super) fn int<T: TryFrom<i64>>(&mut self) -> Option<T> {
        T::try_from(self.number()?).ok()
    }

    pub(super) fn binary(&mut self) -> Option<&'a [u8]> {
        let count = usize::try_from(self.varint()?).ok()?;
        self.take(count)
    }

    /// The beginning of a list: what its elements are, and how many. Each takes a byte or more.
    pub(super) fn list(&mut self) -> Option<(Type, usize)> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => usize::try_from(self.varint()?).ok()?,
            count => count.into(),
        };
        // fastparquet says no type of nothing.
        let element = Type::of(head & 15).or((count == 0).then_some(Type::Struct))?;
        (count <= self.0.len()).then_some((element, count))
    }

    /// A list of structs: how many.
    pub(super) fn structs(&mut self) -> Option<usize> {
        let (element, count) = self.list()?;
        (element == Type::Struct || count == 0).then_some(count)
    }

    /// Read a struct. `read` reads a field, or returns `Some(false)` if it does not know it.
    pub(super) fn fields(
        &mut self,
        read: impl FnMut(&mut Self, i16, Type) -> Option<bool>,
    ) -> Option<()> {
        self.fields_within(DEPTH_MAX, read)
    }

    fn fields_within(
        &mut self,
        depth: usize,
        mut read: impl FnMut(&mut Self, i16, Type) -> Option<bool>,
    ) -> Option<()> {
        let mut id = 0_i16;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(());
            }
            id = match head >> 4 {
                0 => self.int()?,
                step => id.checked_add(step.into())?,
            };
            let kind = Type::of(head & 15)?;
            if !read(self, id, kind)? {
                self.skip(kind, depth)?;
            }
        }
    }

    fn skip(&mut self, kind: Type, depth: usize) -> Option<()> {
        let within = depth.checked_sub(1)?;
        match kind {
            // The value is in the head of the field.
            Type::Bool(_) => {}
            Type::Byte => drop(self.byte()?),
            Type::Int => drop(self.varint()?),
            Type::Double => drop(self.take(8)?),
            Type::Uuid => drop(self.take(16)?),
            Type::Binary => drop(self.binary()?),
            Type::Struct => self.fields_within(within, |_, _, _| Some(false))?,
            Type::List => {
                let (element, count) = self.list()?;
                for _ in 0..count {
                    self.skip_element(element, within)?;
                }
            }
            Type::Map => {
                let count = self.varint()?;
                let kinds = if count == 0 { return Some(()) } else { self.byte()? };
                let (key, value) = (Type::of(kinds >> 4)?, Type::of(kinds & 15)?);
                for _ in 0..count {
                    self.skip_element(key, within)?;
                    self.skip_element(value, within)?;
                }
            }
        }
        Some(())
    }

    fn skip_element(&mut self, kind: Type, depth: usize) -> Option<()> {
        match kind {
            Type::Bool(_) => self.byte().map(drop),
            kind => self.skip(kind, depth),
        }
    }
}
