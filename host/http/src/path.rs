//! The router of the data plane over HTTP.

use crate::{v1, v2};

/// The edge that serves a path.
#[derive(Debug, PartialEq)]
pub(crate) enum Path<'a> {
    V1(v1::Path<'a>),
    /// The Open Inference Protocol.
    V2(v2::PathBelowV2<'a>),
}

/// The edge and resource at `path`. None if nothing is served there.
pub(crate) fn path_of(path: &str) -> Option<Path<'_>> {
    let path = path.strip_prefix('/')?;
    if let Some(below) = strip_segment(path, "v2") {
        return Some(Path::V2(v2::PathBelowV2 { path: below, tenant: None }));
    }
    let mut segments = path.split('/');
    let found = match (segments.next()?, segments.next(), segments.next(), segments.next()) {
        ("livez", None, ..) => v1::Path::Live,
        ("readyz", None, ..) => v1::Path::Ready,
        ("v1", Some(tenant), None, _) => v1::Path::Tenant(tenant),
        ("v1", Some(tenant), Some("infer"), pipeline) => v1::Path::Infer { tenant, pipeline },
        ("v1", Some(tenant), Some("v2"), _) => {
            let below = &path["v1//v2".len() + tenant.len()..];
            return Some(Path::V2(v2::PathBelowV2 { path: below, tenant: Some(tenant) }));
        }
        _ => return None,
    };
    segments.next().is_none().then_some(Path::V1(found))
}

/// The rest of `path` after `segment`, if that is its first segment.
fn strip_segment<'a>(path: &'a str, segment: &str) -> Option<&'a str> {
    path.strip_prefix(segment).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_tenants_pipelines_and_the_protocol() {
        let below = |path, tenant| Some(Path::V2(v2::PathBelowV2 { path, tenant }));
        let v1 = |path| Some(Path::V1(path));
        let infer = |tenant, pipeline| v1(v1::Path::Infer { tenant, pipeline });
        for (path, expected) in [
            ("/livez", v1(v1::Path::Live)),
            ("/readyz", v1(v1::Path::Ready)),
            ("/readyz/more", None),
            ("/v1/acme", v1(v1::Path::Tenant("acme"))),
            ("/v1/acme/infer", infer("acme", None)),
            ("/v1/acme/infer/digits", infer("acme", Some("digits"))),
            ("/v1/acme/infer/digits/more", None),
            ("/v1/acme/other", None),
            ("/v2", below("", None)),
            ("/v2/models/m/infer", below("/models/m/infer", None)),
            ("/v1/acme/v2", below("", Some("acme"))),
            ("/v1/acme/v2/health/live", below("/health/live", Some("acme"))),
            ("/v21", None),
            ("/v1/acme/v21", None),
            ("/", None),
            ("*", None),
        ] {
            assert_eq!(path_of(path), expected, "{path}");
        }
    }
}
