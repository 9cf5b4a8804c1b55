use std::time::Duration;

use gristmill_core::PipelineLimits;

use super::{LimitsSpec, limit_ranges};

#[test]
fn limits_that_are_not_given_are_the_hosts() {
    let host = PipelineLimits::default();
    assert_eq!(LimitsSpec::default().resolve(&host), Ok(host.clone()));
    let spec = LimitsSpec { cpu_ms: Some(30), log_bytes: Some(0), ..LimitsSpec::default() };
    let limits = spec.resolve(&host).unwrap();
    assert_eq!(limits.plugin.cpu, Duration::from_millis(30));
    assert_eq!(limits.plugin.cpu_decoding, Duration::from_millis(30));
    assert_eq!(limits.plugin.log_bytes, 0);
    assert_eq!(limits.plugin.memory_bytes, host.plugin.memory_bytes);
}

#[test]
fn what_an_older_version_took_in_is_served_and_what_the_host_no_longer_has_is_not() {
    let host = PipelineLimits::default();
    let small = LimitsSpec { memory_bytes: Some(70_000), ..LimitsSpec::default() };
    assert_eq!(small.resolve(&host).unwrap().plugin.memory_bytes, 70_000);
    let large = LimitsSpec { memory_bytes: Some(65 << 20), ..LimitsSpec::default() };
    let faults = large.resolve(&host).unwrap_err();
    let expected = "limits.memory_bytes is 68157440: must be 1 to 67108864 (the server's \
                    plugin_memory_bytes)";
    assert_eq!(faults, [expected]);
}

#[test]
fn every_limit_that_is_asked_for_is_what_a_request_gets() {
    let spec = LimitsSpec {
        timeout_ms: Some(1),
        body_bytes: Some(2),
        cpu_ms: Some(30),
        memory_bytes: Some(4 << 20),
        response_bytes: Some(5),
        log_bytes: Some(6),
        passed_bytes: Some(64 << 20),
    };
    let limits = spec.resolve(&PipelineLimits::default()).unwrap();
    assert_eq!((limits.timeout, limits.body_bytes), (Duration::from_millis(1), 2));
    let plugin = limits.plugin;
    assert_eq!((plugin.cpu, plugin.memory_bytes), (Duration::from_millis(30), 4 << 20));
    assert_eq!((plugin.response_bytes, plugin.log_bytes), (5, 6));
    assert_eq!((plugin.hostcall_bytes, plugin.tensor_bytes), (64 << 20, 63 << 20));
}

#[test]
fn a_pipeline_that_passes_little_answers_little() {
    let resolve = |passed: usize| {
        let spec = LimitsSpec { passed_bytes: Some(passed), ..LimitsSpec::default() };
        let plugin = spec.resolve(&PipelineLimits::default()).unwrap().plugin;
        (plugin.tensor_bytes, plugin.response_bytes)
    };
    assert_eq!(resolve(2 << 20), (1 << 20, 2 << 20));
    assert_eq!(resolve(256 << 20), (255 << 20, 4 << 20));
}

#[test]
fn every_fault_of_limits_is_named() {
    let spec = LimitsSpec {
        timeout_ms: Some(600_001),
        body_bytes: Some((1 << 30) + 1),
        ..LimitsSpec::default()
    };
    let faults = spec.resolve(&PipelineLimits::default()).unwrap_err();
    let expected = [
        "limits.timeout_ms is 600001: must be 1 to 600000",
        "limits.body_bytes is 1073741825: must be 1 to 1073741824",
    ];
    assert_eq!(faults, expected);
}

#[test]
fn the_ranges_that_documentation_has_hold_their_defaults() {
    for range in limit_ranges(&PipelineLimits::default()) {
        assert!((range.min..=range.max).contains(&range.default), "{range:?}");
    }
}
