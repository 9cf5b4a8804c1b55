use gristmill_store::LogListing;

use super::{LogGap, gap_in};

fn gap_from(base: u64, numbers: &[u64]) -> Option<LogGap> {
    gap_in(&LogListing { numbers: numbers.to_vec(), foreign: vec![] }, base)
}

#[test]
fn a_log_begins_behind_its_checkpoint() {
    for whole in [&[][..], &[6, 7], &[3, 5, 6, 7], &[1, 2]] {
        assert_eq!(gap_from(5, whole), None, "{whole:?}");
    }
    let gap = gap_from(5, &[4, 5, 7]).unwrap();
    assert_eq!((gap.whole, gap.missing, gap.present), (5, vec![6..=6], vec![7..=7]));
}

#[test]
fn gaps_are_named() {
    let gap = |numbers: &[u64]| gap_from(0, numbers);
    assert_eq!(gap(&[]), None);
    assert_eq!(gap(&[1, 2, 3]), None);
    let first_gap = gap(&[1, 3, 4]).unwrap();
    assert_eq!((first_gap.whole, first_gap.missing.as_slice()), (1, &[2..=2][..]));
    let text = first_gap.to_string();
    assert!(text.contains("release 2 is missing, releases 3 to 4 are there"), "{text}");
    assert!(text.contains("the state of release 1 "), "{text}");
    let text = gap(&[2]).unwrap().to_string();
    assert!(text.contains("release 1 is missing, release 2 is there"), "{text}");
    let text = gap(&[1, 2, 5, 7, 8]).unwrap().to_string();
    assert!(text.contains("releases 3 to 4, 6 are missing, releases 5, 7 to 8 are"), "{text}");
    let odd: Vec<_> = (0..100).map(|half| half * 2 + 1).collect();
    let text = gap(&odd).unwrap().to_string();
    assert!(text.contains("89 more ranges are") && text.len() < 500, "{text}");
    assert!(gap(&[u64::MAX]).is_some());
}
