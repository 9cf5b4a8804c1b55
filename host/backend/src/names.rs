//! Names out of a file in texts for people. They are cut: a file may have any number of names, each
//! of any length.

/// Maximum characters of a name, and maximum names of a list.
const CHARS_MAX: usize = 120;
const NAMES_MAX: usize = 5;

/// The name, cut.
fn cut(name: &str) -> String {
    match name.char_indices().nth(CHARS_MAX) {
        Some((at, _)) => format!("{}...", &name[..at]),
        None => name.to_owned(),
    }
}

/// The name in quotes.
pub(crate) fn shown(name: &str) -> String {
    format!("{:?}", cut(name))
}

/// The first names of a list.
pub(crate) fn listed(names: &[String]) -> String {
    let first = &names[..names.len().min(NAMES_MAX)];
    let listed = first.iter().map(|name| cut(name)).collect::<Vec<_>>().join(", ");
    match names.len() - first.len() {
        0 => listed,
        more => format!("{listed} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_and_long_lists_are_cut() {
        assert_eq!(shown("a\n"), "\"a\\n\"");
        assert_eq!(shown(&"é".repeat(5000)), format!("\"{}...\"", "é".repeat(CHARS_MAX)));
        let names: Vec<_> = (1..=7).map(|number| format!("f{number}")).collect();
        assert_eq!(listed(&names), "f1, f2, f3, f4, f5 and 2 more");
        assert_eq!(listed(&names[..2]), "f1, f2");
    }
}
