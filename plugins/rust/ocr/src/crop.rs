//! The pixels of a line of text, cut out of the page and turned upright, and the models' input of
//! it. Values are rounded as OpenCV rounds them.

use gristmill_plugin::image::Pixels;
use gristmill_plugin::{Failure, Tensor};

use crate::geometry::{Quad, distance};
use crate::resample::{Rgb, resized};

/// The height of a line for the models.
const HEIGHT: usize = 48;
const CHANNELS: usize = 3;
/// A box that is so many times as high as wide is a line that runs from the bottom to the top.
const UPRIGHT_RATIO_MAX: f64 = 1.5;
/// Pixels around a point that a cubic curve through it depends on.
const AROUND: f32 = 2.0;

/// A line of text.
pub(crate) struct Crop {
    width: usize,
    pixels: Vec<Rgb>,
}

impl Crop {
    /// The part of the page within a box of whole pixels.
    pub(crate) fn of(page: &Pixels, corners: &Quad) -> Result<Self, Failure> {
        let [a, b, c, d] = *corners;
        let width = distance(a, b).max(distance(c, d)) as usize;
        let height = distance(a, d).max(distance(b, c)) as usize;
        let is_straight = a[1] == b[1] && b[0] == c[0] && c[1] == d[1] && d[0] == a[0];
        let crop = if is_straight {
            let (x, y) = (a[0] as u32, a[1] as u32);
            let bytes = page.crop(x, y, width as u32, height as u32)?.data();
            Self { width, pixels: bytes.as_chunks().0.to_vec() }
        } else {
            let window = Window::around(page, corners)?;
            let at = projection(corners, width, height);
            let pixels = (0..height)
                .flat_map(|y| (0..width).map(move |x| (x, y)))
                .map(|(x, y)| window.at(at(x, y)));
            Self { width, pixels: pixels.collect() }
        };
        let is_vertical = crop.height() as f64 / crop.width as f64 >= UPRIGHT_RATIO_MAX;
        Ok(if is_vertical { crop.turned_left() } else { crop })
    }

    fn height(&self) -> usize {
        self.pixels.len() / self.width
    }

    /// Its width over its height.
    pub(crate) fn ratio(&self) -> f64 {
        self.width as f64 / self.height() as f64
    }

    /// A quarter of a turn against the clock.
    fn turned_left(&self) -> Self {
        let (width, height) = (self.height(), self.width);
        let pixels = (0..height)
            .flat_map(|y| (0..width).map(move |x| x * height + height - 1 - y))
            .map(|at| self.pixels[at]);
        Self { width, pixels: pixels.collect() }
    }

    /// Half a turn.
    pub(crate) fn turn_around(&mut self) {
        self.pixels.reverse();
    }

    /// The models' input: [1, 3, 48, width], blue, green and red from -1 to 1, with 0 to the right
    /// of the line.
    pub(crate) fn strip(&self, width: usize) -> Result<Tensor, Failure> {
        let drawn = ((HEIGHT as f64 * self.ratio()).ceil() as usize).min(width);
        let pixels = resized(&self.pixels, self.width, (drawn, HEIGHT));
        let mut values = vec![0.0; CHANNELS * HEIGHT * width];
        for (row, line) in pixels.chunks_exact(drawn).enumerate() {
            for channel in 0..CHANNELS {
                let plane = CHANNELS - 1 - channel;
                let values = &mut values[(plane * HEIGHT + row) * width..][..drawn];
                for (value, pixel) in values.iter_mut().zip(line) {
                    *value = (f32::from(pixel[channel]) / 255.0 - 0.5) / 0.5;
                }
            }
        }
        Ok(Tensor::from_slice(&[1, CHANNELS, HEIGHT, width], &values)?)
    }
}

/// Where a pixel of a crop of this size lies on the page: the crop's corners lie on the box's.
fn projection(corners: &Quad, width: usize, height: usize) -> impl Fn(usize, usize) -> [f64; 2] {
    let [a, b, c, d] = corners.map(|corner| corner.map(f64::from));
    let minus = |one: [f64; 2], other: [f64; 2]| [one[0] - other[0], one[1] - other[1]];
    let cross = |one: [f64; 2], other: [f64; 2]| one[0] * other[1] - one[1] * other[0];
    let (right, below) = (minus(b, c), minus(d, c));
    let skew = [a[0] - b[0] + c[0] - d[0], a[1] - b[1] + c[1] - d[1]];
    let g = cross(skew, below) / cross(right, below);
    let h = cross(right, skew) / cross(right, below);
    move |x, y| {
        let (u, v) = (x as f64 / width as f64, y as f64 / height as f64);
        let scale = g * u + h * v + 1.0;
        let place = |axis: usize| {
            let along_u = b[axis] - a[axis] + g * b[axis];
            let along_v = d[axis] - a[axis] + h * d[axis];
            (along_u * u + along_v * v + a[axis]) / scale
        };
        [place(0), place(1)]
    }
}

/// The part of the page around a box.
struct Window {
    left: f64,
    top: f64,
    width: usize,
    pixels: Vec<Rgb>,
}

impl Window {
    fn around(page: &Pixels, corners: &Quad) -> Result<Self, Failure> {
        let range = |axis: usize, side: u32| {
            let values = corners.iter().map(|corner| corner[axis]);
            let first = values.clone().fold(f32::MAX, f32::min) - AROUND;
            let end = values.fold(0.0, f32::max) + AROUND + 1.0;
            (first.max(0.0) as u32, (end as u32).min(side))
        };
        let ((left, right), (top, bottom)) = (range(0, page.width()), range(1, page.height()));
        let bytes = page.crop(left, top, right - left, bottom - top)?.data();
        let pixels = bytes.as_chunks().0.to_vec();
        let width = (right - left) as usize;
        Ok(Self { left: left.into(), top: top.into(), width, pixels })
    }

    /// The colour at a place of the page, by cubic curves. Beyond the edges it goes on as it is
    /// there.
    fn at(&self, [x, y]: [f64; 2]) -> Rgb {
        let (x, y) = (x - self.left, y - self.top);
        let (weights_x, weights_y) = (cubic(x - x.floor()), cubic(y - y.floor()));
        let index = |place: f64, offset: usize, length: usize| {
            (place.floor() + offset as f64 - 1.0).clamp(0.0, (length - 1) as f64) as usize
        };
        let height = self.pixels.len() / self.width;
        let mut sums = [0.0; CHANNELS];
        for (row, weight_y) in weights_y.into_iter().enumerate() {
            let line = &self.pixels[index(y, row, height) * self.width..][..self.width];
            for (column, weight_x) in weights_x.into_iter().enumerate() {
                let pixel = line[index(x, column, self.width)];
                for (sum, value) in sums.iter_mut().zip(pixel) {
                    *sum += weight_x * weight_y * f64::from(value);
                }
            }
        }
        sums.map(|sum| sum.round_ties_even().clamp(0.0, 255.0) as u8)
    }
}

/// The weights of four values for a place between the second and the third one.
fn cubic(part: f64) -> [f64; 4] {
    const A: f64 = -0.75;
    let near = |x: f64| ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0;
    let first = ((A * (part + 1.0) - 5.0 * A) * (part + 1.0) + 8.0 * A) * (part + 1.0) - 4.0 * A;
    let (second, third) = (near(part), near(1.0 - part));
    [first, second, third, 1.0 - first - second - third]
}

#[cfg(test)]
mod tests;
