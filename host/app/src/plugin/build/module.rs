//! A plugin that was compiled, but not checked.

/// What a language's tools made of a plugin's folder.
pub(super) struct Module {
    /// The plugin's name, as its manifest has it.
    pub(super) name: String,
    /// A component, or a core module with its component type.
    pub(super) file: Vec<u8>,
}
