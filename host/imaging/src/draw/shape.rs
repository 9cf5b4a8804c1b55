//! What can be drawn, and the ranges of its numbers.

/// A shape to draw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The outline of a rectangle.
    Rectangle(Rectangle),
    /// The outline of a polygon.
    Polygon(Polygon),
    /// A line of text.
    Label(Label),
}

/// The outline of a rectangle. It lies within the rectangle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rectangle {
    /// Its left edge.
    pub x: i32,
    /// Its upper edge.
    pub y: i32,
    /// Columns. Without columns or rows nothing is drawn.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// The width of the line: 1 to 64 pixels.
    pub thickness: u32,
    /// Red, green, blue.
    pub color: [u8; 3],
}

/// The outline of a polygon: lines from each point to the next, and from the last to the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Polygon {
    /// At most 1024 points (x, y), in the middle of the lines.
    pub points: Vec<(i32, i32)>,
    /// The width of the line: 1 to 64 pixels.
    pub thickness: u32,
    /// Red, green, blue.
    pub color: [u8; 3],
}

/// A line of text. Each character takes a square of 8 * `size` pixels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The left edge of the first character.
    pub x: i32,
    /// The upper edge of the characters.
    pub y: i32,
    /// At most 256 characters.
    pub text: String,
    /// The side of a pixel of the font: 1 to 64 pixels.
    pub size: u32,
    /// Red, green, blue.
    pub color: [u8; 3],
}

/// Maximum points of a polygon, characters of a label, width of a line, and side of a pixel of the
/// font.
const POLYGON_POINTS_MAX: usize = 1024;
const LABEL_CHARS_MAX: usize = 256;
const THICKNESS_MAX: u32 = 64;
const LABEL_SIZE_MAX: u32 = 64;

/// Maximum bytes of a character.
const CHAR_BYTES: usize = 4;

impl Shape {
    /// Whether its numbers are in their ranges.
    pub(super) fn check(&self) -> Result<(), String> {
        let in_range = |name: &str, value: u32, max: u32| {
            if (1..=max).contains(&value) {
                return Ok(());
            }
            Err(format!("{name} is {value}; it must be 1 to {max}"))
        };
        match self {
            Self::Rectangle(shape) => in_range("thickness", shape.thickness, THICKNESS_MAX),
            Self::Polygon(shape) => {
                let count = shape.points.len();
                if count > POLYGON_POINTS_MAX {
                    return Err(format!("{count} points; the limit is {POLYGON_POINTS_MAX}"));
                }
                in_range("thickness", shape.thickness, THICKNESS_MAX)
            }
            Self::Label(shape) => {
                let is_long = shape.text.len() > LABEL_CHARS_MAX * CHAR_BYTES
                    || shape.text.chars().count() > LABEL_CHARS_MAX;
                if is_long {
                    return Err(format!("the text has more than {LABEL_CHARS_MAX} characters"));
                }
                in_range("size", shape.size, LABEL_SIZE_MAX)
            }
        }
    }

    /// The number of its points, if it is a polygon.
    pub(super) fn points(&self) -> usize {
        match self {
            Self::Polygon(shape) => shape.points.len(),
            Self::Rectangle(_) | Self::Label(_) => 0,
        }
    }
}
