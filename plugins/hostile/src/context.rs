//! Shows the context of both calls and the request's own words. Not hostile: tests compare them.

use gristmill_plugin::{Context, Failure, Prepared, Request, Response};

use crate::blank;

/// The name of the deed, and the beginning of its state.
pub(crate) const NAME: &str = "context";

fn shown(context: &Context) -> String {
    format!(
        "tenant={} pipeline={} model={} id={} settings={} in-time={}",
        context.tenant(),
        context.pipeline(),
        context.model(),
        context.request_id(),
        context.settings(),
        (1..=600_000).contains(&context.time_left()),
    )
}

pub(crate) fn prepared(context: &Context, request: &Request) -> Result<Prepared, Failure> {
    let query: Vec<_> = request
        .query()
        .into_iter()
        .map(|field| format!("{}={}", field.name, field.value))
        .collect();
    let content_type = request.content_type().unwrap_or_default();
    let own = format!("type={content_type} query={}", query.join("&"));
    let state = format!("{NAME}\n{own}\npre {}", shown(context));
    Ok(Prepared::new().input("input", blank()?).state(state.into_bytes()))
}

/// The answer, if the state is of this deed.
pub(crate) fn answer(context: &Context, state: &[u8]) -> Option<Response> {
    let state = state.strip_prefix(NAME.as_bytes())?.strip_prefix(b"\n")?;
    let text = format!("{}\npost {}", String::from_utf8_lossy(state), shown(context));
    Some(Response::new("text/plain", text))
}
