use std::sync::Mutex;

use super::*;
use crate::CallUsage;

#[derive(Default)]
struct Outcomes(Mutex<Vec<Outcome>>);

impl Named for Outcomes {}

impl Sink for Outcomes {
    fn record(&self, record: &Record, _: Duration) {
        self.0.lock().unwrap().push(record.outcome);
    }
}

#[test]
fn each_sink_gets_the_record() {
    let (one, other) = (Arc::new(Outcomes::default()), Arc::new(Outcomes::default()));
    let mut receipt = Receipt::open(Instant::now());
    receipt.charge_to(one.clone());
    receipt.charge_to(other.clone());
    receipt.answered(0);
    for outcomes in [one, other] {
        assert_eq!(*outcomes.0.lock().unwrap(), [Outcome::Answered]);
    }
}

#[test]
fn what_parts_note_is_in_the_one_record() {
    let outcomes = Arc::new(Outcomes::default());
    let mut receipt = Receipt::open(Instant::now());
    receipt.charge_to(outcomes.clone());
    for cpu_ms in [2, 3] {
        let mut part = receipt.part();
        let used = CallUsage { cpu: Duration::from_millis(cpu_ms), ..CallUsage::default() };
        part.note().note_call(PluginCall { used: Some(used), ..PluginCall::new(Stage::Pre) });
        receipt.join(part);
    }
    drop(receipt.part());
    assert!(outcomes.0.lock().unwrap().is_empty(), "a part reaches no sink");
    let record = receipt.answered(0);
    assert_eq!((record.calls().count(), record.charge().plugin_cpu_us), (2, 5000));
    assert_eq!(*outcomes.0.lock().unwrap(), [Outcome::Answered]);
}

#[test]
fn a_receipt_is_closed_once_however_its_request_ends() {
    let outcomes = Arc::new(Outcomes::default());
    let open = || {
        let mut receipt = Receipt::open(Instant::now());
        receipt.charge_to(outcomes.clone());
        receipt
    };
    assert_eq!(open().answered(7).response_bytes, 7);
    open().failed(ErrorCode::PluginTrapped, 0);
    drop(open());
    let expected =
        [Outcome::Answered, Outcome::Failed(ErrorCode::PluginTrapped), Outcome::Abandoned];
    assert_eq!(*outcomes.0.lock().unwrap(), expected);
}
