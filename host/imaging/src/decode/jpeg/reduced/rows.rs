//! The rows of a smaller image, from the pixels of its components.

use super::super::colors::Colors;
use super::layout::Layout;
use crate::decode::canvas::{Canvas, Format, RowPixels};

/// Makes the pixels of one row of units after the other, and writes them to the image.
pub(super) struct Rows<'a> {
    layout: &'a Layout,
    colors: Colors,
    canvas: &'a mut Canvas,
    /// The pixels of each component in a row of units. Empty for one that is not needed.
    strips: Vec<Vec<u8>>,
    /// A row of each component, each pixel as often as it is repeated.
    lines: Vec<Vec<u8>>,
}

impl<'a> Rows<'a> {
    pub(super) fn new(layout: &'a Layout, colors: Colors, canvas: &'a mut Canvas) -> Self {
        let needed = if canvas.gray && colors.has_luma() { 1 } else { layout.planes.len() };
        let planes = layout.planes.iter().take(needed);
        let strips = planes.clone().map(|plane| vec![0; plane.strip_bytes()]).collect();
        let line = |repeats: usize, stride: usize| if repeats > 1 { repeats * stride } else { 0 };
        let lines = planes.map(|plane| vec![0; line(plane.repeats_across, plane.stride)]).collect();
        Self { layout, colors, canvas, strips, lines }
    }

    /// Make a block of a component: the one at this column, and at this row within its units.
    #[inline]
    pub(super) fn make(
        &mut self,
        index: usize,
        (column, row): (usize, usize),
        values: &[i16],
        factors: &[f32; 64],
    ) {
        let Some(strip) = self.strips.get_mut(index) else { return };
        let plane = &self.layout.planes[index];
        let transform = &plane.transform;
        let start = row * transform.down * plane.stride + column * transform.across;
        transform.make(values, factors, &mut strip[start..], plane.stride);
    }

    /// Write the rows of the `row`th row of units.
    pub(super) fn write(&mut self, row: usize) {
        let height = self.canvas.size.height as usize;
        let top = row * self.layout.rows_of_unit;
        for y in top..(top + self.layout.rows_of_unit).min(height) {
            self.write_row(y, y - top);
        }
    }

    fn write_row(&mut self, y: usize, row: usize) {
        let width = self.canvas.size.width as usize;
        for ((strip, line), plane) in
            self.strips.iter().zip(&mut self.lines).zip(&self.layout.planes)
        {
            let row = &strip[row / plane.repeats_down * plane.stride..][..plane.stride];
            if plane.repeats_across > 1 {
                let repeated = line.chunks_exact_mut(plane.repeats_across).zip(row);
                repeated.for_each(|(pixels, value)| pixels.fill(*value));
            }
        }
        let mut of = self.strips.iter().zip(&self.lines).zip(&self.layout.planes).map(
            |((strip, line), plane)| {
                let row = &strip[row / plane.repeats_down * plane.stride..][..plane.stride];
                if line.is_empty() { &row[..width] } else { &line[..width] }
            },
        );
        let target = RowPixels::row(y);
        match (of.next(), of.next(), of.next()) {
            (Some(first), Some(second), Some(third)) => {
                let pixels = first.iter().zip(second).zip(third);
                if self.colors == Colors::Rgb {
                    self.canvas
                        .put(target, pixels.map(|((red, green), blue)| [*red, *green, *blue]));
                } else {
                    self.canvas.put(target, pixels.map(|((y, cb), cr)| rgb(*y, *cb, *cr)));
                }
            }
            (Some(only), ..) => self.canvas.write(target, Format::Gray, only),
            _ => {}
        }
    }
}

/// The colour of a luma and two chromas, as JFIF defines it.
#[inline]
fn rgb(y: u8, cb: u8, cr: u8) -> [u8; 3] {
    let (y, cb, cr) = (i32::from(y) << 16 | 1 << 15, i32::from(cb) - 128, i32::from(cr) - 128);
    let red = y + 91_881 * cr;
    let green = y - 22_554 * cb - 46_802 * cr;
    let blue = y + 116_130 * cb;
    [red, green, blue].map(|value| (value >> 16).clamp(0, 255) as u8)
}
