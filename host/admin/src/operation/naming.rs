//! The names and the groups of operations, from their methods and paths.

use utoipa::openapi::HttpMethod;

/// The groups of operations, by the segments of their paths. The last segment that is here counts.
const GROUPS: [(&str, &str); 12] = [
    ("self", "tokens"),
    ("tokens", "tokens"),
    ("releases", "releases"),
    ("rollback", "releases"),
    ("blobs", "blobs"),
    ("models", "models"),
    ("tenants", "tenants"),
    ("keys", "keys"),
    ("plugins", "plugins"),
    ("assets", "assets"),
    ("pipelines", "pipelines"),
    ("stores", "stores"),
];

/// The group of paths that have none of these segments: status, metrics, usage and the like.
const OTHER_GROUP: &str = "server";

/// `get_tenant_plugins` for `GET tenants/{tenant}/plugins`.
pub(super) fn id(method: &HttpMethod, below: &str) -> String {
    let mut id = match method {
        HttpMethod::Get => "get",
        HttpMethod::Put => "put",
        HttpMethod::Post => "post",
        HttpMethod::Patch => "patch",
        _ => "delete",
    }
    .to_owned();
    let mut parts = below.split('/').peekable();
    while let Some(part) = parts.next() {
        let is_one = parts.next_if(|next| next.starts_with('{')).is_some();
        id.push('_');
        id.push_str(&if is_one { part.trim_end_matches('s') } else { part }.replace('.', "_"));
    }
    id
}

/// The group of the operations at this path.
pub(super) fn group(below: &str) -> &'static str {
    let parts = below.split('/').rev();
    let mut groups = parts.filter_map(|part| GROUPS.iter().find(|(segment, _)| *segment == part));
    groups.next().map_or(OTHER_GROUP, |(_, group)| group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_has_a_name_and_a_group() {
        let get = |below: &str| (id(&HttpMethod::Get, below), group(below));
        assert_eq!(get("status"), ("get_status".into(), "server"));
        let logs = "tenants/{tenant}/plugins/{plugin}/logs";
        assert_eq!(get(logs), ("get_tenant_plugin_logs".into(), "plugins"));
        assert_eq!(get("tenants/{tenant}/keys"), ("get_tenant_keys".into(), "keys"));
        assert_eq!(get("releases/{number}"), ("get_release".into(), "releases"));
        assert_eq!(get("models/{model}/config"), ("get_model_config".into(), "models"));
        assert_eq!(get("debug/profile"), ("get_debug_profile".into(), "server"));
    }
}
