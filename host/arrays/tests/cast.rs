//! Casts between the dtypes of numbers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use gristmill_arrays::Cast;
use gristmill_core::Dtype;

fn cast<const N: usize>(from: Dtype, to: Dtype, elements: &[u8]) -> [u8; N] {
    let mut target = [0; N];
    let go_on = || Ok::<_, std::convert::Infallible>(());
    Cast::between(from, to).unwrap().run(elements, &mut target, go_on).unwrap();
    target
}

#[test]
fn values_out_of_range_become_the_nearest_in_range() {
    let floats = [-1.9_f32, 300.0, f32::NAN, 2.9].map(f32::to_le_bytes).concat();
    assert_eq!(cast(Dtype::Float32, Dtype::Uint8, &floats), [0, 255, 0, 2]);
    let most = u64::MAX.to_le_bytes();
    assert_eq!(cast(Dtype::Uint64, Dtype::Int64, &most), i64::MAX.to_le_bytes());
    assert_eq!(cast(Dtype::Int8, Dtype::Uint64, &[0xff]), [0; 8]);
}

#[test]
fn small_integers_are_exact_in_every_dtype() {
    let numbers = || Dtype::ALL.iter().filter(|dtype| dtype.size_bytes().is_some());
    for dtype in numbers() {
        let to = Cast::between(Dtype::Uint8, *dtype).unwrap();
        let mut there = vec![0; 2 * dtype.size_bytes().unwrap()];
        let go_on = || Ok::<_, std::convert::Infallible>(());
        to.run(&[1, 0], &mut there, go_on).unwrap();
        assert_eq!(cast(*dtype, Dtype::Int16, &there), [1, 0, 0, 0], "{dtype}");
    }
    assert!(Cast::between(Dtype::String, Dtype::Int8).is_none());
}

#[test]
fn anything_but_zero_is_true() {
    let floats = [0.0_f64, -0.5, f64::NAN].map(f64::to_le_bytes).concat();
    assert_eq!(cast(Dtype::Float64, Dtype::Bool, &floats), [0, 1, 1]);
}
