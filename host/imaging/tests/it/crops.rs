//! Many parts of an image at once.

use std::cell::Cell;

use gristmill_core::BufferPool;
use gristmill_imaging::{
    Crops, Filter, ImageError, Limits, Pixels, Rect, Size, Stopped, Workspace,
};

use super::{LIMITS, crop, pool, resize, unstopped};
use crate::allocations::peak_during;

fn size(width: u32, height: u32) -> Size {
    Size { width, height }
}

/// An image in which each value differs from its neighbours.
fn steps(of: Size, gray: bool) -> Pixels {
    let bytes = of.pixels() as usize * if gray { 1 } else { 3 };
    let data: Vec<_> = (0..bytes).map(|at| (at * 37 % 251) as u8).collect();
    Pixels::new(of, gray, pool().copy_from(&data)).unwrap()
}

fn part(x: u32, y: u32, width: u32, height: u32) -> Rect {
    Rect { x, y, size: size(width, height) }
}

#[test]
fn parts_are_those_of_crop_and_resize() {
    let parts = [part(3, 2, 20, 10), part(0, 0, 40, 30), part(39, 29, 1, 1)];
    for gray in [false, true] {
        let image = steps(size(40, 30), gray);
        for to in [None, Some(size(20, 10))] {
            let crops = Crops { parts: &parts, size: to, filter: Filter::Bilinear };
            let made = image.crop_many(unstopped(&pool()), crops, LIMITS).unwrap();
            assert_eq!(made.len(), parts.len());
            for (made, Rect { x, y, size: of }) in made.iter().zip(parts) {
                let mut expected = crop(&image, [x, y], [of.width, of.height]).unwrap();
                if let Some(to) = to {
                    expected = resize(&expected, [to.width, to.height], Filter::Bilinear).unwrap();
                }
                assert_eq!((made.size(), made.is_gray()), (expected.size(), gray));
                assert_eq!(made.data(), expected.data());
            }
        }
    }
}

#[test]
fn parts_that_cannot_be_are_refused() {
    let image = steps(size(4, 3), true);
    let cost = |parts: &[Rect], size| {
        image.crop_many_cost(Crops { parts, size, filter: Filter::Nearest }, LIMITS)
    };
    assert!(cost(&[], None).is_ok());
    let error = cost(&[part(0, 0, 4, 3), part(1, 0, 4, 3)], None).unwrap_err();
    assert_eq!(error.to_string(), "boxes[1]: crop of 4x3 at (1, 0) is not within 4x3");
    let many = vec![part(0, 0, 1, 1); 1025];
    let error = cost(&many, None).unwrap_err();
    assert_eq!(error.to_string(), "1025 boxes are given; the limit is 1024");
    assert!(cost(&many[..1024], None).is_ok());
    let error = cost(&many[..1], Some(size(0, 3))).unwrap_err();
    assert!(matches!(error, ImageError::InvalidArgument(_)), "{error}");
    let error = cost(&many[..1], Some(size(2_000, 2_000))).unwrap_err();
    assert!(matches!(error, ImageError::TooLarge { .. }), "{error}");
}

#[test]
fn parts_take_at_most_what_is_said() {
    let image = steps(size(900, 700), false);
    let parts: Vec<_> = (0..40).map(|at| part(at * 10, at * 5, 400, 300)).collect();
    for to in [None, Some(size(224, 224)), Some(size(400, 300))] {
        let crops = Crops { parts: &parts, size: to, filter: Filter::Lanczos3 };
        let limits = Limits::of_pixels(1 << 20);
        let cost = image.crop_many_cost(crops, limits).unwrap().bytes;
        let pool = BufferPool::new(0);
        let make = || image.crop_many(unstopped(&pool), crops, limits).unwrap();
        let (_, peak) = peak_during(make);
        // Besides the pixels there is the list of the parts.
        assert!(peak <= cost + (64 << 10), "{to:?}: {peak} bytes taken, {cost} said");
        assert!(cost <= 3 * peak, "{to:?}: {peak} bytes taken, {cost} said");
    }
}

#[test]
fn cropping_many_stops_when_it_is_told_to() {
    let image = steps(size(40, 30), true);
    let calls = Cell::new(0);
    let check = || {
        calls.set(calls.get() + 1);
        if calls.get() > 3 { Err(Stopped) } else { Ok(()) }
    };
    let parts = vec![part(0, 0, 4, 3); 1024];
    let crops = Crops { parts: &parts, size: None, filter: Filter::Nearest };
    let pool = pool();
    let outcome = image.crop_many(Workspace { pool: &pool, check: &check }, crops, LIMITS);
    assert_eq!(outcome.map(drop), Err(ImageError::Stopped(Stopped)));
    assert_eq!(calls.get(), 4);
}
