//! The versions of a plugin or a model: the newest one, and earlier ones that stay. Pure.

use std::collections::BTreeMap;

use gristmill_core::Digest;

use crate::release::version_policy::VersionPolicy;

/// All versions and their files, the newest last.
pub(super) fn all(
    kept: &BTreeMap<u64, Digest>,
    newest: (u64, Digest),
) -> impl Iterator<Item = (u64, Digest)> {
    kept.iter().map(|(version, digest)| (*version, *digest)).chain([newest])
}

/// Drop the earlier versions that the policy does not keep and no pipeline names.
pub(super) fn prune(
    kept: &mut BTreeMap<u64, Digest>,
    policy: &VersionPolicy,
    is_pinned: impl Fn(u64) -> bool,
) {
    // The newest one is newer than all of these.
    let mut newer = kept.len() + 1;
    kept.retain(|version, _| {
        newer -= 1;
        policy.keeps(*version, newer) || is_pinned(*version)
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::digest;

    fn pruned(versions: &[u64], policy: &VersionPolicy, pinned: &[u64]) -> Vec<u64> {
        let mut kept = versions.iter().map(|version| (*version, digest(1))).collect();
        prune(&mut kept, policy, |version| pinned.contains(&version));
        let again = kept.clone();
        prune(&mut kept, policy, |version| pinned.contains(&version));
        assert_eq!(kept, again, "pruned again, it stays the same");
        kept.into_keys().collect()
    }

    #[test]
    fn a_version_stays_if_the_policy_keeps_it_or_a_pipeline_names_it() {
        let latest = |num_versions| VersionPolicy::Latest { num_versions };
        assert_eq!(pruned(&[3, 5, 7], &latest(1), &[]), [0; 0]);
        assert_eq!(pruned(&[3, 5, 7], &latest(1), &[3, 9]), [3]);
        assert_eq!(pruned(&[3, 5, 7], &latest(2), &[3]), [3, 7]);
        assert_eq!(pruned(&[3, 5, 7], &latest(3), &[]), [5, 7]);
        assert_eq!(pruned(&[3, 5, 7], &latest(16), &[]), [3, 5, 7]);
        let specific = VersionPolicy::Specific { versions: [5, 9].into() };
        assert_eq!(pruned(&[3, 5, 7], &specific, &[7]), [5, 7]);
    }
}
