//! The logger behind the `log` crate's macros.

use ::log::{LevelFilter, Log, Metadata, Record};

use super::{Level, write};

struct Bridge;

impl Log for Bridge {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let level = match record.level() {
            ::log::Level::Trace => Level::Trace,
            ::log::Level::Debug => Level::Debug,
            ::log::Level::Info => Level::Info,
            ::log::Level::Warn => Level::Warn,
            ::log::Level::Error => Level::Error,
        };
        write(level, &record.args().to_string(), &[("target", record.target())]);
    }

    fn flush(&self) {}
}

/// Make it the logger of the `log` crate, unless the plugin has set another one.
pub(crate) fn install() {
    if ::log::set_logger(&Bridge).is_ok() {
        ::log::set_max_level(LevelFilter::Trace);
    }
}

#[cfg(test)]
mod tests {
    use super::install;
    use crate::log::Level;
    use crate::testing::take_log;

    #[test]
    fn lines_of_the_log_crate_get_there_with_their_target() {
        install();
        install();
        ::log::warn!(target: "some::module", "{} of 2", 1);
        let lines = take_log();
        let [line] = &lines[..] else { panic!("{lines:?}") };
        assert_eq!((line.level, line.message.as_str()), (Level::Warn, "1 of 2"));
        assert_eq!(
            (line.fields[0].name.as_str(), line.fields[0].value.as_str()),
            ("target", "some::module")
        );
    }
}
