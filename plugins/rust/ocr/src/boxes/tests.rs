use gristmill_plugin::Tensor;

use super::*;

const WIDTH: usize = 64;
const HEIGHT: usize = 32;

/// A map with this value in these columns and rows.
fn map(value: f32, columns: std::ops::Range<usize>, rows: std::ops::Range<usize>) -> Tensor {
    let mut values = vec![0.1; WIDTH * HEIGHT];
    for row in rows {
        values[row * WIDTH..][columns.clone()].fill(value);
    }
    Tensor::from_slice(&[1, 1, HEIGHT, WIDTH], &values).unwrap()
}

#[test]
fn a_bar_of_text_has_a_box_that_is_larger() {
    let map = map(0.9, 8..51, 10..15);
    let found = of_map(&map, (64, 32)).unwrap();
    assert_eq!(found, [[[4.0, 6.0], [55.0, 6.0], [55.0, 19.0], [4.0, 19.0]]]);
    // The same on a page of twice the size: its last pixels are 127 and 63.
    let found = of_map(&map, (128, 64)).unwrap();
    assert_eq!(found, [[[8.0, 12.0], [110.0, 12.0], [110.0, 38.0], [8.0, 38.0]]]);
}

#[test]
fn a_box_ends_at_the_page() {
    let found = of_map(&map(0.9, 0..64, 0..32), (64, 32)).unwrap();
    assert_eq!(found, [[[0.0, 0.0], [63.0, 0.0], [63.0, 31.0], [0.0, 31.0]]]);
}

#[test]
fn what_is_small_or_unlikely_is_no_text() {
    for map in [map(0.4, 8..51, 10..15), map(0.9, 8..10, 10..15), map(0.3, 8..51, 10..15)] {
        assert!(of_map(&map, (64, 32)).unwrap().is_empty());
    }
    let other = Tensor::from_slice(&[1, 2, 2], &[0.0_f32; 4]).unwrap();
    assert!(
        matches!(of_map(&other, (64, 32)), Err(Failure::Internal(why)) if why.contains("[1, 2, 2]"))
    );
}

#[test]
fn boxes_of_one_row_go_from_left_to_right() {
    let at = |x: f32, y: f32| [[x, y]; 4];
    let mut boxes = [at(50.0, 12.0), at(0.0, 40.0), at(20.0, 8.0), at(5.0, 15.0)];
    sort(&mut boxes);
    assert_eq!(boxes, [at(5.0, 15.0), at(20.0, 8.0), at(50.0, 12.0), at(0.0, 40.0)]);
}

#[test]
fn a_row_covers_the_columns_of_the_outline() {
    let corners = [[2.0, 0.0], [10.0, 4.0], [8.0, 8.0], [0.0, 4.0]];
    assert_eq!(columns(&corners, 0.0), Some((2.0, 3.0)));
    assert_eq!(columns(&corners, 4.0), Some((0.0, 10.0)));
    assert_eq!(columns(&corners, 9.0), None);
}
