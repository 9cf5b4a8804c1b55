//! The router of the data plane over HTTP.

use gristmill_snapshot::Snapshot;

use crate::{v1, v2};

/// The edge that serves a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Path<'a> {
    V1(v1::Path<'a>),
    /// The Open Inference Protocol.
    V2(v2::V2Path<'a>),
}

impl<'a> Path<'a> {
    /// The tenant that the path names. It may not exist.
    pub(crate) fn tenant(self) -> Option<&'a str> {
        match self {
            Self::V1(
                v1::Path::Tenant(tenant)
                | v1::Path::TryPage(tenant)
                | v1::Path::Infer { tenant, .. },
            ) => Some(tenant),
            Self::V1(v1::Path::Live | v1::Path::Ready) => None,
            Self::V2(v2::V2Path { tenant, .. }) => tenant,
        }
    }

    /// Whether the path is one at all. Only a tenant with `try_page` has the page: without it the
    /// path is as unknown as any other, whatever the method.
    fn is_there(self, snapshot: &Snapshot) -> bool {
        match self {
            Self::V1(v1::Path::TryPage(tenant)) => {
                snapshot.tenants.get(tenant).is_some_and(|tenant| tenant.has_try_page)
            }
            _ => true,
        }
    }
}

/// The edge and resource at `path`, for requests of this snapshot. None if nothing is served there.
pub(crate) fn served_path<'a>(path: &'a str, snapshot: &Snapshot) -> Option<Path<'a>> {
    path_of(path).filter(|path| path.is_there(snapshot))
}

/// The most segments that are told apart. The last one is all of a longer path's rest.
const SEGMENTS_MAX: usize = 5;

/// The edge and resource at `path`. None if nothing can be served there.
pub(crate) fn path_of(path: &str) -> Option<Path<'_>> {
    let path = path.strip_prefix('/')?;
    // An array, because this runs for each request and should not allocate.
    let (mut segments, mut len) = ([""; SEGMENTS_MAX], 0);
    for segment in path.splitn(SEGMENTS_MAX, '/') {
        segments[len] = segment;
        len += 1;
    }
    let v1 = |path| Some(Path::V1(path));
    let v2 = |path, tenant| Some(Path::V2(v2::V2Path { path, tenant }));
    match segments[..len] {
        ["livez"] => v1(v1::Path::Live),
        ["readyz"] => v1(v1::Path::Ready),
        ["v1", tenant] => v1(v1::Path::Tenant(tenant)),
        ["v1", tenant, "try"] => v1(v1::Path::TryPage(tenant)),
        ["v1", tenant, "infer"] => v1(v1::Path::Infer { tenant, pipeline: None }),
        ["v1", tenant, "infer", pipeline] => {
            v1(v1::Path::Infer { tenant, pipeline: Some(pipeline) })
        }
        ["v1", tenant, "v2", ..] => v2(&path["v1//v2".len() + tenant.len()..], Some(tenant)),
        ["v2", ..] => v2(&path["v2".len()..], None),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_tenants_pipelines_and_the_protocol() {
        let below = |path, tenant| Some(Path::V2(v2::V2Path { path, tenant }));
        let v1 = |path| Some(Path::V1(path));
        let infer = |tenant, pipeline| v1(v1::Path::Infer { tenant, pipeline });
        for (path, expected) in [
            ("/livez", v1(v1::Path::Live)),
            ("/readyz", v1(v1::Path::Ready)),
            ("/readyz/more", None),
            ("/v1/acme", v1(v1::Path::Tenant("acme"))),
            ("/v1/acme/try", v1(v1::Path::TryPage("acme"))),
            ("/v1/acme/try/", None),
            ("/v1/acme/infer", infer("acme", None)),
            ("/v1/acme/infer/digits", infer("acme", Some("digits"))),
            ("/v1/acme/infer/digits/more", None),
            ("/v1/acme/infer/digits/more/and/more", None),
            ("/v1/acme/other", None),
            ("/v2", below("", None)),
            ("/v2/", below("/", None)),
            ("/v2/models/m/versions/1/infer", below("/models/m/versions/1/infer", None)),
            ("/v1/acme/v2", below("", Some("acme"))),
            ("/v1/acme/v2/models/m/infer", below("/models/m/infer", Some("acme"))),
            ("/v1//v2", below("", Some(""))),
            ("/v21", None),
            ("/v1/acme/v21", None),
            ("/", None),
            ("*", None),
        ] {
            assert_eq!(path_of(path), expected, "{path}");
            let named = path.strip_prefix("/v1/acme").and(expected).map(|_| "acme");
            let named = named.or((path == "/v1//v2").then_some(""));
            assert_eq!(expected.and_then(Path::tenant), named, "{path}");
        }
    }
}
