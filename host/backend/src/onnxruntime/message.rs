//! Messages of ONNX Runtime without the places in its sources, which say nothing to a client.

/// The endings of the names of its sources.
const SOURCES: [&str; 7] = [".cc", ".h", ".hpp", ".cpp", ".cu", ".cuh", ".inc"];

/// `text` without the places in sources (`/a/b.cc:12`) and the signatures of functions behind them.
pub(super) fn without_sources(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = next_place(rest) {
        kept.push_str(before);
        rest = after_signature(after).trim_start_matches(' ');
    }
    kept.push_str(rest);
    kept.trim_end().to_owned()
}

/// The text before the first place in a source, and that after it.
fn next_place(text: &str) -> Option<(&str, &str)> {
    for (at, _) in text.match_indices(':') {
        let begin = text[..at].rfind([' ', '\n', ':', '(']).map_or(0, |space| space + 1);
        let digits = text[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
        let is_source = SOURCES.iter().any(|source| text[begin..at].ends_with(source));
        if digits > 0 && is_source {
            return Some((&text[..begin], &text[at + 1 + digits..]));
        }
    }
    None
}

/// The text after the signature of a function, if it begins with one: words up to a list of
/// parameters in parentheses.
fn after_signature(text: &str) -> &str {
    let line = text.split('\n').next().unwrap_or_default();
    let is_word = |char: char| char.is_alphanumeric() || " _:<>,*&~[]{}=-+".contains(char);
    let Some(open) = line.find('(').filter(|open| line[..*open].chars().all(is_word)) else {
        return text;
    };
    let mut depth = 0_usize;
    for (at, char) in line.char_indices().skip_while(|(at, _)| *at < open) {
        match char {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            let rest = &text[at + 1..];
            let rest = rest.strip_prefix(" const").unwrap_or(rest);
            let with = rest.strip_prefix(" [with ").and_then(|with| with.split_once(']'));
            return with.map_or(rest, |(_, rest)| rest);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::without_sources;

    #[test]
    fn places_and_signatures_go_and_words_stay() {
        for (text, expected) in [
            (
                "running Gather node. Name:'g' Status Message: indices element out of data bounds, \
                 idx=9 must be within the inclusive range [-3,2]",
                "running Gather node. Name:'g' Status Message: indices element out of data bounds, \
                 idx=9 must be within the inclusive range [-3,2]",
            ),
            (
                "running Add node. Name:'' Status Message: /onnxruntime_src/onnxruntime/core/\
                 element_wise_ops.h:540 void onnxruntime::BroadcastIterator::Append(ptrdiff_t, \
                 ptrdiff_t) axis == 1 || axis == largest was false. 3 by 4\n",
                "running Add node. Name:'' Status Message: axis == 1 || axis == largest was false. 3 \
                 by 4",
            ),
            (
                "Message: /a/gather.cc:64 onnxruntime::common::Status onnxruntime::GatherBase::\
                 Prepare(const onnxruntime::OpKernelContext*, std::function<void(int)>) const \
                 [with T = float; U = int] bad",
                "Message: bad",
            ),
            ("/a/b.cc:1 f(x) one; /c/d.h:22 g() const two", "one; two"),
            ("ratio 3:4, file.cc and a.b:5 stay", "ratio 3:4, file.cc and a.b:5 stay"),
            ("a.cc:5 (never closed", "(never closed"),
            ("ä/b.cc:5", ""),
        ] {
            assert_eq!(without_sources(text), expected, "{text}");
        }
    }
}
