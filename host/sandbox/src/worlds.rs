//! The worlds of `wit/`: which exports make a component a plugin, and how each is called.

mod postprocess;
mod preprocess;
mod world;

pub(crate) use self::postprocess::Postprocess;
pub(crate) use self::preprocess::Preprocess;
pub(crate) use self::world::World;

/// The roles that a plugin can have in a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roles {
    /// Exports `preprocess`.
    pub pre: bool,
    /// Exports `postprocess`.
    pub post: bool,
}

impl Roles {
    /// The roles of a component that exports these names; none if it has no role.
    pub(crate) fn of_exports(exports: &[String]) -> Option<Self> {
        let exported = |name: &str| exports.iter().any(|export| export == name);
        let roles = Self { pre: exported(Preprocess::EXPORT), post: exported(Postprocess::EXPORT) };
        (roles.pre || roles.post).then_some(roles)
    }

    /// The world's name.
    pub fn world(self) -> &'static str {
        match (self.pre, self.post) {
            (true, true) => "processor",
            (true, false) => "preprocessor",
            (false, _) => "postprocessor",
        }
    }
}
