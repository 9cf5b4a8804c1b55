//! A pipeline in a release, and the document that people write.

mod form;

use std::borrow::Cow;

use gristmill_core::PipelineLimits;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

use self::form::PipelineForm;
use crate::release::assets::{AssetNames, read_assets};
use crate::release::candidate::CandidateSpec;
use crate::release::capture::CaptureSpec;
use crate::release::document::{Document, Faults};
use crate::release::instance_reuse::InstanceReuse;
use crate::release::limits::LimitsSpec;
use crate::release::named_version::NamedVersion;
use crate::release::oip::OipSpec;
use crate::release::program::{ProgramParts, ProgramSpec};
use crate::release::sample::{self, Sample};

/// The most bytes of a pipeline's settings: the log keeps them, and each plugin call gets a copy.
const SETTINGS_BYTES_MAX: u64 = 64 << 10;

/// A pipeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "PipelineForm", into = "PipelineForm")]
pub struct PipelineSpec {
    /// The plugins and models that run its requests.
    pub program: ProgramSpec,
    /// A JSON object that the plugins can read.
    pub settings: Map<String, Value>,
    /// The assets that the plugins can open.
    pub assets: AssetNames,
    /// The limits of its requests.
    pub limits: LimitsSpec,
    /// The models' priority level for its requests; 1 is served first. If it is not given: the
    /// default of each model.
    pub priority: Option<u32>,
    /// How its plugins' instances are used again.
    pub instance_reuse: InstanceReuse,
    /// Whether its clients see why a plugin call failed, with the lines of that call.
    pub debug: bool,
    /// Its named inputs and outputs over the Open Inference Protocol.
    pub oip: Option<OipSpec>,
    /// Other plugins, other models or other settings that are tried in its place.
    pub candidate: Option<Box<CandidateSpec>>,
    /// Which requests are kept, so that people can make samples of them.
    pub capture: Option<CaptureSpec>,
    /// The requests that it must answer as expected before it serves.
    pub samples: Vec<Sample>,
}

/// A document that names neither all parts of one kind of program nor none of the other.
#[derive(Debug, thiserror::Error)]
#[error("a pipeline has either pre, model and post, or handler and models")]
pub struct InvalidProgram;

impl PipelineSpec {
    /// The plugins that it names.
    pub fn plugins(&self) -> impl Iterator<Item = &NamedVersion> {
        let candidate = self.candidate.iter().flat_map(|candidate| candidate.plugins());
        self.program.plugins().chain(candidate)
    }

    /// The models that it names.
    pub fn models(&self) -> impl Iterator<Item = &NamedVersion> {
        let candidate = self.candidate.iter().flat_map(|candidate| candidate.models());
        self.program.models().chain(candidate)
    }

    /// The assets that it names.
    pub fn assets(&self) -> impl Iterator<Item = &NamedVersion> {
        let candidate = self.candidate.iter().flat_map(|candidate| candidate.assets());
        self.assets.values().chain(candidate)
    }

    /// The assets of a request of its candidate. None if it has none.
    pub fn candidate_assets(&self) -> Option<&AssetNames> {
        let candidate = self.candidate.as_deref()?;
        Some(candidate.assets.as_ref().unwrap_or(&self.assets))
    }

    /// The plugins that run a request of its candidate. None if it has none.
    pub fn candidate_plugins(&self) -> Option<Vec<&NamedVersion>> {
        let candidate = self.candidate.as_deref()?;
        Some(match &self.program {
            ProgramSpec::Pair { pre, post, .. } => {
                vec![candidate.pre.as_ref().unwrap_or(pre), candidate.post.as_ref().unwrap_or(post)]
            }
            ProgramSpec::Handler { handler, .. } => {
                vec![candidate.handler.as_ref().unwrap_or(handler)]
            }
        })
    }

    /// The pipeline with the candidate in its place, and without a candidate. None if it has none.
    pub fn promoted(&self) -> Option<Self> {
        let candidate = self.candidate.as_deref()?;
        let mut promoted = self.without_candidate();
        promoted.program = promoted.program.with(candidate.parts());
        if let Some(settings) = &candidate.settings {
            promoted.settings = settings.clone();
        }
        if let Some(assets) = &candidate.assets {
            promoted.assets = assets.clone();
        }
        Some(promoted)
    }

    /// The pipeline without its candidate.
    pub fn without_candidate(&self) -> Self {
        Self { candidate: None, ..self.clone() }
    }
}

/// As the log has it. Its documents were read before by [`PipelineDocument`].
impl TryFrom<PipelineForm> for PipelineSpec {
    type Error = InvalidProgram;

    fn try_from(form: PipelineForm) -> Result<Self, InvalidProgram> {
        let PipelineForm { pre, model, post, handler, models, settings, .. } = form;
        let parts = ProgramParts { pre, model, post, handler, models };
        Ok(Self {
            program: parts.program().ok_or(InvalidProgram)?,
            settings,
            assets: form.assets,
            limits: form.limits,
            priority: form.priority,
            instance_reuse: form.instance_reuse,
            debug: form.debug,
            oip: form.oip,
            candidate: form.candidate,
            capture: form.capture,
            samples: form.samples,
        })
    }
}

impl From<PipelineSpec> for PipelineForm {
    fn from(spec: PipelineSpec) -> Self {
        let ProgramParts { pre, model, post, handler, models } = spec.program.parts();
        Self {
            pre,
            model,
            post,
            handler,
            models,
            settings: spec.settings,
            assets: spec.assets,
            limits: spec.limits,
            priority: spec.priority,
            instance_reuse: spec.instance_reuse,
            debug: spec.debug,
            oip: spec.oip,
            candidate: spec.candidate,
            capture: spec.capture,
            samples: spec.samples,
        }
    }
}

impl PartialSchema for PipelineSpec {
    fn schema() -> RefOr<Schema> {
        PipelineForm::schema()
    }
}

impl ToSchema for PipelineSpec {
    fn name() -> Cow<'static, str> {
        PipelineForm::name()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        PipelineForm::schemas(schemas);
    }
}

/// The readable parts of a pipeline's document, and its faults.
pub struct PipelineDocument {
    /// The plugins and models.
    pub parts: ProgramParts,
    settings: Map<String, Value>,
    /// The assets.
    pub assets: AssetNames,
    /// The limits.
    pub limits: LimitsSpec,
    /// The priority at the models.
    pub priority: Option<u32>,
    instance_reuse: InstanceReuse,
    debug: bool,
    oip: Option<OipSpec>,
    /// The candidate.
    pub candidate: Option<Box<CandidateSpec>>,
    capture: Option<CaptureSpec>,
    samples: Vec<Sample>,
    /// The faults of the document.
    pub faults: Faults,
}

impl PipelineDocument {
    /// Read a document with these `keys`. Limits are checked against what `host` allows.
    pub fn read(keys: Map<String, Value>, host: &PipelineLimits) -> Self {
        let mut document = Document::new(keys);
        let (parts, kind) = ProgramParts::read_all(&mut document);
        let settings = document.object("settings").unwrap_or_default();
        let assets = read_assets(&mut document).unwrap_or_default();
        let limits = document.nested("limits", LimitsSpec::read);
        let priority = document.whole("priority");
        let instance_reuse = InstanceReuse::read(&mut document);
        let debug = document.flag("debug").unwrap_or_default();
        let oip = OipSpec::read(&mut document);
        let candidate = CandidateSpec::read(&mut document, kind).map(Box::new);
        let capture = CaptureSpec::read(&mut document);
        let samples = sample::read(&mut document);
        let mut faults = document.finish();
        check_settings("settings", &settings, &mut faults);
        if let Some(settings) = candidate.as_ref().and_then(|candidate| candidate.settings.as_ref())
        {
            check_settings("candidate.settings", settings, &mut faults);
        }
        limits.check(host, &mut faults);
        instance_reuse.check(&mut faults);
        Self {
            parts,
            settings,
            assets,
            limits,
            priority,
            instance_reuse,
            debug,
            oip,
            candidate,
            capture,
            samples,
            faults,
        }
    }

    /// The pipeline, if the document has no faults.
    pub fn into_spec(self) -> Result<PipelineSpec, Box<Self>> {
        let program = self.parts.clone().program().filter(|_| self.faults.is_empty());
        let Some(program) = program else { return Err(Box::new(self)) };
        let Self { settings, assets, limits, priority, instance_reuse, .. } = self;
        let (debug, candidate, samples) = (self.debug, self.candidate, self.samples);
        let (oip, capture) = (self.oip, self.capture);
        Ok(PipelineSpec {
            program,
            settings,
            assets,
            limits,
            priority,
            instance_reuse,
            debug,
            oip,
            candidate,
            capture,
            samples,
        })
    }
}

fn check_settings(key: &str, settings: &Map<String, Value>, faults: &mut Faults) {
    let bytes = serde_json::to_vec(settings).map_or(0, |text| text.len() as u64);
    if bytes > SETTINGS_BYTES_MAX {
        let text = format!("{key} take {bytes} bytes as JSON: the limit is {SETTINGS_BYTES_MAX}");
        faults.add(key, text);
    }
}

#[cfg(test)]
mod tests;
