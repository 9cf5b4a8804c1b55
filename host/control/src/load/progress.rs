//! The progress of the start.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The progress of a start, as text; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    release: AtomicU64,
    loaded: AtomicUsize,
    /// The number of plugins, assets and models to load; 0 until it is known.
    wanted: AtomicUsize,
}

impl Progress {
    pub(crate) fn replayed(&self, release: u64) {
        self.0.release.store(release, Ordering::Relaxed);
    }

    /// So many plugins, assets and models are about to be loaded.
    pub(crate) fn begin(&self, wanted: usize) {
        self.0.loaded.store(0, Ordering::Relaxed);
        self.0.wanted.store(wanted, Ordering::Relaxed);
    }

    /// So many more of them are loaded or have failed.
    pub(crate) fn loaded(&self, names: usize) {
        self.0.loaded.fetch_add(names, Ordering::Relaxed);
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counters { release, loaded, wanted } = &*self.0;
        let get = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
        write!(f, "{} releases replayed", release.load(Ordering::Relaxed))?;
        match get(wanted) {
            0 => Ok(()),
            wanted => write!(f, ", {} of {wanted} plugins, assets and models loaded", get(loaded)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_how_far_the_start_is() {
        let progress = Progress::default();
        assert_eq!(progress.to_string(), "0 releases replayed");
        progress.replayed(7);
        progress.begin(2);
        progress.loaded(1);
        let expected = "7 releases replayed, 1 of 2 plugins, assets and models loaded";
        assert_eq!(progress.to_string(), expected);
    }
}
