//! A profile in the format of pprof: a gzipped `perftools.profiles.Profile`.
//!
//! The messages have the fields that are written here; their numbers are those of pprof's
//! `profile.proto`.

use std::collections::HashMap;
use std::io::Write;
use std::time::UNIX_EPOCH;

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;

use crate::names::Named;
use crate::record::Profile;

#[derive(Clone, PartialEq, Message)]
struct ProfileMessage {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    time_nanos: i64,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    period: i64,
    #[prost(int64, repeated, tag = "13")]
    comment: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    r#type: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    /// The innermost first.
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    label: Vec<Label>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(int64, tag = "1")]
    key: i64,
    #[prost(int64, tag = "2")]
    str: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
    #[prost(int64, tag = "4")]
    filename: i64,
}

/// The texts of a profile; messages name them by their number.
#[derive(Default)]
struct Texts {
    all: Vec<String>,
    numbers: HashMap<String, i64>,
}

impl Texts {
    fn number(&mut self, text: &str) -> i64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.all.len() as i64;
        self.all.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

impl Profile {
    /// The profile for `pprof` and what reads its format. Each function has one location.
    pub fn pprof(&self) -> Vec<u8> {
        let mut texts = Texts::default();
        // The format wants it first.
        texts.number("");
        let mut value =
            |name, unit| ValueType { r#type: texts.number(name), unit: texts.number(unit) };
        let sample_type = vec![value("samples", "count"), value("cpu", "nanoseconds")];
        let period_type = Some(value("cpu", "nanoseconds"));
        let period = self.period.as_nanos() as i64;
        let thread = texts.number("thread");
        let comment = vec![texts.number(&format!("{} samples were lost", self.lost))];
        let mut ids: HashMap<&Named, u64> = HashMap::new();
        let mut function = Vec::new();
        let mut sample = Vec::new();
        for stack in &self.stacks {
            let mut location = |named| {
                let next = ids.len() as u64 + 1;
                *ids.entry(named).or_insert_with(|| {
                    let name = texts.number(&named.function);
                    let filename = texts.number(&named.object);
                    function.push(Function { id: next, name, system_name: name, filename });
                    next
                })
            };
            let location_id = stack.functions.iter().rev().map(&mut location).collect();
            let count = stack.count as i64;
            let label = vec![Label { key: thread, str: texts.number(&stack.thread) }];
            sample.push(Sample { location_id, value: vec![count, count * period], label });
        }
        let line = |id| vec![Line { function_id: id }];
        let location = function.iter().map(|entry| Location { id: entry.id, line: line(entry.id) });
        let message = ProfileMessage {
            sample_type,
            sample,
            location: location.collect(),
            function,
            string_table: texts.all,
            time_nanos: self.began.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as i64,
            duration_nanos: self.took.as_nanos() as i64,
            period_type,
            period,
            comment,
        };
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        // Writing to memory does not fail.
        let _ = packed.write_all(&message.encode_to_vec());
        packed.finish().unwrap_or_default()
    }
}
