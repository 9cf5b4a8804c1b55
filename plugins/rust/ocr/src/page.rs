//! The picture as the models take it, and the way back to the client's picture.

use gristmill_plugin::image::{self, Border, Color, Filter, Pixels, TensorOptions};
use gristmill_plugin::{Failure, Tensor};

use crate::geometry::Quad;
use crate::resample::resized;

/// A larger picture is shrunk to this length of its longer side.
const LONGER_MAX: u32 = 2000;
/// A smaller picture is enlarged to this length of its shorter side.
const SHORTER_MIN: u32 = 30;
/// A picture that is so low, or so many times as wide as high, gets a border above and below.
const LOW: u32 = 30;
const WIDE: u32 = 8;
/// The model `detect` gets pictures whose shorter side is at least so long.
const DETECTED_SHORTER_MIN: u32 = 736;
/// The most pixels that it gets: its answer has as many values, which must fit into this plugin.
const DETECTED_MAX: u64 = 6_000_000;
/// Sides are multiples of this.
const STEP: f64 = 32.0;

/// The picture as the models take it.
pub(crate) struct Page<'p> {
    picture: &'p Pixels,
    /// What the models get, if that is another picture.
    changed: Option<Pixels>,
    /// Length of a side of the picture over that of the page.
    scale: [f32; 2],
    /// Rows of border above the picture, in pixels of the page.
    above: u32,
}

impl<'p> Page<'p> {
    pub(crate) fn of(picture: &'p Pixels) -> Result<Self, Failure> {
        let (width, height) = (picture.width(), picture.height());
        let mut page = Self { picture, changed: None, scale: [1.0; 2], above: 0 };
        let (shorter, longer) = (width.min(height), width.max(height));
        if longer > LONGER_MAX {
            page.resize(f64::from(LONGER_MAX) / f64::from(longer))?;
        } else if shorter < SHORTER_MIN {
            page.resize(f64::from(SHORTER_MIN) / f64::from(shorter))?;
        }
        let (width, height) = page.size();
        if height <= LOW || width > WIDE * height {
            page.above = (2 * (width / WIDE).max(LOW)).abs_diff(height) / 2;
            let border = Border { left: 0, top: page.above, right: 0, bottom: page.above };
            page.changed = Some(page.pixels().pad(border, &[])?);
        }
        Ok(page)
    }

    fn resize(&mut self, ratio: f64) -> Result<(), Failure> {
        let (width, height) = (self.picture.width(), self.picture.height());
        let to = (scaled(width, ratio), scaled(height, ratio));
        self.changed = Some(self.picture.resize(to.0, to.1, Filter::Bilinear)?);
        self.scale = [width as f32 / to.0 as f32, height as f32 / to.1 as f32];
        Ok(())
    }

    /// What crops are taken from.
    pub(crate) fn pixels(&self) -> &Pixels {
        self.changed.as_ref().unwrap_or(self.picture)
    }

    /// Its width and its height.
    pub(crate) fn size(&self) -> (u32, u32) {
        (self.pixels().width(), self.pixels().height())
    }

    /// The input of the model `detect`: [1, 3, height, width], values from -1 to 1.
    pub(crate) fn detector_input(&self) -> Result<Tensor, Failure> {
        let (width, height) = self.size();
        let shorter = width.min(height).min(DETECTED_SHORTER_MIN);
        let ratio = f64::from(DETECTED_SHORTER_MIN) / f64::from(shorter);
        let to = (scaled(width, ratio), scaled(height, ratio));
        if u64::from(to.0) * u64::from(to.1) > DETECTED_MAX {
            return Err(Failure::unprocessable(format!(
                "the picture is too long and narrow: text would be searched in {}x{} pixels, over \
                 the limit of {DETECTED_MAX}",
                to.0, to.1
            )));
        }
        let half = vec![0.5; 3];
        let options = TensorOptions { mean: half.clone(), std: half, ..image::nchw(Color::Bgr) };
        if to == (width, height) {
            return Ok(self.pixels().to_tensor(&options)?);
        }
        let bytes = self.pixels().data();
        let (columns, rows) = (to.0 as usize, to.1 as usize);
        let resized = resized(bytes.as_chunks().0, width as usize, (columns, rows));
        let resized = Pixels::from_bytes(to.0, to.1, Color::Rgb, resized.as_flattened())?;
        Ok(resized.to_tensor(&options)?)
    }

    /// Corners of the page as corners of the client's picture, cut to its edges.
    pub(crate) fn on_picture(&self, corners: Quad) -> Quad {
        let (width, height) = (self.picture.width() as f32, self.picture.height() as f32);
        corners.map(|[x, y]| {
            let y = y - self.above as f32;
            [(x * self.scale[0]).clamp(0.0, width), (y * self.scale[1]).clamp(0.0, height)]
        })
    }
}

/// A side in another scale: the nearest multiple of 32, and at least that.
fn scaled(side: u32, ratio: f64) -> u32 {
    let steps = ((f64::from(side) * ratio).trunc() / STEP).round_ties_even();
    (steps.max(1.0) * STEP) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(width: u32, height: u32) -> Pixels {
        let bytes = vec![0; width as usize * height as usize * 3];
        Pixels::from_bytes(width, height, Color::Rgb, &bytes).unwrap()
    }

    #[test]
    fn large_and_small_pictures_are_resized_and_boxes_lead_back() {
        for (size, expected) in [
            ((640, 480), (640, 480)),
            ((4000, 3000), (1984, 1504)),
            ((100, 10), (288, 32 + 2 * 20)),
            ((1200, 100), (1200, 300)),
        ] {
            let picture = picture(size.0, size.1);
            let page = Page::of(&picture).unwrap();
            assert_eq!(page.size(), expected, "{size:?}");
            let (right, below) = (expected.0 as f32, (expected.1 - page.above) as f32);
            let above = page.above as f32;
            let corners = [[0.0, above], [right, above], [right, below], [0.0, below]];
            let (width, height) = (size.0 as f32, size.1 as f32);
            let whole = [[0.0, 0.0], [width, 0.0], [width, height], [0.0, height]];
            assert_eq!(page.on_picture(corners), whole, "{size:?}");
            assert_eq!(page.on_picture([[-9.0, -9.0]; 4]), [[0.0; 2]; 4]);
        }
    }

    #[test]
    fn the_detector_gets_multiples_of_32() {
        for (size, dims) in [
            ((320, 480), [1, 3, 1088, 736]),
            ((1000, 800), [1, 3, 800, 992]),
            ((736, 736), [1, 3, 736, 736]),
        ] {
            let picture = picture(size.0, size.1);
            let input = Page::of(&picture).unwrap().detector_input().unwrap();
            assert_eq!(input.dims(), dims, "{size:?}");
            assert_eq!(input.view::<f32>().unwrap().as_slice()[0], -1.0);
        }
        let narrow = picture(30, 1800);
        let refused = Page::of(&narrow).unwrap().detector_input().unwrap_err();
        assert!(matches!(&refused, Failure::Unprocessable(text) if text.contains("736x44160")));
    }
}
