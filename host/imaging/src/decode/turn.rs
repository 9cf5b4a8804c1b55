//! Turning an image upright in place, so that no second image is held.
//!
//! All of the image but its last columns and rows is divided into square tiles. They are put one
//! behind the other, each moves to its place in the upright image and is turned there, and then
//! its rows are put back into those of the image. The last columns and rows are copied. So pixels
//! that are close to each other move together, which is fast, and little memory is needed.

use image::metadata::Orientation;

use super::canvas::Canvas;
use super::options::DecodeOptions;
use crate::error::{ImageError, Stopped};
use crate::resize::Window;
use crate::work::{Size, Workspace};

/// The pixels along a tile's side, and in a tile.
const SIDE: usize = 32;
const TILE: usize = SIDE * SIDE;

/// The pixels that are moved between two checks.
const MOVED_PIXELS: usize = 256 << 10;

/// The bytes that turning holds besides the image: the last columns and rows, a row or a column
/// of tiles, two tiles, and a byte for each tile.
pub(super) fn bytes(size: Size, options: DecodeOptions) -> u64 {
    let (width, height, side) = (u64::from(size.width), u64::from(size.height), SIDE as u64);
    let pixels = side * (width + height) + side * width.max(height) + 2 * TILE as u64;
    pixels * options.channels() as u64 + size.pixels() / TILE as u64
}

/// The size of the image after a turn.
pub(super) fn turned_size(size: Size, orientation: Orientation) -> Size {
    let area = Area { columns: size.width as usize, rows: size.height as usize };
    let Area { columns, rows } = Turn::of(orientation).area(area);
    Size { width: columns as u32, height: rows as u32 }
}

/// The place of a part of the image, which has this size, after a turn.
pub(super) fn turned_window(part: Window, size: Size, orientation: Orientation) -> Window {
    let turn = Turn::of(orientation);
    let Window { mut left, mut top, width, height } = part;
    if turn.from_right {
        left = f64::from(size.width) - left - width;
    }
    if turn.from_bottom {
        top = f64::from(size.height) - top - height;
    }
    if turn.is_swapped {
        return Window { left: top, top: left, width: height, height: width };
    }
    Window { left, top, width, height }
}

/// Turn the image into its upright orientation.
pub(super) fn turn(
    work: Workspace<'_>,
    canvas: &mut Canvas,
    orientation: Orientation,
) -> Result<(), ImageError> {
    let turn = Turn::of(orientation);
    let size = canvas.size;
    let area = Area { columns: size.width as usize, rows: size.height as usize };
    let data = canvas.data.as_mut();
    if canvas.gray {
        turn.apply(work, data.as_chunks_mut::<1>().0, area)?;
    } else {
        turn.apply(work, data.as_chunks_mut::<3>().0, area)?;
    }
    if turn.is_swapped {
        canvas.size = Size { width: size.height, height: size.width };
    }
    Ok(())
}

/// Where pixels come from: columns and rows are counted from the right and from the bottom, and
/// then columns become rows.
#[derive(Clone, Copy)]
struct Turn {
    from_right: bool,
    from_bottom: bool,
    is_swapped: bool,
}

/// The columns and rows of an image, or of its tiles.
#[derive(Clone, Copy)]
struct Area {
    columns: usize,
    rows: usize,
}

impl Turn {
    fn of(orientation: Orientation) -> Self {
        let (is_swapped, from_right, from_bottom) = match orientation {
            Orientation::NoTransforms => (false, false, false),
            Orientation::FlipHorizontal => (false, true, false),
            Orientation::Rotate180 => (false, true, true),
            Orientation::FlipVertical => (false, false, true),
            Orientation::Rotate90FlipH => (true, false, false),
            Orientation::Rotate90 => (true, false, true),
            Orientation::Rotate270FlipH => (true, true, true),
            Orientation::Rotate270 => (true, true, false),
        };
        Self { from_right, from_bottom, is_swapped }
    }

    /// The area after the turn.
    fn area(self, Area { columns, rows }: Area) -> Area {
        if self.is_swapped { Area { columns: rows, rows: columns } } else { Area { columns, rows } }
    }

    /// The index in the turned area of what is in this row and column of `area`.
    fn place(self, area: Area, row: usize, column: usize) -> usize {
        let row = if self.from_bottom { area.rows - 1 - row } else { row };
        let column = if self.from_right { area.columns - 1 - column } else { column };
        if self.is_swapped { column * area.rows + row } else { row * area.columns + column }
    }

    fn apply<P: Copy + Default>(
        self,
        work: Workspace<'_>,
        pixels: &mut [P],
        area: Area,
    ) -> Result<(), Stopped> {
        let tiles = Area { columns: area.columns / SIDE, rows: area.rows / SIDE };
        let rests = self.rests(area, tiles);
        let len = rests.iter().map(|rest| rest.area.columns * rest.area.rows).sum();
        let mut kept = Vec::with_capacity(len);
        for rest in &rests {
            kept.extend(rest.rows(pixels, area));
        }
        let mut pace = Pace { work, moved: 0 };
        let turned = Tiled { area: self.area(area), tiles: self.area(tiles) };
        Tiled { area, tiles }.gather(pixels, &mut pace)?;
        self.move_tiles(pixels, tiles, &mut pace)?;
        let (top, left) = self.corner(area, tiles);
        turned.spread(pixels, top * turned.area.columns + left, &mut pace)?;
        let mut kept = kept.iter();
        for rest in rests {
            for row in rest.top..rest.top + rest.area.rows {
                for (column, pixel) in (rest.left..rest.left + rest.area.columns).zip(&mut kept) {
                    pixels[self.place(area, row, column)] = *pixel;
                }
                pace.moved(rest.area.columns)?;
            }
        }
        Ok(())
    }

    /// The parts of the image that are in no tile: its last columns, and its last rows.
    fn rests(self, area: Area, tiles: Area) -> [Rest; 2] {
        let (columns, rows) = (tiles.columns * SIDE, tiles.rows * SIDE);
        let right = Area { columns: area.columns - columns, rows: area.rows };
        let bottom = Area { columns, rows: area.rows - rows };
        [Rest { left: columns, top: 0, area: right }, Rest { left: 0, top: rows, area: bottom }]
    }

    /// The row and the column of the first tile in the turned image.
    fn corner(self, area: Area, tiles: Area) -> (usize, usize) {
        let top = if self.from_bottom { area.rows - tiles.rows * SIDE } else { 0 };
        let left = if self.from_right { area.columns - tiles.columns * SIDE } else { 0 };
        if self.is_swapped { (left, top) } else { (top, left) }
    }

    /// Move each tile to its place among the turned tiles, and turn it.
    fn move_tiles<P: Copy + Default>(
        self,
        pixels: &mut [P],
        tiles: Area,
        pace: &mut Pace<'_>,
    ) -> Result<(), Stopped> {
        let mut is_moved = vec![false; tiles.columns * tiles.rows];
        let (mut tile, mut turned) = ([P::default(); TILE], [P::default(); TILE]);
        for first in 0..is_moved.len() {
            if is_moved[first] {
                continue;
            }
            let mut at = first;
            tile.copy_from_slice(&pixels[at * TILE..][..TILE]);
            // Each tile takes the place of the next one, until one takes the first place.
            while !is_moved[at] {
                is_moved[at] = true;
                self.turn_tile(&tile, &mut turned);
                at = self.place(tiles, at / tiles.columns, at % tiles.columns);
                let place = &mut pixels[at * TILE..][..TILE];
                tile.copy_from_slice(place);
                place.copy_from_slice(&turned);
                pace.moved(TILE)?;
            }
        }
        Ok(())
    }

    fn turn_tile<P: Copy>(self, tile: &[P; TILE], turned: &mut [P; TILE]) {
        let area = Area { columns: SIDE, rows: SIDE };
        for (row, pixels) in tile.as_chunks::<SIDE>().0.iter().enumerate() {
            for (column, pixel) in pixels.iter().enumerate() {
                turned[self.place(area, row, column)] = *pixel;
            }
        }
    }
}

/// A part of an image.
struct Rest {
    left: usize,
    top: usize,
    area: Area,
}

impl Rest {
    /// The pixels of its rows, one row after the other.
    fn rows<P: Copy>(&self, pixels: &[P], of: Area) -> impl Iterator<Item = P> {
        let rows = pixels.chunks_exact(of.columns).skip(self.top).take(self.area.rows);
        rows.flat_map(|row| row[self.left..][..self.area.columns].iter().copied())
    }
}

/// An image, and the tiles within it.
struct Tiled {
    area: Area,
    tiles: Area,
}

impl Tiled {
    /// Put the tiles, which begin at the image's first pixel, one behind the other at its
    /// beginning.
    fn gather<P: Copy + Default>(
        &self,
        pixels: &mut [P],
        pace: &mut Pace<'_>,
    ) -> Result<(), Stopped> {
        let width = self.area.columns;
        let mut band = vec![P::default(); self.tiles.columns * TILE];
        for first in 0..self.tiles.rows {
            for row in 0..SIDE {
                let source = &pixels[(first * SIDE + row) * width..][..width];
                for (tile, part) in band.chunks_exact_mut(TILE).zip(source.chunks_exact(SIDE)) {
                    tile[row * SIDE..][..SIDE].copy_from_slice(part);
                }
            }
            // Not beyond the rows that were read.
            pixels[first * band.len()..][..band.len()].copy_from_slice(&band);
            pace.moved(band.len())?;
        }
        Ok(())
    }

    /// Put the rows of the tiles into those of the image. The first tile's first pixel comes to
    /// the place `start`.
    fn spread<P: Copy + Default>(
        &self,
        pixels: &mut [P],
        start: usize,
        pace: &mut Pace<'_>,
    ) -> Result<(), Stopped> {
        let width = self.area.columns;
        let mut band = vec![P::default(); self.tiles.columns * TILE];
        // From the last one on, so that no tile is overwritten that is still to be put.
        for last in (0..self.tiles.rows).rev() {
            let len = band.len();
            band.copy_from_slice(&pixels[last * len..][..len]);
            for row in 0..SIDE {
                let target = &mut pixels[start + (last * SIDE + row) * width..];
                for (tile, part) in band.chunks_exact(TILE).zip(target.chunks_exact_mut(SIDE)) {
                    part.copy_from_slice(&tile[row * SIDE..][..SIDE]);
                }
            }
            pace.moved(band.len())?;
        }
        Ok(())
    }
}

/// Asks the caller from time to time whether to go on.
struct Pace<'a> {
    work: Workspace<'a>,
    moved: usize,
}

impl Pace<'_> {
    fn moved(&mut self, pixels: usize) -> Result<(), Stopped> {
        self.moved += pixels;
        if self.moved >= MOVED_PIXELS {
            self.moved = 0;
            (self.work.check)()?;
        }
        Ok(())
    }
}
