//! The refusal of more versions of a plugin or a model than can be loaded.

use std::fmt;

/// Maximum pipelines that the refusal names.
const PINS_SHOWN: usize = 10;

/// A release after which too many versions of one plugin or model would be loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{what} {name:?} would have {count} versions loaded; the limit is {limit}: let {policy} keep \
     fewer, or let pipelines name a newer version or none{}", Named(.pins)
)]
pub struct TooManyVersions {
    /// The kind of thing.
    pub what: &'static str,
    /// Its name.
    pub name: String,
    /// The versions that would be loaded.
    pub count: usize,
    /// The most that can be.
    pub limit: usize,
    /// The key of the policy that keeps versions.
    pub policy: &'static str,
    /// The pipelines that name an earlier version, each with the version: `acme/main (cnn@14)`.
    pub pins: Vec<String>,
}

struct Named<'a>(&'a [String]);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.0[..self.0.len().min(PINS_SHOWN)];
        if shown.is_empty() {
            return Ok(());
        }
        write!(f, "; now these name earlier ones: {}", shown.join(", "))?;
        match self.0.len() - shown.len() {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pipelines_that_keep_versions_are_named_up_to_a_bound() {
        let refusal = |pins: usize| TooManyVersions {
            what: "model",
            name: "cnn".into(),
            count: 17,
            limit: 16,
            policy: "version_policy",
            pins: (0..pins).map(|pin| format!("acme/p{pin} (cnn@14)")).collect(),
        };
        let expected = "model \"cnn\" would have 17 versions loaded; the limit is 16: let \
                        version_policy keep fewer, or let pipelines name a newer version or none";
        assert_eq!(refusal(0).to_string(), expected);
        let one = format!("{expected}; now these name earlier ones: acme/p0 (cnn@14)");
        assert_eq!(refusal(1).to_string(), one);
        let many = refusal(12).to_string();
        assert!(many.ends_with("acme/p9 (cnn@14) and 2 more"), "{many}");
    }
}
