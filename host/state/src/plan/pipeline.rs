//! Finding the faults of a pipeline document. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use gristmill_core::{Name, PipelineLimits};

use crate::error::StateError;
use crate::fault::Subject;
use crate::plan::fit::Wanted;
use crate::release::assets::AssetNames;
use crate::release::candidate::CandidateSpec;
use crate::release::document::Faults;
use crate::release::limits::LimitsSpec;
use crate::release::pipeline::{PipelineDocument, PipelineSpec};
use crate::serving::Serving;
use crate::token_scope::TokenScope;

/// A pipeline that is put, and what it is compared with.
pub struct PutPipeline<'a> {
    /// The tenant that owns it.
    pub tenant: &'a Name,
    /// Its name.
    pub pipeline: &'a Name,
    /// What serves now.
    pub serving: Arc<Serving>,
    /// A model beyond it does not exist.
    pub token_scope: &'a TokenScope,
    /// What the host allows.
    pub limits: &'a PipelineLimits,
}

impl PutPipeline<'_> {
    /// The error for a document with faults. It has all faults of the pipeline: those of its
    /// document, names of things that do not exist, and things that do not fit it.
    pub fn faulty(self, document: PipelineDocument) -> StateError {
        let PipelineDocument { parts, assets, mut faults, limits, .. } = document;
        let (priority, candidate) = (document.priority, document.candidate);
        let memory_bytes = (!faults.has("limits.memory_bytes")).then(|| self.memory_bytes(&limits));
        let wanted = Wanted { parts: &parts, assets: &assets, priority, memory_bytes };
        self.compare(&wanted, &mut faults);
        self.compare_candidate(candidate.as_deref(), priority, memory_bytes, &mut faults);
        self.error(faults)
    }

    /// The faults of a pipeline that would not serve, with their places, if it has some.
    pub fn misfit(self, spec: &PipelineSpec) -> Option<StateError> {
        let parts = spec.program.parts();
        let memory_bytes = Some(self.memory_bytes(&spec.limits));
        let (assets, priority) = (&spec.assets, spec.priority);
        let wanted = Wanted { parts: &parts, assets, priority, memory_bytes };
        let mut faults = Faults::default();
        self.compare(&wanted, &mut faults);
        let candidate = spec.candidate.as_deref();
        self.compare_candidate(candidate, wanted.priority, wanted.memory_bytes, &mut faults);
        (!faults.is_empty()).then(|| self.error(faults))
    }

    fn memory_bytes(&self, limits: &LimitsSpec) -> usize {
        limits.memory_bytes.unwrap_or(self.limits.plugin.memory_bytes)
    }

    fn compare(&self, wanted: &Wanted<'_>, faults: &mut Faults) {
        let (no_plugins, no_assets) = (BTreeMap::new(), BTreeMap::new());
        let Serving { snapshot, desired, .. } = &*self.serving;
        let tenant = snapshot.tenants.get(self.tenant);
        let plugins = tenant.map_or(&no_plugins, |tenant| &tenant.plugins);
        let assets = tenant.map_or(&no_assets, |tenant| &tenant.assets);
        let model = |name: &Name| {
            let model = snapshot.models.get(name);
            model.filter(|_| self.token_scope.has_model(desired, name.as_str()))
        };
        wanted.check(plugins, assets, model, faults);
    }

    /// Compare what the candidate names itself.
    fn compare_candidate(
        &self,
        candidate: Option<&CandidateSpec>,
        priority: Option<u32>,
        memory_bytes: Option<usize>,
        faults: &mut Faults,
    ) {
        let Some(candidate) = candidate else { return };
        let mut candidate_faults = Faults::default();
        let no_assets = AssetNames::new();
        let assets = candidate.assets.as_ref().unwrap_or(&no_assets);
        let wanted = Wanted { parts: &candidate.parts(), assets, priority, memory_bytes };
        self.compare(&wanted, &mut candidate_faults);
        faults.add_all("candidate", candidate_faults);
    }

    fn error(&self, faults: Faults) -> StateError {
        let (tenant, pipeline) = (self.tenant.clone(), self.pipeline.clone());
        StateError::Document { subject: Subject::Pipeline { tenant, pipeline }, faults }
    }
}
