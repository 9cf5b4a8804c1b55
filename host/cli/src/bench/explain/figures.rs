//! Figures that count since the start of the server and of the machine. Two readings of them say
//! what happened in between.

use std::fs;
use std::ops::Sub;

use anyhow::{Result, bail};

use crate::admin::Admin;

/// Of a server and one of its models.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    /// The CPU time of the server's process, in microseconds.
    pub(super) cpu_us: f64,
    /// The rows and batches that the model ran.
    pub(super) rows: f64,
    pub(super) batches: f64,
}

impl Figures {
    pub(super) fn read(admin: &Admin, model: &str) -> Result<Self> {
        let status = admin.get("status")?;
        let lane = &status["models"][model]["statistics"];
        let number = |key: &str| lane[key].as_f64().unwrap_or_default();
        Ok(Self {
            cpu_us: cpu_us(&admin.metrics()?)?,
            rows: number("rows"),
            batches: number("batches"),
        })
    }
}

impl Sub for Figures {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            cpu_us: self.cpu_us - before.cpu_us,
            rows: self.rows - before.rows,
            batches: self.batches - before.batches,
        }
    }
}

fn cpu_us(metrics: &str) -> Result<f64> {
    const NAME: &str = "process_cpu_time_seconds_total";
    let lines = metrics.lines().filter(|line| line.starts_with(NAME));
    let seconds: Vec<f64> =
        lines.filter_map(|line| line.rsplit(' ').next()?.parse().ok()).collect();
    if seconds.is_empty() {
        bail!("/metrics has no {NAME}: the server needs Linux");
    }
    Ok(seconds.iter().sum::<f64>() * 1e6)
}

/// The CPU time of all that runs on this machine, in microseconds, with what a virtual
/// machine's host has taken away. None where the kernel does not say.
pub(super) fn machine_cpu_us() -> Option<f64> {
    of_machine(&fs::read_to_string("/proc/stat").ok()?)
}

fn of_machine(stat: &str) -> Option<f64> {
    /// The unit of `/proc/stat`, in microseconds.
    const TICK_US: f64 = 10_000.0;
    let times = stat.lines().next()?.split_whitespace().skip(1);
    let times: Vec<f64> = times.map_while(|time| time.parse().ok()).collect();
    // user, nice, system, idle, iowait, irq, softirq, steal
    let counted = [0, 1, 2, 7].into_iter().map(|at| times.get(at).copied());
    Some(counted.sum::<Option<f64>>()? * TICK_US)
}

#[cfg(test)]
mod tests {
    use super::{cpu_us, of_machine};

    #[test]
    fn processor_times_are_summed() {
        let metrics = "# HELP process_cpu_time_seconds_total x\n\
                       process_cpu_time_seconds_total{mode=\"user\"} 1.5\n\
                       process_cpu_time_seconds_total{mode=\"system\"} 0.25\nother 7\n";
        assert!((cpu_us(metrics).unwrap() - 1_750_000.0).abs() < 1.0);
        assert!(cpu_us("other 7\n").unwrap_err().to_string().contains("needs Linux"));
        assert_eq!(of_machine("cpu  1 2 3 400 5 6 7 8 0 0\ncpu0 1\n"), Some(140_000.0));
        assert_eq!(of_machine("cpu  1 2"), None);
    }
}
