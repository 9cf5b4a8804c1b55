//! Sizes and borders of results.

use gristmill_core::BufferPool;
use gristmill_imaging::{Border, ImageError, Letterbox, Limits, Pixels, Rect, Size};

use super::unstopped;

const LIMITS: Limits = Limits { pixels_max: 1000, side_max: 100 };

fn size(width: u32, height: u32) -> Size {
    Size { width, height }
}

#[test]
fn a_border_has_its_widths_and_its_colour() {
    let pool = BufferPool::new(0);
    let image = Pixels::new(size(2, 1), true, pool.copy_from(&[1, 2])).unwrap();
    let border = Border { left: 1, top: 1, right: 2, bottom: 0 };
    let padded = image.pad(unstopped(&pool), border, &[9], LIMITS).unwrap();
    assert_eq!(padded.size(), size(5, 2));
    assert_eq!(padded.data(), [9, 9, 9, 9, 9, 9, 1, 2, 9, 9]);
    let colour = Pixels::new(size(1, 1), false, pool.copy_from(&[1, 2, 3])).unwrap();
    let border = Border { bottom: 1, ..Border::default() };
    let padded = colour.pad(unstopped(&pool), border, &[], LIMITS).unwrap();
    assert_eq!(padded.data(), [1, 2, 3, 0, 0, 0]);
}

#[test]
fn borders_that_do_not_fit_are_refused() {
    let pool = BufferPool::new(0);
    let image = Pixels::new(size(2, 1), true, pool.copy_from(&[1, 2])).unwrap();
    let huge = Border { left: u32::MAX, ..Border::default() };
    let refused = image.pad(unstopped(&pool), huge, &[], LIMITS).unwrap_err();
    assert!(matches!(refused, ImageError::TooLarge { .. }), "{refused}");
    let refused = image.pad(unstopped(&pool), Border::default(), &[1, 2], LIMITS).unwrap_err();
    assert_eq!(refused.to_string(), "fill has 2 values, but the picture has 1 channels");
}

#[test]
fn a_letterboxed_image_keeps_its_ratio_and_fills_the_frame() {
    let Letterbox { inner, border } = size(640, 480).letterboxed(size(416, 416));
    assert_eq!(inner, size(416, 312));
    assert_eq!(border, Border { left: 0, top: 52, right: 0, bottom: 52 });
    let Letterbox { inner, border } = size(3, 1000).letterboxed(size(100, 101));
    assert_eq!(inner, size(1, 101));
    assert_eq!(border, Border { left: 49, top: 0, right: 50, bottom: 0 });
}

#[test]
fn the_shorter_side_decides() {
    assert_eq!(size(300, 200).with_shorter_side(100), size(150, 100));
    assert_eq!(size(200, 301).with_shorter_side(100), size(100, 150));
    assert_eq!(size(640, 480).with_shorter_side(224), size(298, 224));
    assert_eq!(size(480, 640).with_shorter_side(224), size(224, 298));
    assert_eq!(size(1, u32::MAX).with_shorter_side(u32::MAX), size(u32::MAX, u32::MAX));
    assert_eq!(size(640, 480).with_shorter_side_rounded(224), size(299, 224));
    assert_eq!(size(200, 301).with_shorter_side_rounded(100), size(100, 151));
}

/// Python's `int(size * long / short)`, in floating-point numbers as there.
#[test]
fn the_longer_side_is_that_of_torchvision() {
    let mut state = 7_u64;
    let mut next = |most: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((state >> 33) % most + 1) as u32
    };
    for _ in 0..200_000 {
        let (short, long, shorter) = (next(4000), next(9000), next(2000));
        let (short, long) = (short.min(long), short.max(long));
        let expected = f64::from(shorter) * f64::from(long) / f64::from(short);
        let scaled = size(long, short).with_shorter_side(shorter);
        assert_eq!(scaled, size(expected as u32, shorter), "{long}x{short} to {shorter}");
    }
}

/// Python's `int(round((own - part) / 2.0))`.
#[test]
fn the_middle_is_that_of_torchvision() {
    for (side, expected) in [(10, 0), (11, 0), (12, 1), (13, 2), (14, 2), (15, 2), (17, 4)] {
        assert_eq!(size(side, 10).middle(size(10, 10)).x, expected, "{side}");
        assert_eq!(size(10, side).middle(size(10, 10)).y, expected, "{side}");
    }
    for margin in 0..1000_u32 {
        let exact = (f64::from(margin) / 2.0).round_ties_even() as u32;
        assert_eq!(size(3 + margin, 3).middle(size(3, 3)).x, exact);
    }
    assert_eq!(size(4, 4).middle(size(5, 9)), Rect { x: 0, y: 0, size: size(5, 9) });
}
