//! Shapes on images: which pixels change.

use std::cell::Cell;

use gristmill_core::BufferPool;
use gristmill_imaging::{
    ImageError, Label, Pixels, Polygon, Rectangle, Shape, Size, Stopped, Workspace,
};

use super::{pool, unstopped};

const WHITE: [u8; 3] = [255; 3];

fn black(width: u32, height: u32, gray: bool) -> Pixels {
    let size = Size { width, height };
    let bytes = size.pixels() as usize * if gray { 1 } else { 3 };
    Pixels::new(size, gray, pool().zeroed(bytes).freeze()).unwrap()
}

fn rectangle(x: i32, y: i32, width: u32, height: u32, thickness: u32) -> Shape {
    Shape::Rectangle(Rectangle { x, y, width, height, thickness, color: WHITE })
}

fn polygon(points: &[(i32, i32)], thickness: u32) -> Shape {
    Shape::Polygon(Polygon { points: points.into(), thickness, color: WHITE })
}

fn label(x: i32, y: i32, text: &str, size: u32) -> Shape {
    Shape::Label(Label { x, y, text: text.into(), size, color: WHITE })
}

/// The rows of a black picture with white shapes on it.
fn rows(width: u32, height: u32, shapes: &[Shape]) -> Vec<String> {
    let drawn = black(width, height, true).draw(unstopped(&pool()), shapes).unwrap();
    let mark = |value: &u8| if *value == 0 { '.' } else { '#' };
    let row = |row: &[u8]| -> String { row.iter().map(mark).collect() };
    drawn.data().chunks(width as usize).map(row).collect()
}

fn refused(shapes: &[Shape]) -> String {
    match black(4, 4, true).draw_cost(shapes) {
        Err(ImageError::InvalidArgument(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_rectangle_lies_within_its_edges_and_the_picture() {
    assert_eq!(
        rows(8, 6, &[rectangle(1, 1, 6, 4, 1)]),
        ["........", ".######.", ".#....#.", ".#....#.", ".######.", "........"]
    );
    assert_eq!(
        rows(8, 6, &[rectangle(-2, -1, 7, 6, 2)]),
        ["#####...", "...##...", "...##...", "#####...", "#####...", "........"]
    );
    // Half as thick as a side: filled.
    assert_eq!(rows(4, 3, &[rectangle(1, 0, 3, 2, 1)]), [".###", ".###", "...."]);
    for (width, height) in [(0, 5), (5, 0)] {
        assert_eq!(rows(2, 2, &[rectangle(0, 0, width, height, 9)]), ["..", ".."]);
    }
    let huge = rectangle(i32::MIN, i32::MIN, u32::MAX, u32::MAX, 64);
    assert_eq!(rows(2, 1, &[huge]), [".."]);
}

#[test]
fn a_polygon_is_closed_and_as_thick_as_asked() {
    assert_eq!(
        rows(8, 6, &[polygon(&[(1, 1), (6, 1), (1, 4)], 1)]),
        ["........", ".######.", ".#..##..", ".###....", ".#......", "........"]
    );
    assert_eq!(
        rows(9, 6, &[polygon(&[(1, 1), (7, 3)], 2)]),
        [".........", ".##......", ".#####...", "...######", "......###", "........."]
    );
    assert_eq!(
        rows(9, 6, &[polygon(&[(4, 3)], 3)]),
        [".........", ".........", "...###...", "...###...", "...###...", "........."]
    );
    assert_eq!(rows(3, 1, &[polygon(&[], 3)]), ["..."]);
    let diagonal = polygon(&[(i32::MIN, i32::MIN), (i32::MAX, i32::MAX)], 1);
    assert_eq!(rows(3, 3, &[diagonal]), ["#..", ".#.", "..#"]);
}

#[test]
fn a_label_has_the_characters_of_the_font() {
    let letter = [
        "..##....", ".####...", "##..##..", "##..##..", "######..", "##..##..", "##..##..",
        "........",
    ];
    assert_eq!(rows(8, 8, &[label(0, 0, "A", 1)]), letter);
    // The font lacks it.
    let lacking = [
        ".######.", ".#....#.", ".#....#.", ".#....#.", ".#....#.", ".#....#.", ".######.",
        "........",
    ];
    for text in ["中", "\u{1}", "\u{80}"] {
        assert_eq!(rows(8, 8, &[label(0, 0, text, 1)]), lacking, "{text:?}");
    }
    for text in ["é", "Ω", "~"] {
        assert_ne!(rows(8, 8, &[label(0, 0, text, 1)]), lacking, "{text}");
    }
    assert_eq!(rows(8, 1, &[label(0, 0, " \u{a0}", 1)]), ["........"]);
    // The second character, twice as large, without its first row.
    let large = rows(16, 16, &[label(-16, -2, " A", 2)]);
    assert_eq!(large[0], "..########......");
    assert_eq!(large[1], large[0]);
    assert_eq!(large[2], "####....####....");
}

/// Only the characters at the edges are seen, in part.
#[test]
fn a_long_label_is_cut_at_both_edges() {
    let whole = rows(40, 8, &[label(0, 0, "abcde", 1)]);
    for x in -20..20 {
        let cut = rows(10, 8, &[label(x, 0, "abcde", 1)]);
        for (cut, whole) in cut.iter().zip(&whole) {
            let pixel = |at: i32| whole.as_bytes().get(usize::try_from(at - x).ok()?).copied();
            let expected: Vec<_> = (0..10).map(|at| pixel(at).unwrap_or(b'.')).collect();
            assert_eq!(cut.as_bytes(), expected, "{x}");
        }
    }
    let text = "A".repeat(256);
    for (x, y) in [(i32::MIN, 0), (i32::MAX, 0), (0, i32::MIN), (0, i32::MAX), (0, -8), (8, 0)] {
        assert_eq!(rows(8, 1, &[label(x, y, &text, 1)]), ["........"], "{x}, {y}");
    }
}

#[test]
fn colours_are_luma_on_a_gray_picture_and_later_shapes_lie_above() {
    let shape = |x, color| {
        Shape::Rectangle(Rectangle { x, y: 0, width: 2, height: 1, thickness: 1, color })
    };
    let shapes = [shape(0, [200, 100, 50]), shape(1, [0, 0, 255])];
    let coloured = black(4, 1, false).draw(unstopped(&pool()), &shapes).unwrap();
    assert_eq!(coloured.data(), [200, 100, 50, 0, 0, 255, 0, 0, 255, 0, 0, 0]);
    let gray = black(4, 1, true).draw(unstopped(&pool()), &shapes).unwrap();
    assert_eq!(gray.data(), [124, 29, 29, 0]);
}

#[test]
fn numbers_out_of_range_are_refused() {
    let ok = || rectangle(0, 0, 1, 1, 1);
    assert_eq!(
        refused(&[ok(), rectangle(0, 0, 1, 1, 65)]),
        "shapes[1]: thickness is 65; it must be 1 to 64"
    );
    assert!(refused(&[polygon(&[(0, 0)], 0)]).contains("thickness is 0"));
    assert!(refused(&[label(0, 0, "A", 0)]).contains("size is 0"));
    assert!(refused(&[label(0, 0, &"é".repeat(257), 1)]).contains("256 characters"));
    assert!(refused(&[label(0, 0, &"A".repeat(1025), 1)]).contains("256 characters"));
    assert!(black(1, 1, true).draw_cost(&[label(0, 0, &"中".repeat(256), 1)]).is_ok());
    assert!(refused(&[polygon(&[(0, 0); 1025], 1)]).contains("1025 points"));
    assert!(refused(&vec![ok(); 4097]).contains("4097 shapes"));
    assert!(refused(&vec![polygon(&[(0, 0); 1024], 1); 65]).contains("66560 points"));
}

/// Shapes outside of the picture cost nearly nothing, and large ones what they fill.
#[test]
fn the_cost_follows_the_pixels_that_change() {
    let picture = black(2_000, 2_000, false);
    let micros = |shapes: &[Shape]| picture.draw_cost(shapes).unwrap().cpu.as_micros();
    let none = micros(&[]);
    let far = 1_000_000_000;
    for shape in [
        rectangle(far, far, 1_000_000, 1_000_000, 64),
        polygon(&[(far, far), (2 * far, far), (far, 2 * far)], 64),
        label(far, 0, &"A".repeat(256), 64),
    ] {
        assert!(micros(&[shape]) <= none + 5);
    }
    let hidden = micros(&vec![label(far, 0, &"A".repeat(256), 64); 4096]);
    assert!(hidden >= none + 4096 * 256 * 5 / 1000, "{hidden} us");
    let filled = micros(&vec![rectangle(0, 0, 128, 128, 64); 4096]);
    assert!(filled >= none + 4096 * 128 * 128 / 1000, "{filled} us");
    // A polygon whose lines go to and fro.
    let lines: Vec<_> = (0..1024).map(|at| (at % 2 * far, at)).collect();
    assert!(micros(&[polygon(&lines, 64)]) >= none + 1024 * 2_000 * 64 / 1000);
}

#[test]
fn drawing_stops_when_it_is_told_to() {
    let picture = black(1_000, 1_000, false);
    let shapes = vec![rectangle(0, 0, 128, 128, 64); 4096];
    let calls = Cell::new(0);
    let check = || {
        calls.set(calls.get() + 1);
        if calls.get() > 6 { Err(Stopped) } else { Ok(()) }
    };
    let pool = BufferPool::new(0);
    let outcome = picture.draw(Workspace { pool: &pool, check: &check }, &shapes).map(drop);
    assert_eq!(outcome, Err(ImageError::Stopped(Stopped)));
    assert_eq!(calls.get(), 7);
}

/// A fill of milliseconds is done in bands.
#[test]
fn a_large_shape_is_filled_with_checks_in_between() {
    let (width, height) = (20_000, 128);
    let picture = black(width, height, true);
    let checks = |shapes: &[Shape]| {
        let calls = Cell::new(0);
        let check = || {
            calls.set(calls.get() + 1);
            Ok(())
        };
        let pool = BufferPool::new(0);
        let drawn = picture.draw(Workspace { pool: &pool, check: &check }, shapes).unwrap();
        (calls.get(), drawn)
    };
    let (copying, _) = checks(&[]);
    let (filling, drawn) = checks(&[rectangle(0, 0, width, height, 64)]);
    assert!(filling >= copying + 8, "{filling} checks, and {copying} without the shape");
    assert!(drawn.data().iter().all(|value| *value != 0));
}
