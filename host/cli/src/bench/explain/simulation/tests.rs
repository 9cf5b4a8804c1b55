use super::{Prediction, simulate};
use crate::bench::explain::machine::{Costs, LaneModel, Machine, Samples, Service};

/// A machine whose model takes `service_us` for each row, and which has one row in a request.
fn machine(cores: usize, connections: usize, service_us: f64) -> Machine {
    let us = |us| Samples::new(vec![us]);
    Machine {
        cores,
        connections,
        client_threads: 1,
        client_is_here: true,
        server_threads: cores,
        costs: Costs {
            client_us: 10.0,
            http_us: 20.0,
            pre_us: us(40.0),
            post_us: us(30.0),
            is_handler: false,
        },
        lane: LaneModel {
            instances: 1,
            threads: 1,
            rows: 1,
            max_rows: 1,
            preferred_rows: Vec::new(),
            delay_us: 0.0,
            service: Service::new(vec![(1, service_us)]),
        },
    }
}

#[track_caller]
fn assert_near(value: f64, expected: f64) {
    assert!((value / expected - 1.0).abs() < 0.02, "{value}, not {expected}");
}

/// The mean time of an answer by Little's law.
fn mean_us(connections: usize, prediction: &Prediction) -> f64 {
    connections as f64 * 1e6 / prediction.per_second
}

#[test]
fn one_connection_takes_the_sum_of_all_parts() {
    let alone = simulate(&machine(2, 1, 50.0));
    assert_near(alone.p50_us, 150.0);
    assert_near(alone.per_second, 1e6 / 150.0);
    assert_near(alone.used.cores, 0.5);
    assert_near(alone.used.instances, 1.0 / 3.0);
}

#[test]
fn many_connections_fill_the_cores_and_wait() {
    for cores in [1, 2, 4] {
        let busy = simulate(&machine(cores, 32, 5.0));
        // The parts take 105 us together.
        assert_near(busy.per_second, cores as f64 * 1e6 / 105.0);
        assert_near(busy.used.cores, 1.0);
        assert_near(busy.p50_us, mean_us(32, &busy));
    }
}

#[test]
fn one_instance_bounds_the_throughput_and_a_second_one_doubles_it() {
    let mut slow = machine(4, 32, 1000.0);
    let one = simulate(&slow);
    assert_near(one.per_second, 1000.0);
    assert_near(one.used.instances, 1.0);
    assert!(one.used.cores < 0.5, "{one:?}");
    slow.lane.instances = 2;
    assert_near(simulate(&slow).per_second, 2000.0);
    (slow.lane.instances, slow.lane.threads) = (1, 2);
    assert_near(simulate(&slow).per_second, 1000.0);
}

#[test]
fn two_threads_on_one_core_share_it() {
    let mut wide = machine(1, 32, 10_000.0);
    wide.lane.threads = 2;
    // The run takes twice as long as alone on two cores, and the rest nearly nothing.
    assert!(simulate(&wide).per_second < 50.0);
}

#[test]
fn batches_grow_until_the_model_keeps_up() {
    let mut batched = machine(8, 32, 0.0);
    // 1 ms for each batch of any size.
    batched.lane.service = Service::new(vec![(1, 1000.0), (64, 1000.0)]);
    batched.lane.max_rows = 8;
    let eight = simulate(&batched);
    assert_near(eight.batch_rows, 8.0);
    assert_near(eight.per_second, 8000.0);
    batched.lane.max_rows = 64;
    let all = simulate(&batched);
    assert!(all.batch_rows > 15.0 && all.per_second > 12_000.0, "{all:?}");
    // A preferred size is not exceeded.
    batched.lane.preferred_rows = vec![4];
    assert_near(simulate(&batched).batch_rows, 4.0);
}

#[test]
fn short_batches_are_run_by_those_who_bring_them() {
    let mut short = machine(2, 64, 0.0);
    short.lane.service = Service::new(vec![(1, 10.0), (64, 40.0)]);
    short.lane.max_rows = 64;
    let led = simulate(&short);
    assert!(led.batch_rows >= 1.0 && led.batch_rows <= 64.0, "{led:?}");
    let least = 2e6 / (100.0 + 10.0);
    assert!(led.per_second > 0.98 * least && led.per_second < 2e6 / 100.0, "{led:?}");
}

#[test]
fn a_delay_is_waited_for_others_who_do_not_come() {
    let mut patient = machine(2, 1, 50.0);
    (patient.lane.max_rows, patient.lane.delay_us) = (8, 1000.0);
    assert_near(simulate(&patient).p50_us, 1150.0);
}

#[test]
fn a_client_elsewhere_takes_no_core_but_may_be_the_limit_itself() {
    let mut elsewhere = machine(1, 32, 5.0);
    elsewhere.client_is_here = false;
    assert_near(simulate(&elsewhere).per_second, 1e6 / 95.0);
    elsewhere.costs.client_us = 200.0;
    let slow_client = simulate(&elsewhere);
    assert_near(slow_client.per_second, 5000.0);
    assert_near(slow_client.used.client, 1.0);
}

#[test]
fn it_is_the_same_each_time() {
    let mut varied = machine(2, 16, 30.0);
    varied.costs.pre_us = Samples::new(vec![10.0, 20.0, 100.0]);
    let [one, other] = [simulate(&varied), simulate(&varied)];
    assert_eq!(one.per_second.to_bits(), other.per_second.to_bits());
    assert_eq!(one.p99_us.to_bits(), other.p99_us.to_bits());
}
