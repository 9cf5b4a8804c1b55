//! The beginning of a bucket's keys, which keeps buckets and tenants on one server apart.

use gristmill_core::Name;

/// The parts of a prefix that stand for the names of the bucket and of the tenant.
const BUCKET: &str = "{bucket}";
const TENANT: &str = "{tenant}";

/// The beginning of a bucket's keys. In it, `{tenant}` stands for the tenant's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix(String);

/// A text that is not a [`Prefix`]: two tenants could have the same keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{TENANT} must be followed by a character that no tenant's name has, such as ':', so that no \
     tenant can reach the keys of another"
)]
pub struct PrefixError;

impl Prefix {
    /// The prefix that `text` is for this bucket, whose name takes the place of `{bucket}`.
    ///
    /// # Errors
    /// [`PrefixError`]
    pub fn new(text: &str, bucket: &Name) -> Result<Self, PrefixError> {
        let text = text.replace(BUCKET, bucket.as_str());
        let is_name = |next: char| next.is_ascii_alphanumeric() || matches!(next, '-' | '_' | '.');
        // What follows each of them: not another name, and not the plugin's key.
        let mut rests = text.split(TENANT).skip(1);
        let is_apart = |rest: &str| rest.chars().next().is_some_and(|next| !is_name(next));
        match rests.all(is_apart) {
            true => Ok(Self(text)),
            false => Err(PrefixError),
        }
    }

    /// `{bucket}:{tenant}:`, keys of their own for each bucket and tenant.
    pub fn usual(bucket: &Name) -> Self {
        Self(format!("{}:{TENANT}:", bucket.as_str()))
    }

    /// What the keys of all tenants begin with.
    pub fn shared_part(&self) -> &str {
        self.0.split(TENANT).next().unwrap_or_default()
    }

    /// Whether each tenant has keys of its own.
    pub(crate) fn is_of_tenant(&self) -> bool {
        self.0.contains(TENANT)
    }

    /// Whether a key with this prefix can be one with the other prefix, too, on the same server.
    pub fn may_meet(&self, other: &Self) -> bool {
        let (own_part, others) = (self.shared_part(), other.shared_part());
        own_part.starts_with(others) || others.starts_with(own_part)
    }

    /// The beginning of the keys of a tenant.
    pub(crate) fn of(&self, tenant: &Name) -> String {
        self.0.replace(TENANT, tenant.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    #[test]
    fn a_prefix_keeps_tenants_apart() {
        let of = |text: &str| {
            Prefix::new(text, &name("features")).map(|prefix| prefix.of(&name("acme")))
        };
        assert_eq!(of("f:{tenant}:").as_deref(), Ok("f:acme:"));
        assert_eq!(of("{tenant}/{tenant}:").as_deref(), Ok("acme/acme:"));
        assert_eq!(of("{bucket}/").as_deref(), Ok("features/"));
        assert_eq!(of("").as_deref(), Ok(""));
        for shared in ["{tenant}", "{tenant}-x:", "a{tenant}.", "{tenant}{tenant}:"] {
            assert_eq!(of(shared), Err(PrefixError), "{shared}");
        }
        assert_eq!(of("{tenant}{bucket}:"), Err(PrefixError));
        let usual = Prefix::usual(&name("features"));
        assert_eq!(usual.of(&name("acme")), "features:acme:");
        assert_eq!(Prefix::new("{bucket}:{tenant}:", &name("features")), Ok(usual));
    }

    #[test]
    fn prefixes_meet_if_the_shared_part_of_one_begins_with_the_others() {
        let may_meet = |[one, other]: [&str; 2]| {
            let prefix = |text: &str| Prefix::new(text, &name("b")).unwrap();
            assert_eq!(
                prefix(one).may_meet(&prefix(other)),
                prefix(other).may_meet(&prefix(one)),
                "{one} {other}"
            );
            prefix(one).may_meet(&prefix(other))
        };
        for apart in [["a:{tenant}:", "b:{tenant}:"], ["f:", "f2:{tenant}:"]] {
            assert!(!may_meet(apart), "{apart:?}");
        }
        for meeting in [["", "f:"], ["{tenant}:", "f:"], ["f:", "f:"], ["f:{tenant}:", "f:acme:"]] {
            assert!(may_meet(meeting), "{meeting:?}");
        }
    }
}
