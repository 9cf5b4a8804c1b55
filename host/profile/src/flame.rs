//! A profile as a picture: a flame graph.

use std::io;

use inferno::flamegraph::{Options, from_lines};

use crate::record::{Profile, Stack};

impl Profile {
    /// The flame graph, as SVG: threads at the bottom, and the functions that they called above
    /// them, as wide as the processor time that they took.
    ///
    /// # Errors
    /// The picture cannot be made.
    pub fn flame_graph(&self) -> io::Result<String> {
        let mut lines: Vec<String> = self.stacks.iter().map(line).collect();
        if lines.is_empty() {
            lines.push("the process did nothing 1".to_owned());
        }
        let mut options = Options::default();
        options.title = format!("Processor time of {:.0} s", self.took.as_secs_f64());
        options.count_name = "samples".into();
        let mut picture = Vec::new();
        from_lines(&mut options, lines.iter().map(String::as_str), &mut picture)
            .map_err(io::Error::other)?;
        Ok(String::from_utf8_lossy(&picture).into_owned())
    }
}

/// The stack as flame graphs read it: functions with semicolons between, and the count.
fn line(stack: &Stack) -> String {
    let mut line = stack.thread.replace([';', '\n'], " ");
    for function in stack.functions() {
        line.push(';');
        line += &function.replace([';', '\n'], " ");
    }
    line.push(' ');
    line += &stack.count.to_string();
    line
}
