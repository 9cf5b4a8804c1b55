//! Sums of hours are kept, read back in pages, and written later if the disk refuses them.

use std::time::{Duration, Instant, UNIX_EPOCH};

use gristmill_core::{ErrorCode, ModelRun, ModelUse, Receipt, Span};

use super::*;

const HOUR: Duration = Duration::from_secs(3600);

fn key(tenant: &str) -> Key {
    let name = |text: &str| text.parse().unwrap();
    Key { tenant: name(tenant), since: 1, pipeline: Some(name("p")), model: name("m") }
}

fn end(counter: &Arc<Counter>, rows: usize) {
    let mut receipt = Receipt::open(Instant::now());
    receipt.charge_to(counter.clone());
    let run = ModelRun::new("m".parse().unwrap(), Duration::ZERO, Duration::ZERO);
    let used = ModelUse { rows, time: Duration::from_nanos(1_999) };
    receipt.note().spans.push(Span::Run(ModelRun { used, ..run }));
    match rows {
        0 => receipt.failed(ErrorCode::ModelFailed, 0),
        _ => receipt.answered(10),
    };
}

fn all(store: &UsageStore, by_hour: bool) -> Vec<(Option<String>, String, u64, u64)> {
    let (from, to) = (Hour::of(UNIX_EPOCH), Hour::of(UNIX_EPOCH + 10_000 * HOUR));
    let filter = Filter { from, to, by_hour, limit: 100, after: None };
    let rows = store.rows(&filter, |key| key.tenant.as_str() != "secret");
    let row = |row: Row| {
        let hour = row.hour.map(|hour| hour.to_string());
        (hour, row.key.tenant.to_string(), row.used.requests, row.used.rows)
    };
    rows.unwrap().rows.into_iter().map(row).collect()
}

#[test]
fn usage_is_summed_by_hour_and_survives() {
    let folder = tempfile::tempdir().unwrap();
    let time = UNIX_EPOCH + 100 * HOUR;
    let store = UsageStore::open(folder.path(), 2, time).unwrap();
    let (acme, secret) = (store.counter(&key("acme")), store.counter(&key("secret")));
    end(&acme, 3);
    end(&acme, 0);
    end(&secret, 5);
    assert_eq!(all(&store, false), [(None, "acme".into(), 2, 3)]);
    store.keep(time).unwrap();
    end(&acme, 1);
    store.keep(time + HOUR).unwrap();
    end(&acme, 2);
    drop((acme, secret));
    store.keep(time + HOUR).unwrap();
    assert_eq!(store.counters.lock().len(), 0, "counters of what is gone are forgotten");
    drop(store);

    let store = UsageStore::open(folder.path(), 2, time + HOUR).unwrap();
    let hours = [("1970-01-05T04", 3, 4), ("1970-01-05T05", 1, 2)];
    let expected =
        hours.map(|(hour, requests, rows)| (Some(hour.into()), "acme".into(), requests, rows));
    assert_eq!(all(&store, true), expected);
    assert_eq!(all(&store, false), [(None, "acme".into(), 4, 6)]);
    // Charges are whole microseconds each, so sums of them are exact.
    let (from, to) = (Hour::of(time), Hour::of(time + HOUR));
    let filter = Filter { from, to, by_hour: false, limit: 100, after: None };
    let rows = store.rows(&filter, |_| true).unwrap().rows;
    assert_eq!(rows[0].used.model_us, 8);
    assert_eq!((rows[0].used.failed, rows[0].used.sent_bytes), (1, 30));

    store.keep(time + 2 * HOUR).unwrap();
    store.keep(time + 3 * HOUR).unwrap();
    let kept = all(&store, true);
    assert_eq!(kept.len(), 1, "the first hour is not kept any more: {kept:?}");
    // A clock that was set back adds to the hour that it shows.
    let late = store.counter(&key("late"));
    store.keep(time + 2 * HOUR).unwrap();
    end(&late, 1);
    store.keep(time + 2 * HOUR).unwrap();
    let hours: Vec<_> = all(&store, true).into_iter().map(|(hour, ..)| hour.unwrap()).collect();
    assert_eq!(hours, ["1970-01-05T05", "1970-01-05T06"]);
    // One that jumps far ahead removes nothing.
    store.keep(time + 1000 * HOUR).unwrap();
    store.keep(time + 2 * HOUR).unwrap();
    assert_eq!(all(&store, true).len(), 2);
}

#[test]
fn rows_come_in_pages() {
    let folder = tempfile::tempdir().unwrap();
    let time = UNIX_EPOCH + 100 * HOUR;
    let store = UsageStore::open(folder.path(), 9, time).unwrap();
    for hour in 0..3 {
        for tenant in ["a", "a-b", "b"] {
            end(&store.counter(&key(tenant)), 1);
        }
        store.keep(time + (hour + 1) * HOUR).unwrap();
    }
    for by_hour in [true, false] {
        let (from, to) = (Hour::of(time), Hour::of(time + 5 * HOUR));
        let mut filter = Filter { from, to, by_hour, limit: 100, after: None };
        let whole = store.rows(&filter, |_| true).unwrap();
        assert_eq!((whole.rows.len(), whole.next), (if by_hour { 9 } else { 3 }, None));
        filter.limit = 2;
        let mut pages = Vec::new();
        loop {
            let page = store.rows(&filter, |_| true).unwrap();
            assert!(page.rows.len() <= 2);
            pages.extend(page.rows);
            filter.after = page.next;
            if filter.after.is_none() {
                break;
            }
        }
        assert_eq!(pages, whole.rows);
    }
}

#[test]
fn hours_that_cannot_be_written_are_written_later() {
    let folder = tempfile::tempdir().unwrap();
    let (usage, away) = (folder.path().join("usage"), folder.path().join("away"));
    let time = UNIX_EPOCH + 100 * HOUR;
    let store = UsageStore::open(&usage, 9, time).unwrap();
    fs::rename(&usage, &away).unwrap();
    end(&store.counter(&key("acme")), 1);
    assert!(store.keep(time + HOUR).is_err());
    end(&store.counter(&key("acme")), 1);
    assert!(store.keep(time + HOUR).is_err());
    assert_eq!(all(&store, true).len(), 2, "each in its own hour");
    fs::rename(&away, &usage).unwrap();
    store.keep(time + HOUR).unwrap();
    let read = UsageStore::open(&usage, 9, time + HOUR).unwrap();
    assert_eq!(all(&read, true), all(&store, true));
}

#[test]
fn a_damaged_line_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let time = UNIX_EPOCH + 100 * HOUR;
    let store = UsageStore::open(folder.path(), 2, time).unwrap();
    end(&store.counter(&key("acme")), 3);
    store.keep(time).unwrap();
    let path = folder.path().join("1970-01-05T04.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let damaged = [b"{\"tenant\": \"acme\"\n\xff\n", text.as_bytes()].concat();
    fs::write(&path, damaged).unwrap();
    let store = UsageStore::open(folder.path(), 2, time).unwrap();
    assert_eq!(all(&store, false), [(None, "acme".into(), 1, 3)]);
}
