//! Shapes on a picture. Lines change the same pixels as in the host.

use super::{Color, ImageError, Label, Pixels, Polygon, Rectangle, Shape, luma};

/// What a call may draw at most, as in the host.
const SHAPES_MAX: usize = 4096;
const POLYGON_POINTS_MAX: usize = 1024;
const POINTS_MAX: usize = 65_536;
const LABEL_CHARS_MAX: usize = 256;
const THICKNESS_MAX: u32 = 64;
const LABEL_SIZE_MAX: u32 = 64;

/// The rows of a character. The lowest bit is the pixel to the left.
const CHARACTER: [u8; 8] = [0x7e, 0x42, 0x42, 0x42, 0x42, 0x42, 0x7e, 0];

pub(super) fn draw(pixels: &Pixels, shapes: &[Shape]) -> Result<Pixels, ImageError> {
    check(shapes).map_err(ImageError::InvalidArgument)?;
    let mut canvas = Canvas { pixels, data: pixels.data.to_vec(), color: [0; 3] };
    for shape in shapes {
        match shape {
            Shape::Rectangle(shape) => {
                canvas.color = shape.color.into();
                rectangle(&mut canvas, shape);
            }
            Shape::Polygon(shape) => {
                canvas.color = shape.color.into();
                polygon(&mut canvas, shape);
            }
            Shape::Label(shape) => {
                canvas.color = shape.color.into();
                label(&mut canvas, shape);
            }
        }
    }
    let data = canvas.data.into();
    Ok(Pixels { width: pixels.width, height: pixels.height, color: pixels.color, data })
}

fn check(shapes: &[Shape]) -> Result<(), String> {
    if shapes.len() > SHAPES_MAX {
        return Err(format!("{} shapes; the limit is {SHAPES_MAX}", shapes.len()));
    }
    let points = |shape: &Shape| match shape {
        Shape::Polygon(shape) => shape.points.len(),
        Shape::Rectangle(_) | Shape::Label(_) => 0,
    };
    let all: usize = shapes.iter().map(points).sum();
    if all > POINTS_MAX {
        return Err(format!("{all} points of polygons; the limit is {POINTS_MAX}"));
    }
    for (index, shape) in shapes.iter().enumerate() {
        let count = points(shape);
        if count > POLYGON_POINTS_MAX {
            let why = format!("{count} points; the limit is {POLYGON_POINTS_MAX}");
            return Err(format!("shapes[{index}]: {why}"));
        }
        let (name, value, max) = match shape {
            Shape::Rectangle(shape) => ("thickness", shape.thickness, THICKNESS_MAX),
            Shape::Polygon(shape) => ("thickness", shape.thickness, THICKNESS_MAX),
            Shape::Label(shape) if shape.text.chars().count() > LABEL_CHARS_MAX => {
                let why = format!("the text has more than {LABEL_CHARS_MAX} characters");
                return Err(format!("shapes[{index}]: {why}"));
            }
            Shape::Label(shape) => ("size", shape.size, LABEL_SIZE_MAX),
        };
        if !(1..=max).contains(&value) {
            return Err(format!("shapes[{index}]: {name} is {value}; it must be 1 to {max}"));
        }
    }
    Ok(())
}

struct Canvas<'a> {
    pixels: &'a Pixels,
    data: Vec<u8>,
    color: [u8; 3],
}

impl Canvas<'_> {
    /// Fill the part of a rectangle that is within the picture.
    fn fill(&mut self, left: i64, top: i64, width: i64, height: i64) {
        let (own_width, own_height) = (self.pixels.width, self.pixels.height);
        let cut = |start: i64, length: i64, side: u32| {
            let (start, end) = (start.max(0), (start + length).min(side.into()));
            start as usize..end.max(start) as usize
        };
        let (columns, rows) = (cut(left, width, own_width), cut(top, height, own_height));
        let gray = [luma(self.color)];
        let value = if self.pixels.color == Color::Gray { &gray[..] } else { &self.color[..] };
        let channels = value.len();
        for row in rows {
            let start = row * own_width as usize;
            let part = (start + columns.start) * channels..(start + columns.end) * channels;
            let pixels = self.data.get_mut(part).unwrap_or_default();
            pixels.chunks_exact_mut(channels).for_each(|pixel| pixel.copy_from_slice(value));
        }
    }
}

fn rectangle(canvas: &mut Canvas<'_>, shape: &Rectangle) {
    let (left, top) = (i64::from(shape.x), i64::from(shape.y));
    let (width, height) = (i64::from(shape.width), i64::from(shape.height));
    let line = i64::from(shape.thickness);
    if 2 * line >= width.min(height) {
        return canvas.fill(left, top, width, height);
    }
    canvas.fill(left, top, width, line);
    canvas.fill(left, top + height - line, width, line);
    canvas.fill(left, top + line, line, height - 2 * line);
    canvas.fill(left + width - line, top + line, line, height - 2 * line);
}

fn polygon(canvas: &mut Canvas<'_>, shape: &Polygon) {
    let points = &shape.points;
    let side = i64::from(shape.thickness);
    for (a, b) in points.iter().zip(points.iter().cycle().skip(1)) {
        line(canvas, *a, *b, side);
    }
    for (x, y) in points {
        let (left, top) = (i64::from(*x) - (side - 1) / 2, i64::from(*y) - (side - 1) / 2);
        canvas.fill(left, top, side, side);
    }
}

/// A bar at each place along the side in which the line is longer.
fn line(canvas: &mut Canvas<'_>, a: (i32, i32), b: (i32, i32), thickness: i64) {
    let wide = |(x, y): (i32, i32)| (i64::from(x), i64::from(y));
    let (a, b) = (wide(a), wide(b));
    let is_flat = (b.0 - a.0).abs() >= (b.1 - a.1).abs();
    let turned = |(x, y): (i64, i64)| if is_flat { (x, y) } else { (y, x) };
    let (a, b) = (turned(a), turned(b));
    let (from, to) = if a.0 <= b.0 { (a, b) } else { (b, a) };
    let slope = match to.0 - from.0 {
        0 => 0.0,
        length => (to.1 - from.1) as f64 / length as f64,
    };
    let rounded = |value: f64| (value + 0.5).floor() as i64;
    let bar = rounded(thickness as f64 * (1.0 + slope * slope).sqrt());
    let side = if is_flat { canvas.pixels.width } else { canvas.pixels.height };
    for place in from.0.max(0)..=to.0.min(i64::from(side) - 1) {
        let middle = rounded(from.1 as f64 + (place - from.0) as f64 * slope);
        let start = middle - (bar - 1) / 2;
        if is_flat {
            canvas.fill(place, start, 1, bar);
        } else {
            canvas.fill(start, place, bar, 1);
        }
    }
}

fn label(canvas: &mut Canvas<'_>, shape: &Label) {
    let side = i64::from(shape.size);
    for (index, _) in shape.text.chars().enumerate().filter(|(_, char)| !char.is_whitespace()) {
        let left = i64::from(shape.x) + 8 * index as i64 * side;
        for (row, bits) in (0_i64..).zip(CHARACTER) {
            let top = i64::from(shape.y) + row * side;
            for column in (0_i64..8).filter(|column| bits >> column & 1 == 1) {
                canvas.fill(left + column * side, top, side, side);
            }
        }
    }
}
