//! The values of all metrics as OTLP's message.

use std::time::{SystemTime, UNIX_EPOCH};

use gristmill_metrics::{Collected, Distribution, Family, Kind, Point, Value};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as AnyValueKind;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, Sum,
};
use opentelemetry_proto::tonic::resource::v1::Resource;

/// The server whose metrics they are.
#[derive(Clone, Debug)]
pub struct MetricSource {
    /// The version of the program.
    pub version: &'static str,
    /// The name of the server among several.
    pub instance: String,
    /// Since when its counters count.
    pub since: SystemTime,
}

/// The message with these values, of `now`.
pub(crate) fn message(
    source: &MetricSource,
    collected: &Collected,
    now: SystemTime,
) -> ExportMetricsServiceRequest {
    let service = std::env::var("OTEL_SERVICE_NAME").unwrap_or_else(|_| "gristmill".to_owned());
    let attributes = vec![
        attribute("service.name", &service),
        attribute("service.version", source.version),
        attribute("service.instance.id", &source.instance),
    ];
    let times = (nanos(source.since), nanos(now));
    let metrics = collected.families().map(|(family, points)| metric(family, points, times));
    let scope = InstrumentationScope {
        name: "gristmill".into(),
        version: source.version.into(),
        ..Default::default()
    };
    let scope_metrics =
        vec![ScopeMetrics { scope: Some(scope), metrics: metrics.collect(), ..Default::default() }];
    let resource = Some(Resource { attributes, ..Default::default() });
    let resource_metrics = vec![ResourceMetrics { resource, scope_metrics, ..Default::default() }];
    ExportMetricsServiceRequest { resource_metrics }
}

fn metric(family: &Family, points: &[Point], times: (u64, u64)) -> Metric {
    let temporality = AggregationTemporality::Cumulative as i32;
    let numbers = || points.iter().filter_map(|point| number(family, point, times)).collect();
    let data = match family.kind {
        Kind::Counter => Data::Sum(Sum {
            data_points: numbers(),
            aggregation_temporality: temporality,
            is_monotonic: true,
        }),
        Kind::Gauge => Data::Gauge(Gauge { data_points: numbers() }),
        Kind::Histogram => Data::Histogram(Histogram {
            data_points: points
                .iter()
                .filter_map(|point| histogram(family, point, times))
                .collect(),
            aggregation_temporality: temporality,
        }),
    };
    Metric {
        name: family.name.into(),
        description: family.help.into(),
        unit: family.unit.into(),
        data: Some(data),
        ..Default::default()
    }
}

fn number(family: &Family, point: &Point, (since, now): (u64, u64)) -> Option<NumberDataPoint> {
    let Value::Number(value) = point.value else { return None };
    Some(NumberDataPoint {
        attributes: attributes(family, point),
        start_time_unix_nano: since,
        time_unix_nano: now,
        value: Some(Number::AsDouble(value)),
        ..Default::default()
    })
}

fn histogram(
    family: &Family,
    point: &Point,
    (since, now): (u64, u64),
) -> Option<HistogramDataPoint> {
    let Value::Distribution(distribution) = &point.value else { return None };
    let Distribution { bounds, counts, sum } = distribution;
    Some(HistogramDataPoint {
        attributes: attributes(family, point),
        start_time_unix_nano: since,
        time_unix_nano: now,
        count: distribution.count(),
        sum: Some(*sum),
        bucket_counts: counts.clone(),
        explicit_bounds: bounds.to_vec(),
        ..Default::default()
    })
}

/// The attributes of a point; those that do not apply are empty and left out.
fn attributes(family: &Family, point: &Point) -> Vec<KeyValue> {
    let all = family.attributes.iter().zip(&point.attributes);
    all.filter(|(_, value)| !value.is_empty())
        .map(|(key, value)| attribute(&format!("gristmill.{key}"), value))
        .collect()
}

fn attribute(key: &str, value: &str) -> KeyValue {
    let value = AnyValue { value: Some(AnyValueKind::StringValue(value.into())) };
    KeyValue { key: key.into(), value: Some(value), ..Default::default() }
}

fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_nanos().try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use gristmill_metrics::family;

    use super::*;

    #[test]
    fn each_kind_has_its_data_and_empty_attributes_are_left_out() {
        let mut collected = Collected::default();
        let requests = ["acme", "digits", "", "answered"];
        collected.add(family::REQUESTS, &requests, 7_u64);
        collected.add(family::RELEASE, &[], 3_u64);
        let mut swaps = Distribution::of(&[0.1, 1.0]);
        swaps.add(0.05, 2);
        collected.add(family::SWAP_DURATION, &[], swaps);
        let source = MetricSource { version: "1.2.3", instance: "a".into(), since: UNIX_EPOCH };
        let message = message(&source, &collected, SystemTime::now());
        let metrics = &message.resource_metrics[0].scope_metrics[0].metrics;
        let [counter, gauge, histogram] =
            ["gristmill.requests", "gristmill.release", "gristmill.release.swap.duration"]
                .map(|name| metrics.iter().find(|metric| metric.name == name).unwrap());
        let Some(Data::Sum(sum)) = &counter.data else { panic!("{counter:?}") };
        let keys: Vec<_> =
            sum.data_points[0].attributes.iter().map(|attribute| &*attribute.key).collect();
        assert_eq!(keys, ["gristmill.tenant", "gristmill.pipeline", "gristmill.outcome"]);
        assert!(sum.is_monotonic && sum.data_points[0].value == Some(Number::AsDouble(7.0)));
        assert!(matches!(&gauge.data, Some(Data::Gauge(_))));
        let Some(Data::Histogram(all)) = &histogram.data else { panic!("{histogram:?}") };
        assert_eq!(all.data_points[0].bucket_counts, [2, 0, 0]);
        assert_eq!((histogram.unit.as_str(), all.data_points[0].count), ("s", 2));
    }
}
