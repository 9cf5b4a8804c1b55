//! What a run of a target did, from the lines that libFuzzer prints.

use std::fmt;

/// The figures of a run.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Report {
    /// Inputs that were given to the target.
    runs: u64,
    /// The same in a second.
    per_second: u64,
    /// Places in the code that some input reached.
    reached: u64,
    /// Inputs that reached something new.
    added: u64,
    /// The file of an input that broke what must hold, or why the run ended.
    pub(super) finding: Option<String>,
}

impl Report {
    pub(super) fn of(lines: &[String]) -> Self {
        let mut report = Self::default();
        for line in lines {
            let number = |text: &str| text.split_whitespace().next()?.parse().ok();
            let after = |word: &str| number(line.split_once(word)?.1);
            if line.starts_with('#')
                && let Some(reached) = after(" cov: ")
            {
                report.reached = reached;
            }
            for (name, figure) in [
                ("stat::number_of_executed_units:", &mut report.runs),
                ("stat::average_exec_per_sec:", &mut report.per_second),
                ("stat::new_units_added:", &mut report.added),
            ] {
                if let Some(value) = line.strip_prefix(name).and_then(number) {
                    *figure = value;
                }
            }
            // A slow input is written, too, and is none.
            if let Some((_, path)) = line.split_once("Test unit written to ")
                && !path.contains("/slow-unit-")
            {
                report.finding = Some(path.trim().to_owned());
            }
        }
        report
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { runs, per_second, reached, added, finding } = self;
        write!(f, "{runs} inputs, {per_second} a second, {reached} places reached, {added} new")?;
        match finding {
            None => write!(f, ", nothing found"),
            Some(finding) => write!(f, ", FOUND: {finding}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Report;

    fn report(text: &str) -> Report {
        Report::of(&text.lines().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn figures_are_read() {
        let report = report(
            "INFO: Seed: 1\n\
             #2\tINITED cov: 11 ft: 12 corp: 1/1b exec/s: 0 rss: 27Mb\n\
             #1024\tpulse  cov: 40 ft: 90 corp: 7/31b lim: 4 exec/s: 512 rss: 40Mb\n\
             Done 2048 runs in 4 second(s)\n\
             stat::number_of_executed_units: 2048\n\
             stat::average_exec_per_sec:     512\n\
             stat::new_units_added:          6\n\
             stat::slowest_unit_time_sec:    0\n",
        );
        let expected = Report { runs: 2048, per_second: 512, reached: 40, added: 6, finding: None };
        assert_eq!(report, expected);
        assert_eq!(
            report.to_string(),
            "2048 inputs, 512 a second, 40 places reached, 6 new, nothing found"
        );
    }

    #[test]
    fn a_finding_is_its_file() {
        let report = report(
            "==1== ERROR: libFuzzer: deadly signal\n\
             artifact_prefix='/a/'; Test unit written to /a/crash-0123\n\
             artifact_prefix='/a/'; Test unit written to /a/slow-unit-4567\n",
        );
        assert_eq!(report.finding.as_deref(), Some("/a/crash-0123"));
    }
}
