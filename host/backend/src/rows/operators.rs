//! What each operator does to the rows. One file for each family; each says which operators it has.

mod attention;
mod classical;
mod convolution;
mod elementwise;
mod fused;
mod indexing;
mod joining;
mod normalisation;
mod pooling;
mod products;
mod quantisation;
mod recurrent;
mod reduction;
mod refused;
mod resampling;
mod reshape;
mod scattering;
mod shape;
mod signal;
mod sizes;

use std::ops::RangeInclusive;

use super::call::{Call, Outputs};

type Rule = fn(&Call) -> Outputs;

/// A family: the rule for an operator, or none if it is not one of it.
type Family = fn(&str) -> Option<Rule>;

/// The operators of one domain, in the versions for which the rules are true.
struct Domain {
    versions: RangeInclusive<i64>,
    families: &'static [Family],
}

const STANDARD: Domain = Domain {
    versions: 7..=28,
    families: &[
        elementwise::rule,
        products::rule,
        convolution::rule,
        pooling::rule,
        normalisation::rule,
        reduction::rule,
        shape::rule,
        reshape::rule,
        sizes::rule,
        indexing::rule,
        scattering::rule,
        joining::rule,
        recurrent::rule,
        resampling::rule,
        quantisation::rule,
        attention::rule,
        signal::rule,
        fused::rule,
        classical::rule_for_texts,
        refused::rule,
    ],
};

const CLASSICAL: Domain = Domain { versions: 1..=5, families: &[classical::rule] };

const MICROSOFT: Domain = Domain {
    versions: 1..=1,
    families: &[
        fused::rule_of_microsoft,
        attention::rule_of_microsoft,
        quantisation::rule_of_microsoft,
        refused::rule_of_microsoft,
    ],
};

/// Whether operators of this domain are built in. A file may define those of others.
pub(super) fn has_domain(domain: &str) -> bool {
    domain.is_empty() || domain.starts_with("ai.onnx") || domain.starts_with("com.microsoft")
}

/// Whether an operator of any domain gives other results each time.
pub(super) fn is_random(operator: &str) -> bool {
    refused::RANDOM.contains(&operator)
}

/// What the outputs of `call` are. None if nothing is known of the operator.
pub(super) fn apply(domain: &str, call: &Call) -> Option<Outputs> {
    let Domain { versions, families } = match domain {
        "" => STANDARD,
        "ai.onnx.ml" => CLASSICAL,
        "com.microsoft" => MICROSOFT,
        _ => return None,
    };
    let rule = families.iter().find_map(|family| family(call.operator))?;
    if !versions.contains(&call.opset) {
        return Some(Err(format!("operators of opset {} are not known", call.opset).into()));
    }
    let results = rule(call);
    Some(results.and_then(|results| match call.attributes.unread() {
        None => Ok(results),
        Some(name) => Err(format!("its attribute `{name}` is not known").into()),
    }))
}
