//! Things of a server by their names. A name that is not there may be a slip: the error says which
//! one may have been meant.

use anyhow::{Context, Result, bail};
use clap::{Arg, ArgMatches};
use gristmill_core::Name;
use serde_json::Value;

use crate::admin::{self, Admin};
use crate::args::{self, option, word};

/// How similar a name must be that is suggested, from 0 to 1: as for commands and flags.
const SIMILAR: f64 = 0.7;

/// The argument `NAME`.
pub(crate) fn argument(help: &'static str) -> Arg {
    word("name", "NAME").help(help)
}

/// The flag `--tenant`.
pub(crate) fn tenant_flag(help: &'static str) -> Arg {
    option("tenant", "NAME").required(true).help(help)
}

/// The arguments of a command about a pipeline, with those that say how the server is asked.
pub(crate) fn pipeline_arguments() -> impl Iterator<Item = Arg> {
    let pipeline = word("pipeline", "PIPELINE").help("The pipeline");
    [pipeline, tenant_flag("The pipeline's tenant")].into_iter().chain(admin::asking())
}

/// The value of an argument that must be a name. `shown` is what errors call it.
pub(crate) fn required(matches: &ArgMatches, argument: &str, shown: &str) -> Result<Name> {
    admin::name(shown, args::required(matches, argument)?)
}

/// The value of a flag that is a name, if it is given.
pub(crate) fn optional(matches: &ArgMatches, flag: &str) -> Result<Option<Name>> {
    let name = |name| admin::name(&format!("--{flag}"), name);
    args::text(matches, flag).map(name).transpose()
}

/// The value of [`argument`].
pub(crate) fn given(matches: &ArgMatches) -> Result<Name> {
    required(matches, "name", "NAME")
}

/// The value of [`tenant_flag`].
pub(crate) fn given_tenant(matches: &ArgMatches) -> Result<Name> {
    required(matches, "tenant", "--tenant")
}

/// The tenant and the pipeline in [`pipeline_arguments`].
pub(crate) fn given_pipeline(matches: &ArgMatches) -> Result<[Name; 2]> {
    Ok([given_tenant(matches)?, required(matches, "pipeline", "PIPELINE")?])
}

/// The document of a tenant, which must be there.
pub(crate) fn tenant(admin: &Admin, tenant: &Name) -> Result<Value> {
    existing(admin, "tenant", "tenants", tenant)
}

/// The document of a model, which must be there.
pub(crate) fn model(admin: &Admin, model: &Name) -> Result<Value> {
    existing(admin, "model", "models", model)
}

/// The document of a pipeline, which must be there, and its tenant as well.
pub(crate) fn pipeline(admin: &Admin, of: &Name, pipeline: &Name) -> Result<Value> {
    tenant(admin, of)?;
    existing(admin, "pipeline", &format!("tenants/{of}/pipelines"), pipeline)
}

/// The document of an API key, which must be there, and its tenant as well.
pub(crate) fn key(admin: &Admin, of: &Name, key: &Name) -> Result<Value> {
    tenant(admin, of)?;
    existing(admin, "key", &format!("tenants/{of}/keys"), key)
}

fn existing(admin: &Admin, what: &str, list: &str, name: &Name) -> Result<Value> {
    if let Some(document) = admin.find(&format!("{list}/{name}"))? {
        return Ok(document);
    }
    // Another plane answers 404, too: then the list fails, and says so.
    let known_names = admin.items(list).with_context(|| format!("no {what} \"{name}\""))?;
    let known_names = known_names.iter().filter_map(|item| item["name"].as_str());
    match closest(name.as_str(), known_names) {
        Some(other) => bail!("no {what} \"{name}\": did you mean {other:?}?"),
        None => bail!("no {what} \"{name}\""),
    }
}

/// The most similar name, if one is similar enough.
fn closest<'a>(name: &str, known_names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known_names.map(|other| (strsim::jaro(name, other), other));
    let similar = scored.filter(|(score, _)| *score > SIMILAR);
    similar.max_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, other)| other)
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn a_slip_finds_its_name_and_another_word_does_not() {
        let known_names = ["acme", "globex", "acme-test"];
        let closest = |name| closest(name, known_names.into_iter());
        assert_eq!(closest("acne"), Some("acme"));
        assert_eq!(closest("acme-tset"), Some("acme-test"));
        assert_eq!(closest("globx"), Some("globex"));
        assert_eq!(closest("zzz"), None);
    }
}
