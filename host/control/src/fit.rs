//! Whether what a pipeline names can be used as its document says. Pure.

use gristmill_batch::Lane;
use gristmill_core::Name;
use gristmill_sandbox::Plugin;

/// Why the plugin cannot have this role: `pre` or `post`.
pub(crate) fn role_fault(role: &str, name: &Name, plugin: &Plugin) -> Option<String> {
    let roles = plugin.roles();
    let fits = if role == "pre" { roles.pre } else { roles.post };
    let (name, world) = (name.as_str(), roles.world());
    (!fits).then(|| format!("{role}: plugin {name:?} is a {world} and exports no `{role}process`"))
}

/// Why the plugin cannot run in so much memory.
pub(crate) fn memory_fault(
    memory_bytes: usize,
    role: &str,
    (name, plugin): (&Name, &Plugin),
) -> Option<String> {
    let (least, name) = (plugin.initial_memory_bytes(), name.as_str());
    (least > memory_bytes as u64).then(|| {
        format!(
            "limits.memory_bytes is {memory_bytes}: {role}, plugin {name:?}, begins with {least}"
        )
    })
}

/// Why requests cannot have this priority at the model.
pub(crate) fn priority_fault(priority: Option<u32>, model: &Lane) -> Option<String> {
    let levels = model.config().levels.len();
    let out_of_range = |priority: &u32| *priority == 0 || *priority as usize > levels;
    let priority = priority.filter(out_of_range)?;
    Some(format!("priority is {priority}: the model has levels 1 to {levels}"))
}
