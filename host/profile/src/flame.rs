//! A profile as an image: a flame graph.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

use crate::names::Named;
use crate::record::Profile;

/// The image's width, the height of a row, and the margin around all rows, in pixels.
const WIDTH: f64 = 1400.0;
const ROW: f64 = 17.0;
const MARGIN: f64 = 10.0;
/// The place for the title.
const HEAD: f64 = 30.0;

/// A function that would be narrower, in pixels, is left out. This bounds the image.
const NARROWEST: f64 = 0.4;

/// The width of a letter, in pixels.
const LETTER: f64 = 6.6;

/// A function, with those that it called.
#[derive(Default)]
struct Node {
    /// The samples in it and in what it called.
    count: u64,
    called: BTreeMap<Named, Node>,
}

/// What is drawn, and where.
struct Drawing {
    /// The rectangles so far.
    text: String,
    /// The height of all rows.
    height: f64,
    /// All samples.
    all: u64,
}

impl Profile {
    /// The flame graph, as SVG without a script: threads at the bottom, and the functions that
    /// they called above them, as wide as the CPU time that they took. A function's title
    /// has its whole name, its file and its share. Functions of one file have one colour.
    pub fn flame_graph(&self) -> String {
        let mut root = Node::default();
        for stack in &self.stacks {
            root.count += stack.count;
            let thread = Named { function: stack.thread.as_str().into(), object: "thread".into() };
            let mut node = root.called.entry(thread).or_default();
            node.count += stack.count;
            for function in &stack.functions {
                node = node.called.entry(function.clone()).or_default();
                node.count += stack.count;
            }
        }
        let rows = root.depth(root.count).max(1) as f64;
        let mut drawing =
            Drawing { text: String::new(), height: rows * ROW, all: root.count.max(1) };
        drawing.draw_called(&root, MARGIN, 0);
        let height = HEAD + drawing.height + 2.0 * MARGIN;
        let title = match root.count {
            0 => "The process used no CPU time".to_owned(),
            _ => format!(
                "{} samples in {:.1} s, each of {:.1} ms of CPU time; {} lost",
                root.count,
                self.took.as_secs_f64(),
                self.period.as_secs_f64() * 1e3,
                self.lost
            ),
        };
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
             width=\"{WIDTH}\" height=\"{height}\" font-family=\"monospace\" font-size=\"11\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
             <text x=\"{MARGIN}\" y=\"20\" font-size=\"14\">{title}</text>\n{}</svg>\n",
            drawing.text
        )
    }
}

impl Node {
    /// The rows of what it called and is wide enough, of `all` samples.
    fn depth(&self, all: u64) -> usize {
        let wide = self.called.values().filter(|node| width(node.count, all) >= NARROWEST);
        wide.map(|node| 1 + node.depth(all)).max().unwrap_or(0)
    }
}

impl Drawing {
    /// Draw what `node` called, from `left` on, in this row.
    fn draw_called(&mut self, node: &Node, left: f64, row: usize) {
        // The widest first: the order of names says nothing.
        let mut called: Vec<_> = node.called.iter().collect();
        called.sort_by_key(|(_, node)| std::cmp::Reverse(node.count));
        let mut left = left;
        for (named, node) in called {
            let width = width(node.count, self.all);
            if width < NARROWEST {
                continue;
            }
            self.draw(named, node.count, (left, width), row);
            self.draw_called(node, left, row + 1);
            left += width;
        }
    }

    fn draw(&mut self, named: &Named, count: u64, (left, width): (f64, f64), row: usize) {
        let top = HEAD + MARGIN + self.height - (row + 1) as f64 * ROW;
        let share = 100.0 * count as f64 / self.all as f64;
        let (function, object) = (escaped(&named.function), escaped(&named.object));
        let _ = write!(
            self.text,
            "<g><title>{function} ({object}): {count} samples, {share:.1} %</title>\
             <rect x=\"{left:.1}\" y=\"{top:.0}\" width=\"{width:.1}\" height=\"{:.0}\" \
             fill=\"hsl({}, 70%, 75%)\" stroke=\"#fff\" stroke-width=\"0.5\"/>",
            ROW - 1.0,
            hue(&named.object)
        );
        let letters = (width / LETTER) as usize;
        if letters >= 4 {
            let name = &named.function;
            let shown: String = match name.chars().count() > letters {
                true => name.chars().take(letters - 2).chain("..".chars()).collect(),
                false => name.to_string(),
            };
            let (x, y, shown) = (left + 2.0, top + 12.0, escaped(&shown));
            let _ = write!(self.text, "<text x=\"{x:.1}\" y=\"{y:.0}\">{shown}</text>");
        }
        self.text.push_str("</g>\n");
    }
}

fn width(count: u64, all: u64) -> f64 {
    (WIDTH - 2.0 * MARGIN) * count as f64 / all.max(1) as f64
}

/// The colour of a file's functions.
fn hue(object: &Arc<str>) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(&**object) % 360
}

/// A text within XML. Plugins choose the names of their functions.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            letter if letter.is_control() => escaped.push('?'),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::record::Stack;

    #[test]
    fn functions_are_as_wide_as_their_samples_and_names_are_escaped() {
        let named =
            |function: &str| Named { function: function.into(), object: "acme/plugin".into() };
        let stack = |functions: &[&str], count| Stack {
            thread: "serving".into(),
            functions: functions.iter().map(|function| named(function)).collect(),
            count,
        };
        let mut profile = Profile {
            began: SystemTime::now(),
            took: Duration::from_secs(1),
            period: Duration::from_millis(5),
            stacks: vec![stack(&["run", "<script>alert(1)</script>"], 3), stack(&["run"], 1)],
            lost: 2,
            _turn: None,
        };
        let svg = profile.flame_graph();
        assert!(svg.contains("4 samples in 1.0 s") && svg.contains("; 2 lost"));
        assert!(!svg.contains("<script>"), "{svg}");
        let title = |text: &str| svg.find(&format!("<title>{text}")).unwrap();
        let widths = |at: usize| svg[at..].split("width=\"").nth(1).unwrap()[..6].to_owned();
        assert_eq!(widths(title("serving (thread): 4 samples, 100.0 %")), "1380.0");
        assert_eq!(widths(title("&lt;script&gt;")), "1035.0");
        profile.stacks.clear();
        assert!(profile.flame_graph().contains("used no CPU time"));
    }
}
