use gristmill_core::{Dtype, TensorInfo};

use super::*;

fn timed(times: &[(usize, u64)]) -> Vec<Timed> {
    let timed = |(rows, us): &(usize, u64)| Timed { rows: *rows, time: Duration::from_micros(*us) };
    times.iter().map(timed).collect()
}

#[test]
fn the_smallest_batch_that_is_almost_the_fastest_is_the_best() {
    let rows = |times| best(&timed(times)).unwrap().rows;
    assert_eq!(rows(&[(1, 100), (2, 110), (4, 130), (8, 255)]), 4);
    assert_eq!(rows(&[(1, 100), (2, 198), (4, 400)]), 1);
    assert!(best(&[]).is_none());
}

#[test]
fn pictures_have_two_dimensions_and_channels() {
    let takes_pictures = |dims: &[Option<usize>]| {
        let name = "x".into();
        let input = TensorInfo { name, dtype: Dtype::Float32, dims: dims.to_vec() };
        takes_pictures(&ModelInfo {
            backend: "test",
            inputs: vec![input],
            outputs: Vec::new(),
            forms_batches: false,
            optional: Vec::new(),
            equal_dims: Vec::new(),
        })
    };
    assert!(takes_pictures(&[None, Some(3), None, None]));
    assert!(takes_pictures(&[None, Some(1), Some(48), None]));
    assert!(takes_pictures(&[None, None, None, Some(4)]));
    assert!(!takes_pictures(&[None, None, None, None]));
    assert!(!takes_pictures(&[None, Some(12), None, Some(64)]));
    assert!(!takes_pictures(&[None, Some(3), None]));
}

#[test]
fn no_arrangement_has_more_threads_than_cores() {
    for cores in [1, 2, 3, 8, 16] {
        let fixed = FixedSizes { cores, ..FixedSizes::default() };
        for kind in [ProviderKind::Cpu, ProviderKind::Tract] {
            let all = arrangements(&fixed, kind);
            assert!(!all.is_empty());
            for Arrangement { instances, threads } in all {
                assert!(instances * threads <= cores, "{instances} of {threads} on {cores}");
            }
        }
    }
    let two = FixedSizes { cores: 2, ..FixedSizes::default() };
    let of = |instances, threads| Arrangement { instances, threads };
    assert_eq!(arrangements(&two, ProviderKind::Cpu), [of(1, 2), of(2, 1)]);
    let fixed = FixedSizes { instances: Some(3), threads: Some(5), ..two };
    assert_eq!(arrangements(&fixed, ProviderKind::Cpu), [of(3, 5)]);
}
