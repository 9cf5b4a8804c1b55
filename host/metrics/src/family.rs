//! The list of all metrics. The documentation has its table from here.

/// What a metric's values mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number that only grows while the server runs.
    Counter,
    /// A number that goes up and down.
    Gauge,
    /// How often values fell into each of several ranges.
    Histogram,
}

impl Kind {
    /// The kind's name, in lower case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A metric: one name, with a value for each combination of its attributes.
#[derive(Debug, PartialEq, Eq)]
pub struct Family {
    /// The name as OpenTelemetry writes it, such as `gristmill.request.duration`.
    pub name: &'static str,
    /// What its values mean.
    pub kind: Kind,
    /// The unit by the Unified Code for Units of Measure: `s`, `By`, `Cel`, `W`, `1`, or what is
    /// counted, in braces.
    pub unit: &'static str,
    /// The names of its attributes.
    pub attributes: &'static [&'static str],
    /// What it tells, in a sentence.
    pub help: &'static str,
}

impl Family {
    /// The name as Prometheus writes it, such as `gristmill_request_duration_seconds`.
    pub fn prometheus_name(&self) -> String {
        let mut name = self.name.replace('.', "_");
        let unit = match (self.unit, self.kind) {
            ("s", _) => "_seconds",
            ("By", _) => "_bytes",
            ("Cel", _) => "_celsius",
            ("W", _) => "_watts",
            ("1", Kind::Gauge | Kind::Histogram) => "_ratio",
            _ => "",
        };
        if !name.ends_with(unit) {
            name.push_str(unit);
        }
        match self.kind {
            Kind::Counter => name.push_str("_total"),
            // Only histograms have names with this end.
            Kind::Gauge if name.ends_with("_count") => {
                name.truncate(name.len() - "_count".len());
                name.push('s');
            }
            Kind::Gauge | Kind::Histogram => {}
        }
        name
    }
}

macro_rules! families {
    ($($id:ident $kind:ident $name:literal [$unit:literal] ($($attribute:ident),*) $help:literal;)*) => {
        $(#[doc = $help] pub const $id: &Family = &Family {
            name: $name,
            kind: Kind::$kind,
            unit: $unit,
            attributes: &[$(stringify!($attribute)),*],
            help: $help,
        };)*

        /// All metrics, in the order in which they are written.
        pub const ALL: &[&Family] = &[$($id),*];
    };
}

families! {
    REQUESTS Counter "gristmill.requests" ["{request}"] (tenant, pipeline, model, outcome)
        "Requests that reached a pipeline or a model and ended, by outcome: answered, abandoned by their client, or an error code.";
    REQUEST_DURATION Histogram "gristmill.request.duration" ["s"] (tenant, pipeline, model)
        "Time from a request's arrival to its answer, or to its end without one.";
    REQUESTS_ACTIVE Gauge "gristmill.request.active" ["{request}"] (stage)
        "Requests that are under way, by the stage that they have reached.";
    STAGE_DURATION Histogram "gristmill.request.stage.duration" ["s"] (tenant, pipeline, model, stage)
        "Time of a request in each stage that it reached: auth (finding the caller), read (its body), pre (the preprocessor), queue (the model's queue), staging (copying its batch together), infer (the model's run), post (the postprocessor), handle (the handler), lookup (waits for stores and other services; a part of pre, post and handle).";
    REQUEST_ROWS Counter "gristmill.request.rows" ["{row}"] (tenant, pipeline, model)
        "Rows that models ran for requests.";
    REQUEST_IO Counter "gristmill.request.io" ["By"] (tenant, pipeline, model, direction)
        "Bytes of the bodies of requests (receive) and of answers (transmit).";
    REQUEST_MODEL_TIME Counter "gristmill.request.model.time" ["s"] (tenant, pipeline, model)
        "The requests' share of their batches, by rows: of the CPU time if one thread ran the model, else of the time that it took.";
    PLUGIN_CPU_TIME Counter "gristmill.plugin.cpu.time" ["s"] (tenant, pipeline, stage)
        "CPU time of plugin calls, native work for them included.";
    PLUGIN_MEMORY_PEAK Gauge "gristmill.plugin.memory.peak" ["By"] (tenant, pipeline, stage)
        "The most memory that one plugin call had: its linear memory with the tensors and pictures that it held.";
    RESPONSES Counter "gristmill.responses" ["{response}"] (protocol, code)
        "Answers of the data plane by protocol (v1, v2, or grpc: inferences and refused calls), with ok, their error code, or abandoned if the client left before it had all of the answer. Refused requests are among them, whoever sent them.";
    WRITE_DURATION Histogram "gristmill.response.write.duration" ["s"] (protocol)
        "Time from an answer until its connection has taken the last byte of its body.";

    BATCH_ROWS Histogram "gristmill.batch.rows" ["{row}"] (model, version)
        "Rows of the batches that ran.";
    BATCH_FILL Histogram "gristmill.batch.fill" ["1"] (model, version)
        "Rows of the batches that ran, as a share of max_batch_size.";
    BATCH_ROWS_MAX Gauge "gristmill.batch.rows.max" ["{row}"] (model, version)
        "The model's max_batch_size.";
    BATCH_MIXED Counter "gristmill.batch.mixed" ["{batch}"] (model, version)
        "Batches with rows of several tenants.";
    BATCH_ELEMENTS Counter "gristmill.batch.elements" ["{element}"] (model, version, kind)
        "Elements of the inputs that `pad` names, in the batches that ran: those of requests (real), and those that filled rows up (padding).";
    MODEL_TIME Counter "gristmill.model.time" ["s"] (model, version, part)
        "Time of the batches that ran: copying inputs together (input), the model (run), taking outputs apart (output).";
    MODEL_REQUESTS Counter "gristmill.model.requests" ["{request}"] (model, version, outcome)
        "Requests to the model, success or fail.";
    MODEL_REFUSED Counter "gristmill.model.refused" ["{request}"] (model, version, reason)
        "Requests that the model did not run: queue_full, too_late (it could not have been answered in time) or expired (its time in the queue passed).";
    MODEL_INCIDENTS Counter "gristmill.model.incidents" ["{incident}"] (model, version, kind)
        "Batches cut in half because they failed (bisected), runs that were told to end (given_up), instances lost because they did not (lost), and whether a run showed that rows influence each other, which ended batches (batching_ended).";
    QUEUE_ROWS Gauge "gristmill.queue.rows" ["{row}"] (model, version)
        "Rows in the model's queue.";
    QUEUE_AGE Gauge "gristmill.queue.age" ["s"] (model, version)
        "Age of the request that has been in the queue longest.";
    MODEL_INSTANCES Gauge "gristmill.model.instances" ["{instance}"] (model, version, state)
        "Instances of the model that run a batch (busy) or wait for one (idle).";
    MODEL_SIZE Gauge "gristmill.model.size" ["By"] (model, version)
        "Size of the model's file; each instance that does not share it holds about as much.";
    PROVIDER_RUNS Counter "gristmill.provider.runs" ["{run}"] (model, version, provider)
        "Batches that the provider ran.";
    PROVIDER_FAULTS Counter "gristmill.provider.faults" ["{run}"] (model, version, provider)
        "Batches that failed on the provider and were run by the next one (fallback).";
    PROVIDER_OPEN Gauge "gristmill.provider.circuit.open" ["{circuit}"] (model, version, provider)
        "1 while the provider is not asked because it failed too often (its circuit is open), else 0.";

    TENANT_BYTES Gauge "gristmill.tenant.memory" ["By"] (tenant)
        "Bytes that the tenant's requests, answers and plugin calls hold.";
    TENANT_BYTES_LIMIT Gauge "gristmill.tenant.memory.limit" ["By"] ()
        "The most bytes that one tenant may hold (tenant_bytes_max).";
    TENANT_REFUSED Counter "gristmill.tenant.refused" ["{request}"] (tenant)
        "Requests refused because the tenant's quota was used up; of tenants with labels of their own.";
    TENANT_PLACES Gauge "gristmill.tenant.plugin.calls" ["{call}"] (tenant)
        "Plugin calls of the tenant under way.";
    PLUGIN_INSTANCES Gauge "gristmill.plugin.instances" ["{instance}"] (state)
        "Instances of plugins: busy in a call, waiting for the second call of their request (waiting), or kept for the next request (idle).";
    PLUGIN_INSTANCES_LIMIT Gauge "gristmill.plugin.instances.limit" ["{instance}"] ()
        "The most plugin calls at the same time (concurrent_plugin_calls).";
    COMPILE_DURATION Histogram "gristmill.plugin.compile.duration" ["s"] ()
        "Time from a plugin's upload until it was compiled and checked, the wait for other compilations included.";
    JOBS Gauge "gristmill.jobs" ["{job}"] (job, state)
        "Compilations of plugins and proofs of models in child processes, running or queued.";

    RELEASE Gauge "gristmill.release" ["{release}"] ()
        "Number of the release that serves.";
    RELEASES Counter "gristmill.releases" ["{release}"] ()
        "Times that this server put a state in force since it started: one for releases that were made together.";
    SWAP_DURATION Histogram "gristmill.release.swap.duration" ["s"] ()
        "Time to put a release in force, once its snapshot is built.";
    BUILD_DURATION Histogram "gristmill.release.build.duration" ["s"] ()
        "Time to build the snapshot of a release.";
    OUT_OF_SERVICE Gauge "gristmill.unavailable" ["{thing}"] (what)
        "Plugins, models and pipelines that do not serve.";
    OBJECTS Gauge "gristmill.objects" ["{thing}"] (what)
        "Tenants, pipelines, plugins and models of the release that serves.";
    REPLICA_LAG Gauge "gristmill.replica.lag" ["s"] ()
        "Time since this server last found that it serves the newest release of the store that it shares.";
    STORE_TROUBLE Gauge "gristmill.store.trouble" ["{store}"] ()
        "1 while the store cannot be reached or read, else 0.";

    CONNECTIONS Gauge "gristmill.connections" ["{connection}"] (plane)
        "Open connections of the data plane with gRPC (data), and of the admin plane (admin).";
    CONNECTIONS_LIMIT Gauge "gristmill.connections.limit" ["{connection}"] (plane)
        "The most connections at the same time.";
    LOG_DROPPED Counter "gristmill.log.dropped" ["{line}"] ()
        "Log lines that were dropped because they came faster than they were read.";
    PROCESS_CPU Counter "process.cpu.time" ["s"] (mode)
        "CPU time of the server's process, user and system; children are not included.";
    PROCESS_MEMORY Gauge "process.memory.usage" ["By"] ()
        "Resident memory of the server's process.";
    MEMORY Gauge "gristmill.memory.usage" ["By"] (part)
        "Memory of the server by what holds it; the reference of the status says what each part is.";
    PROCESS_HEAP Gauge "gristmill.process.heap" ["By"] ()
        "Memory that the server's allocator has from the system, whether it is in use or not.";
    PROCESS_THREADS Gauge "process.thread.count" ["{thread}"] ()
        "Threads of the server's process.";
    PROCESS_FILES Gauge "process.unix.file_descriptor.count" ["{file_descriptor}"] ()
        "Open files of the server's process.";
    PROCESS_UPTIME Gauge "process.uptime" ["s"] ()
        "Time since the server was started.";
    GPU_UTILIZATION Gauge "hw.gpu.utilization" ["1"] (gpu, name)
        "Share of the last moment (up to a second) in which the GPU ran anything, of any process; for machines with NVIDIA's driver, as are the next four.";
    GPU_MEMORY Gauge "hw.gpu.memory.usage" ["By"] (gpu, name)
        "Memory of the GPU that is in use, by any process.";
    GPU_MEMORY_LIMIT Gauge "hw.gpu.memory.limit" ["By"] (gpu, name)
        "Memory of the GPU.";
    GPU_TEMPERATURE Gauge "hw.temperature" ["Cel"] (gpu, name)
        "Temperature of the GPU.";
    GPU_POWER Gauge "hw.power" ["W"] (gpu, name)
        "Power that the GPU takes.";
    TARGET_INFO Gauge "gristmill.info" ["{server}"] (version)
        "1, with the version of the server.";
    METRICS_PLACES Gauge "gristmill.metrics.pipelines" ["{pipeline}"] (state)
        "Pipelines and models with labels of their own (own), and those together under _other (other).";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{
        ALL, Kind, PROCESS_CPU, PROCESS_THREADS, REQUEST_DURATION, REQUESTS, TENANT_BYTES,
    };

    #[test]
    fn names_follow_the_conventions_of_both_sides() {
        assert_eq!(REQUESTS.prometheus_name(), "gristmill_requests_total");
        assert_eq!(REQUEST_DURATION.prometheus_name(), "gristmill_request_duration_seconds");
        assert_eq!(TENANT_BYTES.prometheus_name(), "gristmill_tenant_memory_bytes");
        assert_eq!(PROCESS_CPU.prometheus_name(), "process_cpu_time_seconds_total");
        assert_eq!(PROCESS_THREADS.prometheus_name(), "process_threads");
        let names: BTreeSet<_> = ALL.iter().map(|family| family.prometheus_name()).collect();
        assert_eq!(names.len(), ALL.len());
        for family in ALL {
            assert!(family.help.ends_with('.'), "{}", family.name);
            assert!(family.kind != Kind::Histogram || family.unit != "By", "{}", family.name);
        }
    }
}
