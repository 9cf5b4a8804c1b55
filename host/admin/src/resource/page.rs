//! The pages of a list: `?limit=` is the most items of one, `?after=` the name before its first.

use std::ops::Bound;

use gristmill_core::{ErrorCode, Name};
use gristmill_transport::Problem;
use http::HeaderValue;
use percent_encoding::percent_decode_str;
use serde::Serialize;

use super::query::{count_in, invalid, parameters};
use crate::answer::{AdminAnswer, Outcome};

/// Default and maximum page size.
const LIMIT: usize = 100;
pub(super) const LIMIT_MAX: usize = 1000;

/// A page of a list.
#[derive(Serialize)]
struct PageDocument<'a, I> {
    items: Vec<I>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<&'a Name>,
}

/// The page that is asked for.
#[derive(Debug, PartialEq)]
pub(super) struct Page {
    limit: usize,
    after: Option<Name>,
}

impl Page {
    /// # Errors
    /// The query has another parameter, `limit` is out of its range, or `after` is not a name.
    pub(super) fn read(query: Option<&str>) -> Result<Self, Problem> {
        let [limit, after] = parameters(["limit", "after"], query)?;
        let limit = limit.map_or(Ok(LIMIT), |limit| count_in("limit", limit, LIMIT_MAX))?;
        let name = |text| {
            let text = percent_decode_str(text).decode_utf8_lossy();
            Name::of_model(&text).map_err(|error| invalid(format!("after: {error}")))
        };
        Ok(Self { limit, after: after.map(name).transpose()? })
    }

    /// The names of this page and of those after it.
    pub(super) fn range(&self) -> (Bound<Name>, Bound<Name>) {
        let from = self.after.clone().map_or(Bound::Unbounded, Bound::Excluded);
        (from, Bound::Unbounded)
    }

    /// The page of `rest`, which has the things of [`Self::range`], sorted by name. `item`
    /// describes one of them, unless the caller cannot see it.
    pub(super) fn answer<'a, T: 'a, I: Serialize>(
        &self,
        rest: impl Iterator<Item = (&'a Name, &'a T)>,
        item: impl Fn(&'a Name, &'a T) -> Option<I>,
    ) -> Outcome {
        let mut rest = rest.filter_map(|(name, one)| Some((name, item(name, one)?))).peekable();
        let (mut items, mut last) = (Vec::new(), None);
        for (name, item) in rest.by_ref().take(self.limit) {
            items.push(item);
            last = Some(name);
        }
        let next = last.filter(|_| rest.peek().is_some());
        let answer = AdminAnswer::digested(&PageDocument { items, next })?;
        let Some(next) = next else { return Ok(answer) };
        // Relative to the list's own path, which may be another one before a proxy.
        let link = format!("<?limit={}&after={next}>; rel=\"next\"", self.limit);
        let link = HeaderValue::try_from(link);
        let link = link.map_err(|error| Problem::new(ErrorCode::Internal, error.to_string()))?;
        Ok(answer.linked(link))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_a_limit_and_begins_after_a_name() {
        let page = |query| Page::read(Some(query)).map_err(|problem| problem.detail);
        let after = |name: &str| Some(name.parse().unwrap());
        assert_eq!(page(""), Ok(Page { limit: 100, after: None }));
        let expected = Page { limit: 1000, after: after("a-b") };
        assert_eq!(page("after=a%2Db&limit=1000"), Ok(expected));
        for (query, named) in [
            ("limit=1001", "limit is \"1001\": must be 1 to 1000"),
            ("limit=0", "limit is \"0\""),
            ("limit=", "limit is \"\""),
            ("after=", "after: \"\" is not a valid name"),
            ("after=%2E%2E%2F", "after: \"../\" is not a valid name"),
            ("after=%ff", "after: \"\u{fffd}\" is not"),
            ("page=2", "unknown parameter \"page\"; known are limit, after"),
        ] {
            let detail = page(query).unwrap_err();
            assert!(detail.starts_with(named), "{query}: {detail}");
        }
    }
}
