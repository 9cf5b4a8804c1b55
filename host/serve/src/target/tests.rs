use gristmill_batch::{Lane, LaneConfig, LaneParts};
use gristmill_core::{BufferPool, Digest, ModelInfo};
use gristmill_metrics::LabelSlots;
use gristmill_snapshot::{Access, Direct, KeptVersion, Tenant};

use super::*;
use crate::samples::{name, tenant};

/// A lane without instances. These tests submit nothing to it.
fn lane() -> Arc<Lane> {
    let parts = LaneParts {
        name: "idle",
        info: ModelInfo {
            backend: "test",
            inputs: Vec::new(),
            outputs: Vec::new(),
            forms_batches: false,
            optional: Vec::new(),
            equal_dims: Vec::new(),
        },
        instances: Vec::new(),
        config: LaneConfig::new(1, 1),
        pool: BufferPool::new(0),
    };
    Arc::new(Lane::new(parts).unwrap())
}

/// A model in version 7, which was version 3 and then 5 before. Version 5 stays, but is not loaded.
fn model(served: Result<ServedModel, String>) -> ModelState {
    let digest = Digest::from_bytes([0; 32]);
    let kept = [(5, KeptVersion { digest, loaded: Err("no such file".into()) })].into();
    let notes = Arc::default();
    ModelState { digest, version: 7, earlier_versions: vec![3, 5], served, kept, notes }
}

/// The models "ready", "broken", "multiple" (in versions 5 and 7) and "secret". The tenant "acme"
/// may see all but the last. It has the pipelines "first" and "second", which are not available.
fn snapshot() -> Snapshot {
    let served = || ServedModel {
        lane: lane(),
        providers: Arc::new([]),
        file_bytes: 0,
        certificates: Arc::new([]),
        padding_proofs: Arc::new([]),
        sizes: Arc::default(),
        warnings: Arc::new([]),
    };
    let mut snapshot = Snapshot::default();
    snapshot.models.insert(name("ready"), model(Ok(served())));
    snapshot.models.insert(name("secret"), model(Ok(served())));
    snapshot.models.insert(name("broken"), model(Err("no such file".into())));
    let mut multiple = model(Ok(served()));
    multiple.kept.get_mut(&5).unwrap().loaded = Ok(served());
    snapshot.models.insert(name("multiple"), multiple);
    let mut acme = tenant(Access::Open);
    let granted = |model: &str| {
        let target = gristmill_metrics::RequestTarget::Model(name(model));
        let figures = LabelSlots::new(0).figures(name("acme"), target);
        let (model, figures) = (name(model), figures.into());
        (
            model.clone(),
            Arc::new(Direct {
                tenant: name("acme"),
                model,
                figures,
                usage: Arc::default(),
                slowest: Arc::default(),
            }),
        )
    };
    acme.models.extend(["ready", "broken", "multiple"].map(granted));
    for pipeline in ["second", "first"] {
        acme.pipelines.insert(name(pipeline), Pipeline::Unavailable("no plugin".into()));
    }
    snapshot.tenants.insert_mut(name("acme"), Arc::new(acme));
    snapshot
}

fn acme(snapshot: &Snapshot) -> Caller<'_> {
    let (name, tenant) = snapshot.tenants.get_key_value("acme").unwrap();
    Caller::Tenant(NamedTenant { name, tenant })
}

/// The name and the version of what is found, or why nothing is.
type Found = Result<(String, u64), NotFound>;

/// A model or pipeline of this name is found in the version that serves.
fn found(name: &str, version: u64) -> Found {
    Ok((name.into(), version))
}

fn unknown(name: &str) -> Found {
    Err(NotFound::Model(name.into()))
}

fn superseded(name: &str, asked: &str, loaded: &str) -> Found {
    Err(NotFound::Superseded { name: name.into(), asked: asked.into(), loaded: loaded.into() })
}

fn no_version(name: &str, asked: &str, loaded: &str) -> Found {
    Err(NotFound::Version { name: name.into(), asked: asked.into(), loaded: loaded.into() })
}

#[test]
fn a_caller_finds_what_is_granted_to_it_in_the_version_that_serves() {
    let snapshot = snapshot();
    let (acme, operator) = (acme(&snapshot), Caller::Operator(None));
    let cases = [
        (acme, "ready", "", found("ready", 7)),
        (acme, "ready", "7", found("ready", 7)),
        (acme, "ready", "5", found("ready", 5)),
        (acme, "ready", "3", superseded("ready", "3", "version 7 is loaded")),
        (acme, "ready", "8", no_version("ready", "8", "version 7 is loaded")),
        (acme, "ready", "07", no_version("ready", "07", "version 7 is loaded")),
        (acme, "broken", "", found("broken", 7)),
        (acme, "broken", "3", superseded("broken", "3", "no version is loaded")),
        (acme, "multiple", "5", found("multiple", 5)),
        (acme, "multiple", "8", no_version("multiple", "8", "versions 5 and 7 are loaded")),
        // A model that is not granted is refused like one that does not exist.
        (acme, "secret", "", unknown("secret")),
        (acme, "secret", "3", unknown("secret")),
        (acme, "none", "", unknown("none")),
        (acme, "no name", "", unknown("no name")),
        (acme, "pipeline:first", "", found("pipeline:first", 1)),
        (acme, "pipeline:first", "1", found("pipeline:first", 1)),
        (acme, "pipeline:first", "7", no_version("pipeline:first", "7", "no version is loaded")),
        (acme, "pipeline:third", "", unknown("pipeline:third")),
        (acme, "pipeline:ready", "", unknown("pipeline:ready")),
        (acme, "first", "", found("pipeline:first", 1)),
        (acme, "third", "", unknown("third")),
        (operator, "first", "", unknown("first")),
        (operator, "secret", "", found("secret", 7)),
        (operator, "secret", "3", superseded("secret", "3", "version 7 is loaded")),
        (operator, "pipeline:first", "", unknown("pipeline:first")),
    ];
    for (caller, name, version, expected) in cases {
        let result = caller.find(&snapshot, NamedModel { name, version });
        let result = result.map(|found| (found.name(), found.version()));
        assert_eq!(result, expected, "{name:?} in version {version:?}");
    }
}

#[test]
fn a_caller_sees_its_models_and_then_its_pipelines() {
    let snapshot = snapshot();
    let names = |caller: Caller<'_>| -> Vec<_> {
        caller.models(&snapshot).into_iter().map(ModelOrPipeline::name).collect()
    };
    let own_models = ["broken", "multiple", "ready", "pipeline:first", "pipeline:second"];
    assert_eq!(names(acme(&snapshot)), own_models);
    assert_eq!(names(Caller::Operator(None)), ["broken", "multiple", "ready", "secret"]);
}

#[test]
fn a_target_is_found_only_if_it_is_loaded() {
    let snapshot = snapshot();
    let not_loaded = |name: &str, version: Option<u64>, reason: &str| {
        Err(NotFound::NotLoaded { name: name.into(), version, reason: reason.into() })
    };
    let cases = [
        ("ready", "", Ok(("ready", 7))),
        ("ready", "5", not_loaded("ready", Some(5), "no such file")),
        ("multiple", "5", Ok(("multiple", 5))),
        ("broken", "", not_loaded("broken", None, "no such file")),
        ("pipeline:first", "", not_loaded("pipeline:first", None, "no plugin")),
    ];
    for (name, version, expected) in cases {
        let found = acme(&snapshot).find(&snapshot, NamedModel { name, version });
        let served = found.and_then(ModelOrPipeline::served).map(|target| match target {
            Target::Model(LoadedModel { name, version, .. }) => (name.as_str(), version),
            Target::Pipeline { name, .. } => (name.as_str(), PIPELINE_VERSION),
        });
        assert_eq!(served, expected, "{name:?} in version {version:?}");
    }
}

#[test]
fn a_pipeline_is_found_by_its_name_or_as_the_default() {
    let tenant_with = |pipelines: &[&str], default: Option<&str>| {
        let mut tenant: Tenant = tenant(Access::Open);
        tenant.default_pipeline = default.map(name);
        for pipeline in pipelines {
            tenant.pipelines.insert(name(pipeline), Pipeline::Unavailable("no plugin".into()));
        }
        Arc::new(tenant)
    };
    let missing = |pipeline: &str, pipelines: &str| NotFound::Pipeline {
        tenant: "acme".into(),
        pipeline: pipeline.into(),
        pipelines: pipelines.into(),
    };
    let unavailable = |pipeline: &str| NotFound::Unavailable {
        pipeline: pipeline.into(),
        reason: "no plugin".into(),
    };
    let no_default =
        NotFound::NoDefault { tenant: "acme".into(), pipelines: "first, second".into() };
    let (none, two) = (&[][..], &["second", "first"][..]);
    let cases = [
        (none, None, None, NotFound::NoPipelines("acme".into())),
        (none, None, Some("first"), NotFound::NoPipelines("acme".into())),
        (two, None, None, no_default),
        (two, None, Some("first"), unavailable("first")),
        (two, None, Some("third"), missing("third", "first, second")),
        (two, Some("second"), None, unavailable("second")),
        (two, Some("second"), Some("first"), unavailable("first")),
        // The default pipeline may have been deleted.
        (two, Some("third"), None, missing("third", "first, second")),
    ];
    let acme = name("acme");
    for (pipelines, default, asked, expected) in cases {
        let tenant = tenant_with(pipelines, default);
        let found = find_pipeline(NamedTenant { name: &acme, tenant: &tenant }, asked);
        assert_eq!(found.err(), Some(expected), "{asked:?} of {pipelines:?}, default {default:?}");
    }
}
