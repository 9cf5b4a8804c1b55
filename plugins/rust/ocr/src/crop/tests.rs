use gristmill_plugin::image::Color;

use super::*;

/// A page whose pixels have their place as red and green.
fn page() -> Pixels {
    let pixels = (0..60).flat_map(|y| (0..100).flat_map(move |x| [x, y, 7]));
    Pixels::from_bytes(100, 60, Color::Rgb, &pixels.collect::<Vec<u8>>()).unwrap()
}

#[test]
fn an_upright_box_is_cut_out() {
    let corners = [[10.0, 20.0], [14.0, 20.0], [14.0, 24.0], [10.0, 24.0]];
    let mut crop = Crop::of(&page(), &corners).unwrap();
    assert_eq!((crop.width, crop.height()), (4, 4));
    assert_eq!((crop.pixels[0], crop.pixels[15]), ([10, 20, 7], [13, 23, 7]));
    crop.turn_around();
    assert_eq!((crop.pixels[0], crop.pixels[15]), ([13, 23, 7], [10, 20, 7]));
}

#[test]
fn a_high_box_is_turned_left() {
    let corners = [[10.0, 20.0], [14.0, 20.0], [14.0, 40.0], [10.0, 40.0]];
    let crop = Crop::of(&page(), &corners).unwrap();
    assert_eq!((crop.width, crop.height()), (20, 4));
    // What was at the upper right is at the upper left.
    assert_eq!((crop.pixels[0], crop.pixels[19]), ([13, 20, 7], [13, 39, 7]));
}

#[test]
fn a_turned_box_becomes_straight() {
    let corners = [[10.0, 20.0], [50.0, 10.0], [53.0, 22.0], [13.0, 32.0]];
    let crop = Crop::of(&page(), &corners).unwrap();
    assert_eq!((crop.width, crop.height()), (41, 12));
    assert_eq!(crop.pixels[0], [10, 20, 7]);
    let at = projection(&corners, 40, 12);
    for ((x, y), corner) in [(0, 0), (40, 0), (40, 12), (0, 12)].into_iter().zip(corners) {
        let [left, top] = at(x, y);
        let off = (left - f64::from(corner[0])).abs() + (top - f64::from(corner[1])).abs();
        assert!(off < 1e-9, "({left}, {top}) is not {corner:?}");
    }
    // Within one pixel of where the plane of colours has it.
    let [red, green, _] = crop.pixels[6 * 41 + 20];
    let [x, y] = projection(&corners, 41, 12)(20, 6);
    assert!((f64::from(red) - x).abs() <= 0.5 && (f64::from(green) - y).abs() <= 0.5);
}

#[test]
fn a_strip_is_blue_green_and_red_with_nothing_to_the_right() {
    let colour = [255, 0, 51];
    let crop = Crop { width: 96, pixels: vec![colour; 96 * 24] };
    let strip = crop.strip(320).unwrap();
    assert_eq!(strip.dims(), [1, 3, 48, 320]);
    let view = strip.view::<f32>().unwrap();
    for (plane, expected) in view.as_slice().chunks_exact(48 * 320).zip([-0.6, -1.0, 1.0_f32]) {
        for row in plane.chunks_exact(320) {
            assert!(row[..192].iter().all(|value| (value - expected).abs() < 1e-6), "{row:?}");
            assert!(row[192..].iter().all(|value| *value == 0.0), "{row:?}");
        }
    }
    assert_eq!(crop.strip(100).unwrap().dims(), [1, 3, 48, 100]);
}
