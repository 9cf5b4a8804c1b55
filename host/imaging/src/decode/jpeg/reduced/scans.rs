//! The tables and the scans of a stream, in their order.

use super::super::frame::{Frame, Segment};
use super::super::marker;
use super::bits::Bits;
use super::blocks::{Carry, ComponentScan, SpectralBand, Stored};
use super::codes::{Baseline, Codes};
use super::fault::{damaged, ends_early};
use super::layout::{Layout, Plane};
use super::rows::Rows;
use super::transform::{NOWHERE, Values};
use crate::decode::clock::Clock;
use crate::decode::walk::Walk;
use crate::error::ImageError;
use crate::work::Workspace;

/// The tables of a stream, of which there are four of each kind.
#[derive(Default)]
struct Tables {
    quantisers: [Option<[u16; 64]>; 4],
    differences: [Option<Codes>; 4],
    coefficients: [Option<Codes>; 4],
    baselines: [Option<Baseline>; 4],
    /// Units between two restart markers. None where 0.
    restart: usize,
}

/// A component in a scan: its plane, and its tables.
struct Chosen {
    plane: usize,
    differences: usize,
    coefficients: usize,
}

/// The coefficients of a component, for an image of several scans.
struct Store {
    values: Vec<i16>,
    nonzero: Vec<u64>,
}

/// Decodes the scans of a stream.
pub(super) struct Scans<'a> {
    work: Workspace<'a>,
    frame: &'a Frame,
    layout: &'a Layout,
    tables: Tables,
    /// The quantisers of each component, from its first scan on.
    factors: Vec<Option<[f32; 64]>>,
    /// Empty for an image of one scan, whose rows are made at once.
    stores: Vec<Store>,
}

impl<'a> Scans<'a> {
    pub(super) fn new(work: Workspace<'a>, frame: &'a Frame, layout: &'a Layout) -> Self {
        let store = |plane: &Plane| {
            let blocks = layout.units_across * layout.units_down * plane.across * plane.down;
            Store {
                values: vec![0; blocks * plane.transform.kept()],
                nonzero: vec![0; if frame.is_progressive { blocks } else { 0 }],
            }
        };
        let planes = if frame.is_one_scan() { &[][..] } else { &layout.planes[..] };
        Self {
            work,
            frame,
            layout,
            tables: Tables::default(),
            factors: vec![None; layout.planes.len()],
            stores: planes.iter().map(store).collect(),
        }
    }

    /// Decode all scans of `stream` into `rows`.
    pub(super) fn decode(mut self, stream: &[u8], rows: &mut Rows<'_>) -> Result<(), ImageError> {
        let mut walk = Walk::new(self.work.check);
        let mut clock = Clock::new(self.work);
        let mut next = 2;
        while let Some(segment) = Segment::find(stream, next, &mut walk)? {
            next = segment.range.end;
            let data = &stream[segment.data.clone()];
            match segment.marker {
                marker::DQT => self.tables.take_quantisers(data).ok_or_else(damaged)?,
                marker::DHT => self.tables.take_codes(data, &mut clock).ok_or_else(damaged)?,
                marker::DRI => {
                    let [high, low, ..] = *data else { return Err(damaged()) };
                    self.tables.restart = u16::from_be_bytes([high, low]).into();
                }
                marker::SOS => {
                    let chosen = self.begin(data)?;
                    let mut bits = Bits::new(stream, next);
                    if self.stores.is_empty() {
                        return self.make_rows(&chosen, &mut bits, rows, &mut clock);
                    }
                    self.store(&chosen, data, &mut bits, &mut clock)?;
                }
                _ => {}
            }
        }
        self.make_stored_rows(rows, &mut clock)
    }

    /// The components of a scan with this header.
    fn begin(&mut self, header: &[u8]) -> Result<Vec<Chosen>, ImageError> {
        let [count, rest @ ..] = header else { return Err(damaged()) };
        let mut chosen = vec![];
        for [id, tables] in rest.as_chunks().0.iter().take(usize::from(*count)) {
            let plane = self.layout.planes.iter().position(|plane| plane.id == *id);
            let plane = plane.ok_or_else(damaged)?;
            let (differences, coefficients) = (usize::from(tables >> 4), usize::from(tables & 15));
            if differences > 3 || coefficients > 3 {
                return Err(damaged());
            }
            let Plane { quantiser, transform, .. } = &self.layout.planes[plane];
            if self.factors[plane].is_none() {
                let quantisers = self.tables.quantisers.get(usize::from(*quantiser));
                let quantisers = quantisers.and_then(Option::as_ref).ok_or_else(damaged)?;
                self.factors[plane] = Some(transform.factors(quantisers));
            }
            if !self.frame.is_progressive {
                let codes = self.tables.coefficients[coefficients].as_ref().ok_or_else(damaged)?;
                self.tables.baselines[coefficients].get_or_insert_with(|| Baseline::new(codes));
            }
            chosen.push(Chosen { plane, differences, coefficients });
        }
        let is_one = self.stores.is_empty();
        if chosen.is_empty() || is_one && chosen.len() != self.layout.planes.len() {
            return Err(damaged());
        }
        Ok(chosen)
    }

    fn component(&self, chosen: &Chosen) -> ComponentScan<'_> {
        ComponentScan {
            transform: &self.layout.planes[chosen.plane].transform,
            differences: self.tables.differences[chosen.differences].as_ref(),
            coefficients: self.tables.coefficients[chosen.coefficients].as_ref(),
            baseline: self.tables.baselines[chosen.coefficients].as_ref(),
        }
    }

    /// Decode the only scan of an image, and make each row of units as soon as it is complete.
    fn make_rows(
        &self,
        chosen: &[Chosen],
        bits: &mut Bits<'_>,
        rows: &mut Rows<'_>,
        clock: &mut Clock<'_>,
    ) -> Result<(), ImageError> {
        let components: Vec<_> = chosen.iter().map(|chosen| self.component(chosen)).collect();
        let mut carries = [Carry::default(); 4];
        let mut values: Values = [0; NOWHERE + 1];
        let mut restarts = Restarts::new(self.tables.restart);
        for row in 0..self.layout.units_down {
            for unit in 0..self.layout.units_across {
                if restarts.is_next() {
                    restart(bits, &mut carries)?;
                }
                for ((chosen, component), carry) in chosen.iter().zip(&components).zip(&mut carries)
                {
                    let plane = &self.layout.planes[chosen.plane];
                    let kept = plane.transform.kept();
                    let factors = self.factors[chosen.plane].as_ref().ok_or_else(damaged)?;
                    for down in 0..plane.down {
                        for across in 0..plane.across {
                            values[..kept].fill(0);
                            component.baseline(bits, carry, &mut values)?;
                            let place = (unit * plane.across + across, down);
                            rows.make(chosen.plane, place, &values[..kept], factors);
                        }
                    }
                }
                clock.poll_before_row(UNIT_COST);
            }
            if bits.is_overrun() {
                return Err(ends_early());
            }
            rows.write(row);
        }
        Ok(())
    }

    /// Decode one of several scans into the stores.
    fn store(
        &mut self,
        chosen: &[Chosen],
        header: &[u8],
        bits: &mut Bits<'_>,
        clock: &mut Clock<'_>,
    ) -> Result<(), ImageError> {
        let mut stores = std::mem::take(&mut self.stores);
        let components: Vec<_> = chosen.iter().map(|chosen| self.component(chosen)).collect();
        let part = match *header {
            [.., first, last, depth] if self.frame.is_progressive => Some(SpectralBand {
                first: first.into(),
                last: last.into(),
                bit: u32::from(depth & 15),
                is_refinement: depth >> 4 > 0,
            }),
            _ => None,
        };
        let mut carries = [Carry::default(); 4];
        let mut restarts = Restarts::new(self.tables.restart);
        let layout = self.layout;
        let is_alone = chosen.len() == 1;
        let first = &layout.planes[chosen[0].plane];
        let (units_across, units_down) = match is_alone {
            true => (first.alone_across, first.alone_down),
            false => (layout.units_across, layout.units_down),
        };
        let mut values: Values = [0; NOWHERE + 1];
        for row in 0..units_down {
            for unit in 0..units_across {
                if restarts.is_next() {
                    restart(bits, &mut carries)?;
                }
                for ((chosen, component), carry) in chosen.iter().zip(&components).zip(&mut carries)
                {
                    let plane = &layout.planes[chosen.plane];
                    let (across, down) = if is_alone { (1, 1) } else { (plane.across, plane.down) };
                    let kept = plane.transform.kept();
                    let Store { values: stored, nonzero } = &mut stores[chosen.plane];
                    for (y, x) in (0..down).flat_map(|y| (0..across).map(move |x| (y, x))) {
                        let stride = layout.units_across * plane.across;
                        let block = (row * down + y) * stride + unit * across + x;
                        let stored = &mut stored[block * kept..][..kept];
                        if let Some(part) = part {
                            let nonzero = &mut nonzero[block];
                            let block = Stored { values: stored, nonzero };
                            component.progressive(bits, part, carry, block)?;
                        } else {
                            values[..kept].fill(0);
                            component.baseline(bits, carry, &mut values)?;
                            stored.copy_from_slice(&values[..kept]);
                        }
                    }
                }
                clock.poll_before_row(UNIT_COST);
            }
            if bits.is_overrun() {
                return Err(ends_early());
            }
        }
        self.stores = stores;
        Ok(())
    }

    /// Make all rows of the stored coefficients.
    fn make_stored_rows(
        &self,
        rows: &mut Rows<'_>,
        clock: &mut Clock<'_>,
    ) -> Result<(), ImageError> {
        if self.stores.is_empty() {
            return Err(damaged());
        }
        for row in 0..self.layout.units_down {
            for (index, plane) in self.layout.planes.iter().enumerate() {
                let factors = self.factors[index].as_ref().ok_or_else(damaged)?;
                let (blocks, kept) =
                    (self.layout.units_across * plane.across, plane.transform.kept());
                for down in 0..plane.down {
                    let first = (row * plane.down + down) * blocks;
                    let values = &self.stores[index].values[first * kept..][..blocks * kept];
                    for (across, values) in values.chunks_exact(kept).enumerate() {
                        rows.make(index, (across, down), values, factors);
                    }
                    clock.poll_before_row(blocks * UNIT_COST);
                }
            }
            rows.write(row);
        }
        Ok(())
    }
}

/// The bytes of pixels whose making takes about as long as a unit of blocks.
const UNIT_COST: usize = 64;

/// The bytes for which a table of codes counts.
const CODES_COST: usize = 1 << 10;

impl Tables {
    fn take_quantisers(&mut self, mut data: &[u8]) -> Option<()> {
        while let [kind, rest @ ..] = data {
            let (table, len) = (usize::from(kind & 15), if kind >> 4 > 0 { 128 } else { 64 });
            let (values, rest) = rest.split_at_checked(len)?;
            let mut quantisers = [0; 64];
            if len == 64 {
                quantisers.iter_mut().zip(values).for_each(|(slot, value)| *slot = (*value).into());
            } else {
                let values = values.as_chunks().0.iter().map(|pair| u16::from_be_bytes(*pair));
                quantisers.iter_mut().zip(values).for_each(|(slot, value)| *slot = value);
            }
            *self.quantisers.get_mut(table)? = Some(quantisers);
            data = rest;
        }
        Some(())
    }

    fn take_codes(&mut self, mut data: &[u8], clock: &mut Clock<'_>) -> Option<()> {
        while let [kind, rest @ ..] = data {
            clock.poll_before_row(CODES_COST);
            let (counts, rest) = rest.split_first_chunk::<16>()?;
            let count = counts.iter().map(|count| usize::from(*count)).sum();
            let (symbols, rest) = rest.split_at_checked(count)?;
            let (table, codes) = (usize::from(kind & 15), Codes::new(counts, symbols)?);
            if kind >> 4 == 0 {
                *self.differences.get_mut(table)? = Some(codes);
            } else {
                *self.coefficients.get_mut(table)? = Some(codes);
                self.baselines[table] = None;
            }
            data = rest;
        }
        Some(())
    }
}

/// Counts the units up to the next restart marker.
struct Restarts {
    every: usize,
    left: usize,
}

impl Restarts {
    fn new(every: usize) -> Self {
        Self { every, left: every }
    }

    /// Whether a marker stands before the next unit.
    #[inline]
    fn is_next(&mut self) -> bool {
        let is_next = self.every > 0 && self.left == 0;
        if is_next {
            self.left = self.every;
        }
        self.left = self.left.saturating_sub(1);
        is_next
    }
}

fn restart(bits: &mut Bits<'_>, carries: &mut [Carry; 4]) -> Result<(), ImageError> {
    if bits.is_overrun() || !bits.restart() {
        return Err(ends_early());
    }
    *carries = [Carry::default(); 4];
    Ok(())
}
