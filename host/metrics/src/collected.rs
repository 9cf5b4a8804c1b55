//! The values of all metrics at one moment.

use std::collections::BTreeMap;

use crate::family::{ALL, Family, Kind};

/// The values of all metrics at one moment, by metric.
#[derive(Debug, Default)]
pub struct Collected {
    points: BTreeMap<&'static str, Vec<Point>>,
}

/// A value with its attributes.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The values of the family's attributes, in its order.
    pub attributes: Box<[Box<str>]>,
    /// The value.
    pub value: Value,
}

/// The value of a metric.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A counter or a gauge.
    Number(f64),
    /// A histogram.
    Distribution(Distribution),
}

/// How often values fell into each range.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// The upper bounds of the ranges.
    pub bounds: &'static [f64],
    /// The number of values in each range; the last range is above all bounds.
    pub counts: Vec<u64>,
    /// The sum of all values.
    pub sum: f64,
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number as f64)
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Self::Number(number as f64)
    }
}

impl From<bool> for Value {
    fn from(is_true: bool) -> Self {
        Self::Number(f64::from(u8::from(is_true)))
    }
}

impl From<Distribution> for Value {
    fn from(distribution: Distribution) -> Self {
        Self::Distribution(distribution)
    }
}

impl Distribution {
    /// Nothing, in ranges with these upper bounds.
    pub fn of(bounds: &'static [f64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    /// Count `value` so many times.
    pub fn add(&mut self, value: f64, times: u64) {
        self.counts[self.bounds.partition_point(|bound| *bound < value)] += times;
        self.sum += value * times as f64;
    }

    /// The number of values.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

impl Collected {
    /// Add the value of `family` with these values of its attributes.
    pub fn add(&mut self, family: &'static Family, attributes: &[&str], value: impl Into<Value>) {
        let value = value.into();
        debug_assert_eq!(attributes.len(), family.attributes.len(), "{}", family.name);
        let is_distribution = matches!(value, Value::Distribution(_));
        debug_assert_eq!(family.kind == Kind::Histogram, is_distribution, "{}", family.name);
        let attributes = attributes.iter().map(|text| Box::from(*text)).collect();
        self.points.entry(family.name).or_default().push(Point { attributes, value });
    }

    /// The metrics that have values, in the order of the list.
    pub fn families(&self) -> impl Iterator<Item = (&'static Family, &[Point])> {
        ALL.iter().filter_map(|family| Some((*family, &**self.points.get(family.name)?)))
    }
}
