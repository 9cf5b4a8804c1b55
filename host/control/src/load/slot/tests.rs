use std::time::Duration;

use gristmill_batch::Refusal;

use super::*;
use crate::testing::echo_lane;

/// Load a model with queues of so many rows, and note it in `slot`.
fn load(slot: &Slot, rows: usize) -> ServedModel {
    let config = LaneConfig::new(4, rows);
    let lane = echo_lane(config.clone());
    let served = ServedModel {
        lane: Arc::new(lane),
        providers: Vec::new().into(),
        file_bytes: 0,
        certificates: [].into(),
        padding_proofs: [].into(),
        sizes: Arc::default(),
        warnings: [].into(),
    };
    slot.note(config, &Ok(served.clone()));
    served
}

/// A slot that knows a lane with queues of ten rows, and the model that it serves.
fn loaded() -> (Slot, ServedModel) {
    let slot = Slot::default();
    let served = load(&slot, 10);
    (slot, served)
}

#[test]
fn the_same_settings_are_the_same_lane() {
    let (slot, served) = loaded();
    let again = slot.served(&LaneConfig::new(4, 10)).unwrap();
    assert!(Arc::ptr_eq(&again.lane, &served.lane));
    let other = slot.served(&LaneConfig::new(4, 20)).unwrap();
    let once_more = slot.served(&LaneConfig::new(4, 20)).unwrap();
    assert!(Arc::ptr_eq(&other.lane, &once_more.lane));
    assert!(!Arc::ptr_eq(&other.lane, &served.lane));
    assert_eq!((other.lane.config().queue.rows, served.lane.config().queue.rows), (20, 10));
}

#[test]
fn any_lane_keeps_the_model_loaded_and_the_last_one_lets_it_go() {
    let (slot, served) = loaded();
    let other = slot.served(&LaneConfig::new(4, 20)).unwrap();
    drop(served);
    assert!(slot.is_served() && slot.served(&LaneConfig::new(4, 10)).is_some());
    drop(other);
    assert!(!slot.is_served() && slot.served(&LaneConfig::new(4, 20)).is_none());
}

#[test]
fn a_model_that_was_loaded_anew_leaves_the_lane_before_it_known() {
    let (slot, served) = loaded();
    let anew = load(&slot, 20);
    let at = |rows: usize| slot.served(&LaneConfig::new(4, rows)).unwrap().lane;
    assert!(Arc::ptr_eq(&at(10), &served.lane) && Arc::ptr_eq(&at(20), &anew.lane));
    // As if the change that loaded it anew were refused.
    drop(anew);
    assert!(Arc::ptr_eq(&at(10), &served.lane), "nothing is loaded once more");
}

/// The lane's maximum is 4, as if the server had measured it.
#[test]
fn a_preferred_size_over_the_maximum_loads_the_model_again() {
    let (slot, served) = loaded();
    let prefers = |size: usize, rows: usize| LaneConfig {
        preferred_batch_sizes: vec![2, size],
        ..LaneConfig::new(4, rows)
    };
    let kept = slot.served(&prefers(4, 10)).unwrap().lane;
    assert_eq!(kept.config().preferred_batch_sizes, [2, 4]);
    assert!(slot.served(&prefers(8, 4)).is_some(), "no more than 4 rows can be queued");
    assert!(slot.served(&prefers(8, 10)).is_none());
    let config = LaneConfig { max_batch_size: 8, ..prefers(8, 10) };
    let anew = ServedModel { lane: Arc::new(echo_lane(config)), ..served };
    slot.note(prefers(8, 10), &Ok(anew.clone()));
    assert!(Arc::ptr_eq(&slot.served(&prefers(8, 10)).unwrap().lane, &anew.lane));
    let slower = LaneConfig { max_queue_delay: Duration::from_secs(1), ..prefers(8, 10) };
    assert_eq!(slot.served(&slower).unwrap().lane.config().max_batch_size, 8);
}

#[test]
fn a_failure_is_remembered_until_it_is_loaded() {
    let (slot, settings) = (Slot::default(), LaneConfig::new(4, 10));
    let before = Instant::now();
    slot.note(settings.clone(), &Err(LoadError::LostRuns(Refusal::LostRuns(3)).into()));
    assert!(slot.failed(Some(before)).is_some() && slot.failed(None).is_some());
    assert!(slot.failed(Some(Instant::now() + Duration::from_secs(1))).is_none());
    let (_, served) = loaded();
    slot.note(settings, &Ok(served));
    assert!(slot.failed(None).is_none());
}
