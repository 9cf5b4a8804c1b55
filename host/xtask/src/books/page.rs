//! The blocks of a page that are pasted.

use anyhow::{Result, bail};

/// The blocks of a page, in their order.
pub(super) struct Page(pub(super) Vec<Block>);

/// A fenced block of `sh`.
#[derive(Debug, PartialEq)]
pub(super) struct Block {
    /// The line of the page on which it begins.
    pub(super) line: usize,
    pub(super) commands: String,
    /// What it prints, if the page shows that.
    pub(super) prints: Option<String>,
}

/// Stands for anything: on a line for a part of it, alone on a line for any lines.
const ANYTHING: &str = "...";

impl Page {
    /// The blocks of this text.
    ///
    /// # Errors
    /// A block has no end.
    pub(super) fn of(text: &str) -> Result<Self> {
        let mut lines = text.lines().enumerate();
        let mut blocks: Vec<Block> = Vec::new();
        // Whether only empty lines stand between here and the last block.
        let mut is_next = false;
        while let Some((number, line)) = lines.next() {
            let Some(language) = line.strip_prefix("```") else {
                is_next &= line.trim().is_empty();
                continue;
            };
            let mut content = String::new();
            loop {
                match lines.next() {
                    Some((_, "```")) => break,
                    Some((_, line)) => content += &format!("{line}\n"),
                    None => bail!("the block at line {} has no end", number + 1),
                }
            }
            match (language, blocks.last_mut()) {
                ("text", Some(block)) if is_next => block.prints = Some(content),
                ("sh", _) => {
                    blocks.push(Block { line: number + 1, commands: content, prints: None });
                }
                _ => {}
            }
            is_next = language == "sh";
        }
        Ok(Self(blocks))
    }
}

/// Whether this was printed where a page shows `wanted`.
pub(super) fn fits(wanted: &str, printed: &str) -> bool {
    let lines = |text: &str| -> Vec<String> {
        text.trim_end().lines().map(|line| line.trim_end().to_owned()).collect()
    };
    lines_fit(&lines(wanted), &lines(printed))
}

fn lines_fit(wanted: &[String], printed: &[String]) -> bool {
    match wanted {
        [] => printed.is_empty(),
        [any, rest @ ..] if any.trim() == ANYTHING => {
            (0..=printed.len()).any(|skipped| lines_fit(rest, &printed[skipped..]))
        }
        [line, rest @ ..] => printed
            .split_first()
            .is_some_and(|(shown, others)| line_fits(line, shown) && lines_fit(rest, others)),
    }
}

fn line_fits(wanted: &str, printed: &str) -> bool {
    let Some((begin, rest)) = wanted.split_once(ANYTHING) else { return wanted == printed };
    let Some(printed) = printed.strip_prefix(begin) else { return false };
    let mut ends = printed.char_indices().map(|(at, _)| at).chain([printed.len()]);
    ends.any(|at| line_fits(rest, &printed[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_what_they_print_if_it_follows_them() {
        let page = "a\n```sh\none\ntwo\n```\n\n```text\n1\n```\n```console\n$ no\n```\n```sh\nthree\n```\n\nb\n\n```text\nof b\n```\n";
        let block = |line, commands: &str, prints: Option<&str>| Block {
            line,
            commands: commands.into(),
            prints: prints.map(Into::into),
        };
        let blocks = Page::of(page).unwrap().0;
        assert_eq!(blocks, [block(2, "one\ntwo\n", Some("1\n")), block(13, "three\n", None)]);
        assert!(Page::of("```sh\nls\n").is_err());
    }

    #[test]
    fn dots_stand_for_anything() {
        assert!(
            fits("a ... c\n", "a bb c\n\n") && fits("release ... serves\n", "release 12 serves")
        );
        assert!(fits("a\n...\nd\n", "a\nb\nc\nd\n") && fits("...\n", ""));
        assert!(!fits("a ... c\n", "a bb d\n") && !fits("a\n", "a\nb\n") && !fits("a\nb\n", "a\n"));
        assert!(fits("0.99...,...", "0.9912,3") && !fits("", "a"));
    }
}
