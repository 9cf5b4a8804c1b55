//! `GET /admin/v1/status`: every tenant, plugin, pipeline and model, and what the lanes did.

use axum::extract::State;
use gristmill_batch::LaneStatistics;
use gristmill_control::{JobStatus, PublishedModel};
use gristmill_core::TensorInfo;
use gristmill_snapshot::{ModelState, Pipeline, PluginState, ProviderHealth, ServedModel, Tenant};
use serde_json::{Map, Value, json};

use super::AdminState;
use super::answer::Json;

pub(super) async fn status(State(state): State<AdminState>) -> Json {
    let serving = state.control.serving();
    let (snapshot, desired) = (&serving.snapshot, &serving.desired);
    let models = snapshot.models.iter().map(|(name, model)| {
        let config = desired.models.get(name).map(|model| json!(model.config));
        (name.to_string(), describe_model(model, config.unwrap_or_default()))
    });
    let tenants = snapshot.tenants.iter();
    let tenants = tenants.map(|(name, tenant)| (name.to_string(), describe_tenant(tenant)));
    let mut tenants: Vec<_> = tenants.collect();
    tenants.sort_by_key(|(name, _)| name.clone());
    Json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "release": snapshot.release,
        "backends": state.control.backends(),
        "log": { "dropped_lines": state.log.dropped() },
        "jobs": state.control.jobs().iter().map(describe_job).collect::<Vec<_>>(),
        "models": models.collect::<Map<_, _>>(),
        "tenants": tenants.into_iter().collect::<Map<_, _>>(),
    }))
}

/// Work in a child process: what runs, and what waits for its turn.
fn describe_job(job: &JobStatus) -> Value {
    json!({
        "job": job.job,
        "subject": job.subject,
        "state": if job.running.is_some() { "running" } else { "queued" },
        "waited_s": job.waited.as_secs_f64(),
        "running_s": job.running.map(|running| running.as_secs_f64()),
    })
}

fn describe_model(model: &ModelState, config: Value) -> Value {
    let mut document = json!({
        "digest": model.digest,
        "version": model.version,
        "config": config,
    });
    match &model.served {
        Ok(served) => {
            let state = match served.lane.refusal() {
                None => json!({ "state": "ready" }),
                Some(why) => json!({ "state": "failed", "reason": &*why }),
            };
            merge(&mut document, state);
            merge(&mut document, describe_served(served));
            let statistics = describe_lane(&served.lane.statistics());
            merge(&mut document, json!({ "statistics": statistics }));
        }
        Err(why) => merge(&mut document, json!({ "state": "failed", "reason": why })),
    }
    document
}

/// What serves a model, and what it takes and gives.
fn describe_served(ServedModel { lane, providers, warnings }: &ServedModel) -> Value {
    let info = lane.info();
    json!({
        "backend": info.backend,
        "provider": providers.first().map(|provider| provider.name),
        "providers": providers.iter().map(describe_provider).collect::<Vec<_>>(),
        "warnings": warnings[..],
        "dynamic_rows": info.rows_are_dynamic(),
        "inputs": info.inputs.iter().map(describe_tensor).collect::<Vec<_>>(),
        "outputs": info.outputs.iter().map(describe_tensor).collect::<Vec<_>>(),
    })
}

/// What a model came to that was put or configured.
pub(super) fn describe_put(model: &PublishedModel) -> Value {
    let mut document = json!({ "release": model.published.release, "digest": model.digest });
    match &model.served {
        Some(served) => merge(&mut document, describe_served(served)),
        None => merge(&mut document, json!({ "warnings": ["it is unloaded"] })),
    }
    document
}

fn describe_provider(provider: &ProviderHealth) -> Value {
    json!({
        "name": provider.name,
        "runs": provider.runs(),
        "faults": provider.faults(),
        "state": if provider.is_open() { "failing" } else { "ready" },
    })
}

fn describe_tensor(info: &TensorInfo) -> Value {
    let shape: Vec<_> = info.dims.iter().map(|dim| dim.map_or(-1, |size| size as i64)).collect();
    json!({ "name": &*info.name, "datatype": info.dtype.as_str(), "shape": shape })
}

fn describe_lane(statistics: &LaneStatistics) -> Value {
    let tenants = statistics.tenants.iter().map(|(name, own)| {
        let own = json!({ "success": own.success, "fail": own.fail, "rows": own.rows });
        (name.to_string(), own)
    });
    let sizes = statistics
        .total
        .batches
        .iter()
        .map(|(rows, batches)| (rows.to_string(), json!(batches.count)));
    let recent = statistics.recent_mixed.iter().map(|batch| {
        batch.rows.iter().map(|(name, rows)| (name.to_string(), json!(rows))).collect::<Map<_, _>>()
    });
    json!({
        "success": statistics.total.success,
        "fail": statistics.total.fail,
        "expired": statistics.expired,
        "refused": statistics.refused,
        "running": statistics.running,
        "given_up": statistics.given_up,
        "lost": statistics.lost,
        "refused_early": statistics.refused_early,
        "bisections": statistics.bisections,
        "queued_rows": statistics.queued_rows,
        "rows": statistics.total.rows,
        "tenants": tenants.collect::<Map<_, _>>(),
        "batches": statistics.total.batch_count(),
        "batch_sizes": sizes.collect::<Map<_, _>>(),
        "mixed_batches": statistics.mixed_batches,
        "recent_mixed_batches": recent.collect::<Vec<_>>(),
        "queue_us": statistics.total.queue.as_micros() as u64,
        "compute_input_us": statistics.total.compute.input.as_micros() as u64,
        "compute_infer_us": statistics.total.compute.infer.as_micros() as u64,
        "compute_output_us": statistics.total.compute.output.as_micros() as u64,
        "service_time_us": statistics.service_time.map(|(fixed, per_row)| {
            json!({ "fixed": fixed * 1e6, "per_row": per_row * 1e6 })
        }),
    })
}

fn describe_tenant(tenant: &Tenant) -> Value {
    let plugins = tenant.plugins.iter();
    let plugins = plugins.map(|(name, plugin)| (name.to_string(), describe_plugin(plugin)));
    let mut pipelines: Vec<_> = tenant.pipelines.iter().collect();
    pipelines.sort_by_key(|(name, _)| (*name).clone());
    let pipelines = pipelines.into_iter().map(|(name, pipeline)| {
        let state = match pipeline {
            Pipeline::Ready(_) => json!({ "state": "ready" }),
            Pipeline::Unavailable(why) => json!({ "state": "unavailable", "reason": why }),
        };
        (name.to_string(), state)
    });
    json!({
        "open": tenant.access == gristmill_snapshot::Access::Open,
        "models": tenant.models,
        "bytes_under_way": tenant.quota.bytes.held(),
        "default_pipeline": tenant.default_pipeline,
        "plugins": plugins.collect::<Map<_, _>>(),
        "pipelines": pipelines.collect::<Map<_, _>>(),
    })
}

fn describe_plugin(plugin: &PluginState) -> Value {
    let mut document = json!({ "digest": plugin.digest });
    let more = match &plugin.plugin {
        Ok(plugin) => json!({
            "state": "ready",
            "world": plugin.roles().world(),
            "imports": plugin.imports(),
        }),
        Err(why) => json!({ "state": "failed", "reason": why }),
    };
    merge(&mut document, more);
    document
}

fn merge(document: &mut Value, more: Value) {
    if let (Value::Object(document), Value::Object(more)) = (document, more) {
        document.extend(more);
    }
}
