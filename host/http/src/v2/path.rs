//! Paths below `/v2`.

use gristmill_serve::NamedModel;
use gristmill_transport::Allowed;

use crate::inference::{NO_SHARED_MEMORY, RepositoryChange};

/// The resource at a path below `/v2`.
#[derive(Debug, PartialEq)]
pub(super) enum Path<'a> {
    Open(OpenPath),
    Caller(CallerPath<'a>),
}

/// Answers that need no credentials.
#[derive(Debug, PartialEq)]
pub(super) enum OpenPath {
    Server,
    Live,
    Ready,
    /// Not offered, and why.
    Unsupported(&'static str),
}

/// Answers that depend on the caller.
#[derive(Debug, PartialEq)]
pub(super) enum CallerPath<'a> {
    Models,
    AllStatistics,
    Metadata(NamedModel<'a>),
    Ready(NamedModel<'a>),
    Config(NamedModel<'a>),
    Statistics(NamedModel<'a>),
    Infer(NamedModel<'a>),
    Index,
    Change(RepositoryChange<'a>),
}

/// The most segments of a path that is served, but for shared memory.
pub(super) const SEGMENTS_MAX: usize = 5;

/// The resource at these segments of a path, and the methods that it takes.
pub(super) fn path_of<'a>(segments: &[&'a str]) -> Option<(Allowed, Path<'a>)> {
    let open = |path| Some((Allowed::Get, Path::Open(path)));
    let (allowed, path) = match segments {
        [] => return open(OpenPath::Server),
        ["health", "live"] => return open(OpenPath::Live),
        ["health", "ready"] => return open(OpenPath::Ready),
        ["systemsharedmemory" | "cudasharedmemory", rest @ ..] => {
            let changes = matches!(rest.last(), Some(&("register" | "unregister")));
            let allowed = if changes { Allowed::Post } else { Allowed::Get };
            return Some((allowed, Path::Open(OpenPath::Unsupported(NO_SHARED_MEMORY))));
        }
        ["models"] => (Allowed::Get, CallerPath::Models),
        ["models", "stats"] => (Allowed::Get, CallerPath::AllStatistics),
        ["models", name, "versions", version, rest @ ..] => {
            of_model(NamedModel { name, version }, rest)?
        }
        ["models", name, rest @ ..] => of_model(NamedModel { name, version: "" }, rest)?,
        ["repository", "index"] => (Allowed::Post, CallerPath::Index),
        ["repository", "models", name, "load"] => {
            (Allowed::Post, CallerPath::Change(RepositoryChange::Load(name)))
        }
        ["repository", "models", name, "unload"] => {
            (Allowed::Post, CallerPath::Change(RepositoryChange::Unload(name)))
        }
        _ => return None,
    };
    Some((allowed, Path::Caller(path)))
}

fn of_model<'a>(model: NamedModel<'a>, rest: &[&'a str]) -> Option<(Allowed, CallerPath<'a>)> {
    Some(match rest {
        [] => (Allowed::Get, CallerPath::Metadata(model)),
        ["ready"] => (Allowed::Get, CallerPath::Ready(model)),
        ["config"] => (Allowed::Get, CallerPath::Config(model)),
        ["stats"] => (Allowed::Get, CallerPath::Statistics(model)),
        ["infer"] => (Allowed::Post, CallerPath::Infer(model)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use gristmill_serve::NamedModel;
    use gristmill_transport::Allowed;

    use super::{CallerPath, OpenPath, Path, path_of};
    use crate::inference::{NO_SHARED_MEMORY, RepositoryChange};

    #[test]
    fn paths_lead_where_the_protocol_says() {
        let (get, post) = (Allowed::Get, Allowed::Post);
        let model = |name, version| NamedModel { name, version };
        let open = |path| Some((Allowed::Get, Path::Open(path)));
        let caller = |allowed: Allowed, path| Some((allowed, Path::Caller(path)));
        let change = |change| caller(post, CallerPath::Change(change));
        let no_regions =
            |allowed: Allowed| Some((allowed, Path::Open(OpenPath::Unsupported(NO_SHARED_MEMORY))));
        for (path, expected) in [
            ("", open(OpenPath::Server)),
            ("health/live", open(OpenPath::Live)),
            ("health/ready", open(OpenPath::Ready)),
            ("health", None),
            ("models", caller(get, CallerPath::Models)),
            ("models/stats", caller(get, CallerPath::AllStatistics)),
            ("models/m", caller(get, CallerPath::Metadata(model("m", "")))),
            ("models/m/versions/7", caller(get, CallerPath::Metadata(model("m", "7")))),
            ("models/m/versions/7/infer", caller(post, CallerPath::Infer(model("m", "7")))),
            ("models/m/versions", None),
            ("models/m/infer", caller(post, CallerPath::Infer(model("m", "")))),
            ("models/m/infer/more", None),
            ("models/m/ready", caller(get, CallerPath::Ready(model("m", "")))),
            ("models/m/config", caller(get, CallerPath::Config(model("m", "")))),
            ("models/m/stats", caller(get, CallerPath::Statistics(model("m", "")))),
            ("models/stats/infer", caller(post, CallerPath::Infer(model("stats", "")))),
            ("repository/index", caller(post, CallerPath::Index)),
            ("repository/models/m/load", change(RepositoryChange::Load("m"))),
            ("repository/models/m/unload", change(RepositoryChange::Unload("m"))),
            ("repository/models/m", None),
            ("systemsharedmemory/status", no_regions(get)),
            ("cudasharedmemory/region/r/register", no_regions(post)),
        ] {
            let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty()).collect();
            assert_eq!(path_of(&parts), expected, "{path}");
        }
    }
}
