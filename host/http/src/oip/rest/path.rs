//! Paths below `/v2`.

use http::Method;

use crate::oip::NO_SHARED_MEMORY;

/// Where a path below `/v2` leads.
#[derive(Debug, PartialEq)]
pub(super) enum Path<'a> {
    Open(OpenPath),
    Caller(CallerPath<'a>),
}

/// What needs no credentials.
#[derive(Debug, PartialEq)]
pub(super) enum OpenPath {
    Server,
    Live,
    Ready,
    /// Not offered, and why.
    Unsupported(&'static str),
}

/// What depends on who calls.
#[derive(Debug, PartialEq)]
pub(super) enum CallerPath<'a> {
    Models,
    AllStatistics,
    Metadata(Model<'a>),
    Ready(Model<'a>),
    Config(Model<'a>),
    Statistics(Model<'a>),
    Infer(Model<'a>),
    Index,
    Load(&'a str),
    Unload(&'a str),
}

/// A model and the version asked for, empty where none is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Model<'a> {
    pub(super) name: &'a str,
    pub(super) version: &'a str,
}

/// Where the parts of a path lead, and by which method.
pub(super) fn path_of<'a>(segments: &[&'a str]) -> Option<(Method, Path<'a>)> {
    let open = |path| Some((Method::GET, Path::Open(path)));
    let (method, path) = match segments {
        [] => return open(OpenPath::Server),
        ["health", "live"] => return open(OpenPath::Live),
        ["health", "ready"] => return open(OpenPath::Ready),
        ["systemsharedmemory" | "cudasharedmemory", rest @ ..] => {
            let changes = matches!(rest.last(), Some(&("register" | "unregister")));
            let method = if changes { Method::POST } else { Method::GET };
            return Some((method, Path::Open(OpenPath::Unsupported(NO_SHARED_MEMORY))));
        }
        ["models"] => (Method::GET, CallerPath::Models),
        ["models", "stats"] => (Method::GET, CallerPath::AllStatistics),
        ["models", name, "versions", version, rest @ ..] => {
            of_model(Model { name, version }, rest)?
        }
        ["models", name, rest @ ..] => of_model(Model { name, version: "" }, rest)?,
        ["repository", "index"] => (Method::POST, CallerPath::Index),
        ["repository", "models", name, "load"] => (Method::POST, CallerPath::Load(name)),
        ["repository", "models", name, "unload"] => (Method::POST, CallerPath::Unload(name)),
        _ => return None,
    };
    Some((method, Path::Caller(path)))
}

fn of_model<'a>(model: Model<'a>, rest: &[&'a str]) -> Option<(Method, CallerPath<'a>)> {
    Some(match rest {
        [] => (Method::GET, CallerPath::Metadata(model)),
        ["ready"] => (Method::GET, CallerPath::Ready(model)),
        ["config"] => (Method::GET, CallerPath::Config(model)),
        ["stats"] => (Method::GET, CallerPath::Statistics(model)),
        ["infer"] => (Method::POST, CallerPath::Infer(model)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::{CallerPath, Model, OpenPath, Path, path_of};
    use crate::oip::NO_SHARED_MEMORY;

    #[test]
    fn paths_lead_where_the_protocol_says() {
        let (get, post) = (Method::GET, Method::POST);
        let model = |name, version| Model { name, version };
        let open = |path| Some((Method::GET, Path::Open(path)));
        let caller = |method: &Method, path| Some((method.clone(), Path::Caller(path)));
        let no_regions = |method: &Method| {
            Some((method.clone(), Path::Open(OpenPath::Unsupported(NO_SHARED_MEMORY))))
        };
        for (path, expected) in [
            ("", open(OpenPath::Server)),
            ("health/live", open(OpenPath::Live)),
            ("health/ready", open(OpenPath::Ready)),
            ("health", None),
            ("models", caller(&get, CallerPath::Models)),
            ("models/stats", caller(&get, CallerPath::AllStatistics)),
            ("models/m", caller(&get, CallerPath::Metadata(model("m", "")))),
            ("models/m/versions/7", caller(&get, CallerPath::Metadata(model("m", "7")))),
            ("models/m/versions/7/infer", caller(&post, CallerPath::Infer(model("m", "7")))),
            ("models/m/versions", None),
            ("models/m/infer", caller(&post, CallerPath::Infer(model("m", "")))),
            ("models/m/infer/more", None),
            ("models/m/ready", caller(&get, CallerPath::Ready(model("m", "")))),
            ("models/m/config", caller(&get, CallerPath::Config(model("m", "")))),
            ("models/m/stats", caller(&get, CallerPath::Statistics(model("m", "")))),
            ("models/stats/infer", caller(&post, CallerPath::Infer(model("stats", "")))),
            ("repository/index", caller(&post, CallerPath::Index)),
            ("repository/models/m/load", caller(&post, CallerPath::Load("m"))),
            ("repository/models/m/unload", caller(&post, CallerPath::Unload("m"))),
            ("repository/models/m", None),
            ("systemsharedmemory/status", no_regions(&get)),
            ("cudasharedmemory/region/r/register", no_regions(&post)),
        ] {
            let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty()).collect();
            assert_eq!(path_of(&parts), expected, "{path}");
        }
    }
}
