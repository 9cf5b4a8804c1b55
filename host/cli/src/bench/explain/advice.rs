//! What bounds the throughput, and what each change of a part would bring. Pure.

use super::machine::Machine;
use super::simulation::{Prediction, simulate};

/// A resource that is busy for this share of the time bounds the throughput.
const FULL: f64 = 0.9;

/// A change that brings less is not worth it.
const GAIN_MIN: f64 = 1.02;

/// A part of a request's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestPhase {
    Client,
    Http,
    Pre,
    Infer,
    Post,
    /// A handler's call, without its waiting.
    Handle,
}

/// What bounds the throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bottleneck {
    /// The processor, most of which this part takes.
    Processor(RequestPhase),
    /// The client's threads.
    Client,
    /// The model's instances, while cores are idle.
    Instances,
    /// Nothing is busy all the time: requests wait for each other, or there are too few.
    Waiting,
}

/// A change, and the throughput and latency with it.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) what: &'static str,
    pub(super) how: &'static str,
    /// Whether it needs another machine.
    pub(super) needs_machine: bool,
    pub(super) prediction: Prediction,
}

/// What is said of a part of a request.
pub(super) struct PhaseWords {
    pub(super) name: &'static str,
    /// The subject of a sentence about it.
    pub(super) subject: &'static str,
    /// What it does.
    pub(super) work: &'static str,
}

impl RequestPhase {
    /// Those of the machine's requests.
    pub(super) fn all(machine: &Machine) -> &'static [Self] {
        match machine.costs.is_handler {
            true => &[Self::Client, Self::Http, Self::Handle, Self::Infer],
            false => &[Self::Client, Self::Http, Self::Pre, Self::Infer, Self::Post],
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        self.words().name
    }

    pub(super) fn words(self) -> PhaseWords {
        match self {
            Self::Client => PhaseWords {
                name: "client",
                subject: "the client",
                work: "this program: sends the request and reads the answer",
            },
            Self::Http => PhaseWords {
                name: "http",
                subject: "reading and answering requests",
                work: "reads the request, finds its tenant, writes the answer",
            },
            Self::Pre => PhaseWords {
                name: "pre",
                subject: "preprocessing",
                work: "the plugin's preprocess, with its instance",
            },
            Self::Infer => PhaseWords {
                name: "infer",
                subject: "the model",
                work: "the model, at the predicted size of a batch",
            },
            Self::Post => PhaseWords {
                name: "post",
                subject: "postprocessing",
                work: "the plugin's postprocess, with its instance",
            },
            Self::Handle => PhaseWords {
                name: "handle",
                subject: "the handler",
                work: "the plugin's handle, without its waiting for the model",
            },
        }
    }

    /// Its CPU time for each request, in microseconds.
    pub(super) fn cost_us(self, machine: &Machine, prediction: &Prediction) -> f64 {
        let costs = &machine.costs;
        match self {
            Self::Client => costs.client_us,
            Self::Http => costs.http_us,
            Self::Pre => costs.pre_us.mean(),
            Self::Infer => infer_us(machine, prediction),
            Self::Post => costs.post_us.mean(),
            Self::Handle => costs.pre_us.mean() + costs.post_us.mean(),
        }
    }

    /// Its share of all cores.
    pub(super) fn share(self, machine: &Machine, prediction: &Prediction) -> f64 {
        if self == Self::Client && !machine.client_is_here {
            return 0.0;
        }
        self.cost_us(machine, prediction) * prediction.per_second / 1e6 / machine.cores as f64
    }
}

/// The CPU time of the model for each request, at the predicted size of a batch.
fn infer_us(machine: &Machine, prediction: &Prediction) -> f64 {
    prediction.used.model * machine.cores as f64 / prediction.per_second * 1e6
}

impl Bottleneck {
    pub(super) fn of(machine: &Machine, prediction: &Prediction) -> Self {
        let used = prediction.used;
        let largest = RequestPhase::all(machine).iter().copied().max_by(|one, other| {
            let cost = |part: &RequestPhase| part.share(machine, prediction);
            cost(one).total_cmp(&cost(other))
        });
        match largest {
            Some(largest) if used.cores >= FULL => Self::Processor(largest),
            _ if used.client >= FULL => Self::Client,
            _ if used.instances >= FULL => Self::Instances,
            _ => Self::Waiting,
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Processor(part) => part.as_str(),
            Self::Client => "client",
            Self::Instances => "instances",
            Self::Waiting => "waiting",
        }
    }

    pub(super) fn text(self) -> String {
        let text = match self {
            Self::Processor(part) => {
                let subject = part.words().subject;
                return format!("the cores are busy, and {subject} takes most of them");
            }
            Self::Client => "the client's threads are busy: the server could do more",
            Self::Instances => "all instances of the model are busy while cores are idle",
            Self::Waiting => "nothing is busy all the time: requests wait, or there are too few",
        };
        text.to_owned()
    }
}

/// All changes that apply, the one that brings most first.
pub(super) fn changes(machine: &Machine, now: &Prediction) -> Vec<Change> {
    let mut all = Vec::new();
    let mut add = |what, how, change: &dyn Fn(&mut Machine)| {
        let mut changed = machine.clone();
        change(&mut changed);
        let needs_machine =
            changed.cores > machine.cores || changed.client_is_here != machine.client_is_here;
        all.push(Change { what, how, needs_machine, prediction: simulate(&changed) });
    };
    if machine.client_is_here {
        let how = "measure from another machine; users are not on this one either";
        add("the client elsewhere", how, &|changed| changed.client_is_here = false);
    }
    let how = "send smaller bodies; ask for less in the answer";
    add("half the time in HTTP", how, &|changed| changed.costs.http_us /= 2.0);
    let half_pre = |changed: &mut Machine| changed.costs.pre_us = changed.costs.pre_us.times(0.5);
    let half_post =
        |changed: &mut Machine| changed.costs.post_us = changed.costs.post_us.times(0.5);
    if machine.costs.is_handler {
        let how = "let the handler do less, or keep instances with instance_reuse";
        add("half the time in handle", how, &|changed| {
            half_pre(changed);
            half_post(changed);
        });
    }
    if machine.costs.pre_us.mean() > 0.0 && !machine.costs.is_handler {
        let how = "let preprocess do less, or keep instances with instance_reuse";
        add("half the time in preprocess", how, &half_pre);
    }
    let how = "a smaller or quantised model, or a faster provider";
    let half = |changed: &mut Machine| changed.lane.service = changed.lane.service.times(0.5);
    add("half the time in the model", how, &half);
    if machine.costs.post_us.mean() > 0.0 && !machine.costs.is_handler {
        let how = "let postprocess do less, or keep instances with instance_reuse";
        add("half the time in postprocess", how, &half_post);
    }
    let how = "set instances in the model's configuration; each takes memory";
    add("one more instance", how, &|changed| changed.lane.instances += 1);
    if now.batch_rows >= 0.8 * machine.lane.max_rows as f64 && machine.lane.max_rows > 1 {
        let how = "set max_batch_size in the model's configuration";
        add("batches twice as large", how, &|changed| changed.lane.max_rows *= 2);
    }
    if machine.lane.delay_us > 0.0 {
        let how = "set max_queue_delay_us to 0 in the model's configuration";
        add("no waiting for larger batches", how, &|changed| changed.lane.delay_us = 0.0);
    }
    let how = "a machine with more cores";
    add("one more core", how, &|changed| {
        changed.cores += 1;
        changed.server_threads += 1;
    });
    if now.used.cores < FULL {
        let how = "let clients send more at a time";
        add("twice the connections", how, &|changed| changed.connections *= 2);
    }
    all.sort_by(|one, other| other.prediction.per_second.total_cmp(&one.prediction.per_second));
    all
}

/// The change to make first: the one that brings most without another machine, if it is worth it.
pub(super) fn first<'a>(changes: &'a [Change], now: &Prediction) -> Option<&'a Change> {
    let best = changes.iter().find(|change| !change.needs_machine);
    best.filter(|best| best.prediction.per_second >= now.per_second * GAIN_MIN)
}

#[cfg(test)]
mod tests {
    use super::{Bottleneck, RequestPhase, changes, first};
    use crate::bench::explain::machine::{Costs, LaneModel, Machine, Samples, Service};
    use crate::bench::explain::simulation::simulate;

    fn machine([client_us, http_us, pre_us, infer_us, post_us]: [f64; 5]) -> Machine {
        let us = |us| Samples::new(vec![us]);
        Machine {
            cores: 2,
            connections: 16,
            client_threads: 1,
            client_is_here: true,
            server_threads: 2,
            costs: Costs {
                client_us,
                http_us,
                pre_us: us(pre_us),
                post_us: us(post_us),
                is_handler: false,
            },
            lane: LaneModel {
                instances: 1,
                threads: 1,
                rows: 1,
                max_rows: 1,
                preferred_rows: Vec::new(),
                delay_us: 0.0,
                service: Service::new(vec![(1, infer_us)]),
            },
        }
    }

    #[test]
    fn the_part_that_takes_most_is_named_and_changed_first() {
        let cases = [
            (
                [10.0, 20.0, 200.0, 30.0, 20.0],
                Bottleneck::Processor(RequestPhase::Pre),
                "preprocess",
            ),
            (
                [10.0, 20.0, 30.0, 30.0, 200.0],
                Bottleneck::Processor(RequestPhase::Post),
                "postprocess",
            ),
            ([10.0, 20.0, 30.0, 900.0, 20.0], Bottleneck::Instances, "in the model"),
            ([300.0, 20.0, 30.0, 10.0, 20.0], Bottleneck::Client, "none"),
        ];
        for (costs, bottleneck, named) in cases {
            let machine = machine(costs);
            let now = simulate(&machine);
            assert_eq!(Bottleneck::of(&machine, &now), bottleneck, "{now:?}");
            let all = changes(&machine, &now);
            match first(&all, &now) {
                Some(first) => assert!(first.what.contains(named), "{}: {all:?}", first.what),
                None => assert_eq!(named, "none"),
            }
        }
    }

    #[test]
    fn a_handlers_call_is_one_part() {
        let mut machine = machine([10.0, 20.0, 100.0, 30.0, 100.0]);
        machine.costs.is_handler = true;
        let now = simulate(&machine);
        let handle = Bottleneck::Processor(RequestPhase::Handle);
        assert_eq!(Bottleneck::of(&machine, &now), handle, "{now:?}");
        let all = changes(&machine, &now);
        assert_eq!(first(&all, &now).map(|change| change.what), Some("half the time in handle"));
        assert!(all.iter().all(|change| !change.what.contains("process")), "{all:?}");
    }

    #[test]
    fn the_parts_take_all_of_the_cores_that_are_busy() {
        let machine = machine([10.0, 20.0, 60.0, 30.0, 20.0]);
        let now = simulate(&machine);
        let shares: f64 =
            RequestPhase::all(&machine).iter().map(|part| part.share(&machine, &now)).sum();
        assert!((shares - now.used.cores).abs() < 0.03, "{shares} {now:?}");
    }
}
