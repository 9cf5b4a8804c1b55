//! What is explained: a pipeline or a model of Gristmill, found by its URL, with what the admin API
//! says about it.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use gristmill_load::Url;
use serde_json::Value;

use crate::admin::{self, Admin};

/// A pipeline or a model.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) tenant: Option<String>,
    pub(super) pipeline: Option<String>,
    /// How the pipeline uses instances again.
    pub(super) instance_reuse: Option<String>,
    /// Whether the pipeline is a handler, which runs the model itself.
    pub(super) is_handler: bool,
    pub(super) model: String,
    /// Where inferences of the model go.
    pub(super) model_path: String,
    pub(super) config: ModelConfig,
}

/// What a model's configuration says about its batches.
#[derive(Clone, Debug)]
pub(super) struct ModelConfig {
    pub(super) instances: usize,
    pub(super) threads: usize,
    pub(super) max_rows: usize,
    pub(super) preferred_rows: Vec<usize>,
    pub(super) delay_us: f64,
    /// The learned time of a batch, if there is one: fixed, and for each row.
    pub(super) learned_us: Option<(f64, f64)>,
}

/// Where a URL leads.
#[derive(Debug, PartialEq)]
enum UrlTarget<'a> {
    Pipeline { tenant: &'a str, pipeline: Option<&'a str> },
    Model { tenant: Option<&'a str>, model: &'a str },
}

fn url_target(path: &str) -> Option<UrlTarget<'_>> {
    let path = path.split('?').next()?.strip_prefix('/')?;
    let segments: Vec<_> = path.trim_end_matches('/').split('/').collect();
    Some(match *segments {
        ["v1", tenant, "infer"] => UrlTarget::Pipeline { tenant, pipeline: None },
        ["v1", tenant, "infer", pipeline] => {
            UrlTarget::Pipeline { tenant, pipeline: Some(pipeline) }
        }
        ["v2", "models", model] | ["v2", "models", model, "infer"] => {
            UrlTarget::Model { tenant: None, model }
        }
        ["v1", tenant, "v2", "models", model] | ["v1", tenant, "v2", "models", model, "infer"] => {
            UrlTarget::Model { tenant: Some(tenant), model }
        }
        _ => return None,
    })
}

impl Subject {
    /// # Errors
    /// The URL leads elsewhere, or the admin API does not know the pipeline or the model.
    pub(super) fn of(url: &Url, admin: &Admin) -> Result<Self> {
        let Some(url_target) = url_target(&url.path) else {
            bail!(
                "{} is not a pipeline or a model of Gristmill, which --explain needs: \
                 http://HOST/v1/TENANT/infer, http://HOST/v1/TENANT/infer/PIPELINE, or \
                 http://HOST/v2/models/MODEL with --rows",
                url.path
            );
        };
        match url_target {
            UrlTarget::Pipeline { tenant, pipeline } => Self::of_pipeline(admin, tenant, pipeline),
            UrlTarget::Model { tenant, model } => {
                let base = tenant.map(|tenant| format!("/v1/{tenant}")).unwrap_or_default();
                Ok(Self {
                    tenant: tenant.map(str::to_owned),
                    pipeline: None,
                    instance_reuse: None,
                    is_handler: false,
                    model: model.to_owned(),
                    model_path: format!("{base}/v2/models/{model}"),
                    config: ModelConfig::read(admin, model)?,
                })
            }
        }
    }

    fn of_pipeline(admin: &Admin, tenant: &str, pipeline: Option<&str>) -> Result<Self> {
        let tenant = admin::name("the tenant of the URL", tenant)?;
        let pipeline = match pipeline {
            Some(pipeline) => pipeline.to_owned(),
            None => {
                let document = admin.get(&format!("tenants/{tenant}"));
                let document = document.with_context(|| format!("cannot read tenant {tenant}"))?;
                let default = document["default_pipeline"].as_str();
                default.with_context(|| format!("{tenant} has no default pipeline"))?.to_owned()
            }
        };
        let pipeline = admin::name("the pipeline of the URL", &pipeline)?;
        let document = admin.get(&format!("tenants/{tenant}/pipelines/{pipeline}"));
        let document = document.with_context(|| format!("cannot read pipeline {pipeline}"))?;
        let model = model_of(&document).with_context(|| format!("pipeline {pipeline}"))?;
        let reuse = match &document["instance_reuse"] {
            Value::Null => None,
            Value::String(reuse) => Some(reuse.clone()),
            other => Some(other["mode"].as_str().unwrap_or("tenant").to_owned()),
        };
        Ok(Self {
            model_path: format!("/v1/{tenant}/v2/models/{model}"),
            config: ModelConfig::read(admin, &model)?,
            tenant: Some(tenant.to_string()),
            pipeline: Some(pipeline.to_string()),
            instance_reuse: reuse,
            is_handler: document["handler"].is_string(),
            model,
        })
    }
}

/// The only model of a pipeline, without its version. A handler may have several names for it.
fn model_of(pipeline: &Value) -> Result<String> {
    let of_handler = pipeline["models"].as_object().into_iter().flat_map(|models| models.values());
    let named = of_handler.chain([&pipeline["model"]]).filter_map(Value::as_str);
    let models: BTreeSet<_> = named.map(|name| name.split('@').next().unwrap_or(name)).collect();
    match models.into_iter().collect::<Vec<_>>()[..] {
        [model] => Ok(model.to_owned()),
        [] => bail!("it names no model"),
        ref several => bail!(
            "it runs {}, and --explain knows pipelines with one model: explain the load of each \
             model by itself, http://HOST/v2/models/MODEL with --rows",
            several.join(", ")
        ),
    }
}

impl ModelConfig {
    fn read(admin: &Admin, model: &str) -> Result<Self> {
        let status = admin.get("status").context("cannot read the status")?;
        let document = &status["models"][model];
        if document["state"] != "ready" {
            bail!("the model {model} does not serve");
        }
        if !document["config"].is_object() {
            bail!("the token does not show the configuration of {model}: use one for the server");
        }
        Self::of(document).with_context(|| format!("the configuration of {model} is not known"))
    }

    fn of(document: &Value) -> Option<Self> {
        let config = &document["config"];
        let number = |key: &str| config[key].as_u64().map(|number| number as usize);
        // The configuration may leave them to the server.
        let size = |key: &str| document["sizes"][key].as_u64().map(|number| number as usize);
        let preferred = config["preferred_batch_sizes"].as_array().into_iter().flatten();
        let mut preferred: Vec<usize> =
            preferred.filter_map(|size| Some(size.as_u64()? as usize)).collect();
        preferred.sort_unstable();
        let learned = &document["statistics"]["service_time_us"];
        let is_shared = document["batching"]["is_on"] == true;
        Some(Self {
            instances: size("instances")?,
            threads: size("threads")?,
            max_rows: if is_shared { size("max_batch_size")? } else { 1 },
            preferred_rows: if is_shared { preferred } else { Vec::new() },
            delay_us: number("max_queue_delay_us")? as f64,
            learned_us: learned["fixed"].as_f64().zip(learned["per_row"].as_f64()),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{UrlTarget, model_of, url_target};

    #[test]
    fn a_handler_with_one_model_is_explained() {
        let model = |pipeline| model_of(&pipeline).map_err(|error| error.to_string());
        assert_eq!(model(json!({ "pre": "p", "model": "m@3", "post": "p" })), Ok("m".into()));
        let one = json!({ "handler": "h", "models": { "a": "m", "b": "m@2" } });
        assert_eq!(model(one), Ok("m".into()));
        let two = model(json!({ "handler": "h", "models": { "a": "m", "b": "n" } })).unwrap_err();
        assert!(two.starts_with("it runs m, n, and --explain knows pipelines with one"), "{two}");
        assert_eq!(model(json!({})), Err("it names no model".into()));
    }

    #[test]
    fn a_url_leads_to_a_pipeline_or_a_model() {
        let pipeline = |pipeline| Some(UrlTarget::Pipeline { tenant: "a", pipeline });
        assert_eq!(url_target("/v1/a/infer"), pipeline(None));
        assert_eq!(url_target("/v1/a/infer/p?x=/v2"), pipeline(Some("p")));
        let model = |tenant| Some(UrlTarget::Model { tenant, model: "m" });
        assert_eq!(url_target("/v2/models/m"), model(None));
        assert_eq!(url_target("/v1/a/v2/models/m/infer"), model(Some("a")));
        for other in ["/", "/livez", "/v1/a", "/v1/a/infer/p/q", "/v2/models", "/v2/models/m/x"] {
            assert_eq!(url_target(other), None, "{other}");
        }
    }
}
