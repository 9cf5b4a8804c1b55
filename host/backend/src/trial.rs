//! A trial of the rows of a model: do rows of a batch influence each other?
//!
//! Made-up rows are run alone, together, in other orders, beside extreme rows, with padding, in
//! parts and in large batches. Each output of a row must be that of the row alone (`Likeness`).
//! `values` makes the rows up. A trial can show that rows depend on each other. It cannot prove
//! that they never do, so the graph is looked at, too (`rows`).
//!
//! `padding` tries in the same way whether rows may be padded.

mod padding;
mod values;

use std::time::Duration;

use gristmill_core::{BufferPool, Likeness, Model, ModelError, ModelInfo, Tensor};

use crate::certificate::Certificate;
use crate::run_within::{RunClock, WALL_PER_CPU, run_within};
use values::{EXTREME, Range, Row, USUAL, Values};

/// The sizes that replace the open dimensions of a row. Two that the model takes are tried.
const SIZES: [usize; 9] = [7, 12, 3, 16, 32, 64, 1, 128, 224];

/// The rows that are compared in each set: fewer if the model is slow.
const ROWS: usize = 6;
const ROWS_MIN: usize = 3;

/// A set with all of its runs needs about so many rows for each of the compared ones.
const SET_COST: u32 = 12;

/// The sizes of large batches.
const LARGE: [usize; 4] = [17, 33, 64, 256];

/// Maximum bytes of the inputs of a batch.
const BATCH_BYTES_MAX: usize = 64 << 20;

/// Beyond the sets that are needed, runs may take the whole time divided by this.
const MORE_PART: u32 = 5;

/// The reason of a trial in which a run had used up its real time, but not its CPU time.
const STARVED: &str = "the machine was too busy: a run of the trial got less than a tenth of a core. \
                       Start the server again when it has less to do, or raise batch_proof_ms";

/// A model to be tried.
pub(crate) struct Trial<'a> {
    pub(crate) model: &'a mut dyn Model,
    pub(crate) info: &'a ModelInfo,
    pub(crate) pool: &'a BufferPool,
    /// How much more the device rounds than the type of the numbers says.
    pub(crate) slack: f64,
    /// The time of all runs: of the processor if the model runs on the calling thread.
    pub(crate) within: Duration,
}

/// Why a trial ends before its last run.
enum Ends {
    /// Rows influence each other.
    Dependent(String),
    /// The time is over.
    Late,
    /// The machine was so busy that a run was ended before it had its time.
    Starved,
    /// Nothing can be said.
    Unclear(String),
    /// A run failed.
    Failed(ModelError),
}

/// The state of a trial.
struct Trying<'a> {
    trial: Trial<'a>,
    left: Duration,
    runs: u32,
    influence: f64,
}

/// Rows of one range and size, and the outputs of each alone.
struct Set {
    rows: Vec<Row>,
    alone: Vec<Vec<Tensor>>,
}

impl Trial<'_> {
    pub(crate) fn run(self) -> Certificate {
        let (within, left) = (self.within, self.within);
        let mut trying = Trying { trial: self, left, runs: 0, influence: 0.0 };
        let outcome = trying.all();
        let Trying { runs, influence, .. } = trying;
        match outcome {
            Ok(()) => Certificate::Independent { influence, runs },
            Err(Ends::Dependent(why)) => Certificate::Dependent { why },
            Err(Ends::Starved) => Certificate::Unfinished { why: STARVED.into() },
            Err(ends) => Certificate::Undecided { why: ends.text(within, runs) },
        }
    }
}

impl Ends {
    /// The reason, for a trial that may take the time `within` and made so many `runs`.
    fn text(self, within: Duration, runs: u32) -> String {
        match self {
            Self::Dependent(why) | Self::Unclear(why) => why,
            Self::Failed(error) => format!("it fails on rows that are made up: {}", error.text),
            Self::Late => format!(
                "the trial ended after {} ms and {runs} runs: raise batch_proof_ms",
                within.as_millis()
            ),
            Self::Starved => STARVED.into(),
        }
    }
}

impl Trying<'_> {
    /// All sets. The first of each size must fit into the time; the others are tried as long as it
    /// lasts.
    fn all(&mut self) -> Result<(), Ends> {
        let (info, pool) = (self.trial.info, self.trial.pool);
        let mut values = Values::new(info, pool);
        let has_open_sizes = !info.rows_are_alike();
        let (sizes, wanted) = if has_open_sizes { (&SIZES[..], 2) } else { (&SIZES[..1], 1) };
        let (mut last, mut sets) = (None, Vec::new());
        for size in sizes {
            if sets.len() == wanted {
                break;
            }
            // A model may refuse a size or a range.
            for range in USUAL {
                match self.set(&mut values, range, *size) {
                    Ok(set) => {
                        self.compare_set(&set, &mut values, *size)?;
                        sets.push((range, *size, set));
                        break;
                    }
                    Err(Ends::Failed(error)) => last = Some(error),
                    Err(ends) => return Err(ends),
                }
            }
        }
        if sets.is_empty() {
            let none = || ModelError::new("a row is too large");
            return Err(Ends::Failed(last.unwrap_or_else(none)));
        }
        // An upload waits for it.
        self.left = self.left.min(self.trial.within / MORE_PART);
        match self.more(&sets, &mut values) {
            Err(Ends::Dependent(why)) => Err(Ends::Dependent(why)),
            _ => Ok(()),
        }
    }

    /// Large batches and other ranges, until the time is over.
    fn more(&mut self, sets: &[(Range, usize, Set)], values: &mut Values<'_>) -> Result<(), Ends> {
        for (_, _, set) in sets {
            for rows in LARGE {
                let order: Vec<_> = (0..rows).map(|row| row % set.rows.len()).collect();
                skip_failed(self.compare(set, &order, &[]))?;
            }
        }
        for (first, size, _) in sets {
            for range in USUAL.into_iter().filter(|range| range != first) {
                match self.set(values, range, *size) {
                    Ok(set) => self.compare_set(&set, values, *size)?,
                    Err(Ends::Failed(_)) => {}
                    Err(ends) => return Err(ends),
                }
            }
        }
        Ok(())
    }

    /// Rows of a range and a size, each run alone.
    fn set(&mut self, values: &mut Values<'_>, range: Range, size: usize) -> Result<Set, Ends> {
        let mut set = Set { rows: Vec::new(), alone: Vec::new() };
        let mut count = ROWS;
        while set.rows.len() < count {
            let Some(row) = values.row(range, size) else {
                return Err(Ends::Failed(ModelError::new("a row is too large")));
            };
            let before = self.left;
            let alone = self.run(&row)?;
            self.check_rows(&alone, 1)?;
            let took = before.saturating_sub(self.left);
            if took * SET_COST * ROWS as u32 > self.left {
                count = ROWS_MIN;
            }
            set.rows.push(row);
            set.alone.push(alone);
        }
        let again = self.run(&set.rows[0])?;
        if let Some((output, _)) = self.difference(&set.alone[0], &again, 0) {
            let text = format!("output {output:?} of one row differs from run to run");
            return Err(Ends::Unclear(text));
        }
        Ok(set)
    }

    /// The runs of one set.
    fn compare_set(&mut self, set: &Set, values: &mut Values<'_>, size: usize) -> Result<(), Ends> {
        let count = set.rows.len();
        let mut together: Vec<_> = (0..count).collect();
        self.compare(set, &together, &[])?;
        together.reverse();
        self.compare(set, &together, &[])?;
        // A part, and padding with copies of the last row.
        self.compare(set, &[0, 1], &[])?;
        self.compare(set, &[1, 2, 2, 2], &[])?;
        for range in EXTREME {
            let Some(row) = values.row(range, size) else { continue };
            // The extreme row may be what the model refuses.
            skip_failed(self.compare(set, &[0, 1], std::slice::from_ref(&row)))?;
        }
        Ok(())
    }

    /// Run the rows of `order` in one batch, in their middle the rows `beside`, and compare each
    /// with itself alone.
    fn compare(&mut self, set: &Set, order: &[usize], beside: &[Row]) -> Result<(), Ends> {
        let (front, back) = order.split_at(order.len() / 2);
        let rows = |order: &[usize]| order.iter().map(|row| &set.rows[*row]).collect::<Vec<_>>();
        let batch: Vec<&Row> = rows(front).into_iter().chain(beside).chain(rows(back)).collect();
        let bytes: usize = set.rows[0].iter().map(|tensor| tensor.as_bytes().len()).sum();
        if bytes.saturating_mul(batch.len()) > BATCH_BYTES_MAX {
            return Err(Ends::Failed(ModelError::new("the batch is too large")));
        }
        let inputs = (0..self.trial.info.inputs.len())
            .map(|input| Tensor::stack(self.trial.pool, batch.iter().map(move |row| &row[input])));
        let inputs: Result<Vec<_>, _> = inputs.collect();
        let failed =
            |error: &dyn std::fmt::Display| Ends::Failed(ModelError::new(error.to_string()));
        let outputs = self.run(&inputs.map_err(|error| failed(&error))?)?;
        self.check_rows(&outputs, batch.len())?;
        let places = (0..front.len()).chain(front.len() + beside.len()..batch.len());
        for (row, place) in order.iter().zip(places) {
            if let Some((output, influence)) = self.difference(&set.alone[*row], &outputs, place) {
                let text = match influence.is_finite() {
                    true => format!(
                        "output {output:?} of a row changes by {:.2} % of its largest element among \
                         {} rows",
                        100.0 * influence,
                        batch.len()
                    ),
                    false => format!(
                        "output {output:?} of a row is another one among {} rows",
                        batch.len()
                    ),
                };
                return Err(Ends::Dependent(text));
            }
        }
        Ok(())
    }

    /// The first output of the row at `place` that differs from the same row `alone`.
    fn difference(
        &mut self,
        alone: &[Tensor],
        outputs: &[Tensor],
        place: usize,
    ) -> Option<(String, f64)> {
        let Trying { trial: Trial { info, slack, .. }, influence, .. } = self;
        for ((alone, among), output) in alone.iter().zip(outputs).zip(&info.outputs) {
            let likeness = match among.slice_rows(place..place + 1) {
                Some(row) => Likeness::of(alone, &row, *slack),
                None => Likeness { influence: f64::INFINITY, differs: true },
            };
            if likeness.differs {
                return Some((output.name.to_string(), likeness.influence));
            }
            *influence = influence.max(likeness.influence);
        }
        None
    }

    fn check_rows(&self, outputs: &[Tensor], rows: usize) -> Result<(), Ends> {
        for (output, info) in outputs.iter().zip(&self.trial.info.outputs) {
            let out = output.shape().first().copied();
            if out != Some(rows) {
                let out = out.map_or("none".to_owned(), |out| out.to_string());
                let text = format!("{rows} rows went in, {out} came out of {:?}", info.name);
                return Err(Ends::Dependent(text));
            }
        }
        Ok(())
    }

    /// One run, within the time that is left.
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, Ends> {
        if self.left.is_zero() {
            return Err(Ends::Late);
        }
        let model = &mut *self.trial.model;
        let waits = if model.ran_on_caller() { WALL_PER_CPU } else { 1 };
        let (clock, wall) = (RunClock::begin(), self.left * waits);
        let outcome = run_within(model, inputs, wall);
        self.left = self.left.saturating_sub(clock.took(model));
        self.runs += 1;
        match outcome {
            Err(_) if self.left.is_zero() => Err(Ends::Late),
            Err(_) if clock.passed() >= wall => Err(Ends::Starved),
            other => other.map_err(Ends::Failed),
        }
    }
}

/// A run that fails says nothing about the rows of others.
fn skip_failed(outcome: Result<(), Ends>) -> Result<(), Ends> {
    match outcome {
        Err(Ends::Failed(_)) => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests;
