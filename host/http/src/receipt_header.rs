//! The header `Gristmill-Receipt`: what a request is charged. A client that wants it sends the same
//! header with the value `true`.

use gristmill_core::{Charge, Record};
use http::{HeaderMap, HeaderName, HeaderValue};

pub(crate) const RECEIPT: HeaderName = HeaderName::from_static("gristmill-receipt");

/// Whether the client wants a receipt.
pub(crate) fn is_wanted(headers: &HeaderMap) -> bool {
    let wants = |value: &HeaderValue| matches!(value.as_bytes(), b"true" | b"1" | b"?1");
    headers.get(RECEIPT).is_some_and(wants)
}

/// The header's value, a dictionary of whole numbers (RFC 9651). The numbers of requests of a
/// pipeline and a model add up to their usage, with the runs that end after their request.
pub(crate) fn text(record: &Record) -> String {
    let Charge { rows, plugin_cpu_us, model_us, host_cpu_us, queue_us, received_bytes, sent_bytes } =
        record.charge();
    format!(
        "rows={rows}, batch-rows={}, batch-tenants={}, plugin-cpu-us={plugin_cpu_us}, \
         model-us={model_us}, host-cpu-us={host_cpu_us}, queue-us={queue_us}, \
         received-bytes={received_bytes}, sent-bytes={sent_bytes}",
        record.batch_rows(),
        record.batch_tenants()
    )
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use gristmill_core::{CallUsage, ModelRun, ModelUse, PluginCall, Receipt, Span, Stage};

    use super::text;

    #[test]
    fn a_receipt_has_all_charges() {
        let mut receipt = Receipt::open(Instant::now());
        let record = receipt.note();
        let call = |stage, us| {
            let used = CallUsage { cpu: Duration::from_micros(us), ..CallUsage::default() };
            PluginCall { used: Some(used), ..PluginCall::new(stage) }
        };
        record.note_call(call(Stage::Pre, 120));
        let run = |rows, queue_us, batch_rows, batch_tenants| {
            let (queue, time) = (Duration::from_micros(queue_us), Duration::from_nanos(16_700));
            Span::Run(ModelRun {
                used: ModelUse { rows, time },
                batch_rows,
                batch_tenants,
                ..ModelRun::new("ranker".parse().unwrap(), queue, Duration::ZERO)
            })
        };
        record.spans.push(run(1, 2, 8, 1));
        record.spans.push(run(2, 3, 5, 2));
        record.note_call(call(Stage::Post, 7));
        record.request_bytes = 100;
        assert_eq!(
            text(&receipt.answered(42)),
            "rows=3, batch-rows=8, batch-tenants=2, plugin-cpu-us=127, model-us=33, host-cpu-us=0, \
             queue-us=5, received-bytes=100, sent-bytes=42"
        );
    }
}
