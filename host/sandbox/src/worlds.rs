//! The worlds of `wit/`: which exports make a component a plugin, and how each is called.

mod handle;
mod postprocess;
mod preprocess;
mod v0_1;
mod world;

use serde::{Deserialize, Serialize};

pub(crate) use self::handle::HandleRequest;
pub(crate) use self::postprocess::Postprocess;
pub(crate) use self::preprocess::Preprocess;
pub(crate) use self::v0_1::{Postprocess01, Preprocess01};
pub(crate) use self::world::World;

/// The version of the contract that a plugin was built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contract {
    V0_1,
    V0_2,
    V0_3,
}

impl Contract {
    const ALL: [Self; 3] = [Self::V0_1, Self::V0_2, Self::V0_3];

    /// Its version, without the last number.
    pub(crate) fn version(self) -> &'static str {
        match self {
            Self::V0_1 => "0.1",
            Self::V0_2 => "0.2",
            Self::V0_3 => "0.3",
        }
    }

    /// The contract of a component with these imports; none if it imports from several versions. A
    /// component that imports nothing of the contract is one of the newest.
    pub(crate) fn of_imports(imports: &[String]) -> Option<Self> {
        let version = |name: &String| {
            let (_, version) = name.strip_prefix("gristmill:plugin/")?.rsplit_once('@')?;
            Some(version.rsplit_once('.')?.0.to_owned())
        };
        let mut versions: Vec<_> = imports.iter().filter_map(version).collect();
        versions.sort_unstable();
        versions.dedup();
        match &versions[..] {
            [] => Some(Self::V0_3),
            [only] => Self::ALL.into_iter().find(|contract| contract.version() == only),
            _ => None,
        }
    }
}

/// The roles that a plugin can have in a pipeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Roles {
    /// Exports `preprocess`.
    pub pre: bool,
    /// Exports `postprocess`.
    pub post: bool,
    /// Exports `handle`.
    pub handle: bool,
}

impl Roles {
    /// The roles of a component that exports these names; none if it has no role.
    pub(crate) fn of_exports(exports: &[String]) -> Option<Self> {
        let exported = |name: &str| exports.iter().any(|export| export == name);
        let roles = Self {
            pre: exported(Preprocess::EXPORT),
            post: exported(Postprocess::EXPORT),
            handle: exported(HandleRequest::EXPORT),
        };
        roles.has_one().then_some(roles)
    }

    /// Whether it has a role.
    pub(crate) fn has_one(self) -> bool {
        self.pre || self.post || self.handle
    }

    /// The world's name.
    pub fn world(self) -> &'static str {
        match (self.pre, self.post, self.handle) {
            (true, true, false) => "processor",
            (true, false, false) => "preprocessor",
            (false, _, false) => "postprocessor",
            (false, false, true) => "handler",
            (_, _, true) => "processor and handler",
        }
    }
}
