//! What the machine gives a server: addresses, open files, memory, and a disk.

use std::fs;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::time::Duration;

use gristmill_cli::doctor::Finding;
use gristmill_client::{Client, block_on};
use tempfile::NamedTempFile;

use crate::config::Config;
use crate::data_dir;

/// Fewer open files are too few for a server: each connection is one.
const FILES_MIN: u64 = 4096;

/// The pool of plugins' memories reserves at least so many addresses, before any of it is memory,
/// and more for many `concurrent_plugin_calls`.
const ADDRESS_SPACE_MIN: u64 = 4 << 40;

const ADDRESS_SPACE_CURE: &str = "set it to unlimited, or LimitAS=infinity in the unit, and bound \
                                  memory by a control group (MemoryMax, --memory)";

/// The time for the answer of whoever listens at an address.
const ANSWER_TIME: Duration = Duration::from_secs(2);

/// With less free space the disk is nearly full, or it is full.
const SPACE_WARNING: u64 = 2 << 30;
const SPACE_FAULT: u64 = 64 << 20;

const MIB: u64 = 1 << 20;

/// Whether the addresses of all planes are free.
pub(super) fn addresses(config: &Config) -> Vec<Finding> {
    let listeners = &config.listeners;
    let planes = [
        ("listen", Some(listeners.listen)),
        ("grpc_listen", Some(listeners.grpc_listen)),
        ("admin_listen", Some(listeners.admin_listen)),
        ("metrics_listen", config.metrics.metrics_listen),
    ];
    let own_server = data_dir::held_by(&config.data.data_dir);
    let own_server = own_server.as_deref();
    let planes = planes.into_iter();
    planes.filter_map(|(plane, address)| Some(free(plane, address?, own_server))).collect()
}

/// Whether an address is free. `own_server` is the process that serves this data directory.
fn free(setting: &'static str, address: SocketAddr, own_server: Option<&str>) -> Finding {
    let flag = setting.replace('_', "-");
    let error = match TcpListener::bind(address) {
        Ok(_) => return Finding::ok(setting, format!("{address} is free")),
        Err(error) => error,
    };
    let cure = format!("choose another address with --{flag}");
    if error.kind() != ErrorKind::AddrInUse {
        return Finding::fault(setting, format!("{address}: {error}"), cure);
    }
    match own_server {
        Some(process) => {
            let text = format!("{address} is in use, and {process} serves this data directory");
            Finding::ok(setting, text)
        }
        None if is_gristmill(address) => {
            let text = format!("a Gristmill server listens at {address}, with other data");
            Finding::fault(setting, text, format!("end it, or {cure}"))
        }
        None => Finding::fault(setting, format!("another program listens at {address}"), cure),
    }
}

/// Whether the data plane or the admin plane of a server listens there, without TLS.
fn is_gristmill(address: SocketAddr) -> bool {
    let Ok(plane) = address.to_string().parse() else { return false };
    let client = Client::new(plane).with_answer_timeout(ANSWER_TIME);
    ["/livez", "/admin/v1/self"].iter().any(|path| {
        let Ok(answer) = block_on(client.get(path)) else { return false };
        let body = String::from_utf8_lossy(&answer.body);
        (answer.status.is_success() && body.trim() == "live")
            || body.contains("urn:gristmill:error:")
    })
}

/// The limit on open files. A server raises its own limit as far as it may.
pub(super) fn open_files() -> Finding {
    const SUBJECT: &str = "open files";
    match rlimit::Resource::NOFILE.get() {
        Ok((_, most)) if most >= FILES_MIN => {
            let most =
                if most == rlimit::INFINITY { "any number".into() } else { most.to_string() };
            Finding::ok(SUBJECT, format!("{most} may be open"))
        }
        Ok((_, most)) => {
            let text = format!("only {most} may be open, and each connection is one");
            Finding::warning(SUBJECT, text, "raise `ulimit -Hn`, or LimitNOFILE of the unit")
        }
        Err(error) => Finding::warning(SUBJECT, error.to_string(), ""),
    }
}

/// The limit on the addresses of a process, which is no limit on its memory.
pub(super) fn address_space() -> Finding {
    const SUBJECT: &str = "ulimit -v";
    match rlimit::Resource::AS.get() {
        Ok((limit, _)) if limit == rlimit::INFINITY => Finding::ok(SUBJECT, "unlimited"),
        Ok((limit, _)) => {
            let text = format!(
                "only {} MiB of addresses, and a server reserves terabytes of them for the \
                 memories of plugins",
                limit / MIB
            );
            match limit < ADDRESS_SPACE_MIN {
                true => Finding::fault(SUBJECT, text, ADDRESS_SPACE_CURE),
                false => Finding::warning(SUBJECT, text, ADDRESS_SPACE_CURE),
            }
        }
        Err(error) => Finding::warning(SUBJECT, error.to_string(), ""),
    }
}

/// The memory of this machine or container, against what settings allow.
pub(super) fn memory(config: &Config) -> Finding {
    const SUBJECT: &str = "memory";
    let Some(limit) = memory_limit() else {
        return Finding::warning(SUBJECT, "the system does not say how much there is", "");
    };
    let requests = &config.requests;
    let kept = requests.retained_memory_bytes as u64;
    let of_tenant = requests.tenant_bytes_max as u64;
    let of_child = config.plugins.compile_memory_bytes.max(config.models.model_proof_memory_bytes);
    let text = |what: &str, bytes: u64| {
        format!("{} MiB may be used, and {what} are {} MiB", limit / MIB, bytes / MIB)
    };
    let most = kept.saturating_add(of_tenant);
    if most > limit {
        let text = text("retained_memory_bytes and tenant_bytes_max together", most);
        let cure = "lower both: otherwise the system may end the server under load";
        return Finding::warning(SUBJECT, text, cure);
    }
    if of_child > limit {
        let text = text("compile_memory_bytes or model_proof_memory_bytes", of_child);
        let cure = "lower both: otherwise the system may end what compiles a large plugin";
        return Finding::warning(SUBJECT, text, cure);
    }
    Finding::ok(SUBJECT, text("what is kept and what one tenant may hold", most))
}

/// The memory that this process may use: the least of the machine's and its control groups'.
fn memory_limit() -> Option<u64> {
    let about = fs::read_to_string("/proc/meminfo").ok()?;
    let total = about.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let total: u64 = total.split_whitespace().next()?.parse().ok()?;
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    // Version 2 has one group, whose line is `0::/path`.
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let root = Path::new("/sys/fs/cgroup");
    let folder = root.join(group);
    let limits = folder.ancestors().take_while(|path| path.starts_with(root));
    let limits = limits.map(|path| path.join("memory.max"));
    let limits = limits.chain([root.join("memory/memory.limit_in_bytes")]);
    // "max" is no number.
    let limits = limits.filter_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok());
    limits.chain([total * 1024]).min()
}

/// Whether the data directory can be written, and how much space its disk has.
pub(super) fn data_dir(config: &Config) -> Finding {
    const SUBJECT: &str = "data_dir";
    let data_dir = &config.data.data_dir;
    let Ok(folder) = std::path::absolute(data_dir) else {
        return Finding::fault(SUBJECT, "the current folder is gone", "change into another one");
    };
    // Of a directory that is missing, the one in which it will be made.
    let there = folder.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    let place = data_dir.display();
    let cure = "choose another directory with --data-dir";
    let written = NamedTempFile::with_prefix_in("doctor", there);
    if let Err(error) = written {
        return Finding::fault(SUBJECT, format!("{place} cannot be written: {error}"), cure);
    }
    let free = match rustix::fs::statvfs(there) {
        Ok(disk) => disk.f_bavail.saturating_mul(disk.f_frsize),
        Err(error) => return Finding::warning(SUBJECT, format!("{place}: {error}"), ""),
    };
    let is_new = if there == folder { "" } else { ", which a server makes," };
    let text = format!("{place}{is_new} can be written, and has {} MiB free", free / MIB);
    match free {
        ..SPACE_FAULT => Finding::fault(SUBJECT, text, format!("make room, or {cure}")),
        SPACE_FAULT..SPACE_WARNING => Finding::warning(SUBJECT, text, "make room"),
        _ => Finding::ok(SUBJECT, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_this_machine_is_found() {
        assert!(memory_limit().unwrap() > 64 * MIB);
    }

    #[test]
    fn an_address_that_is_taken_is_a_fault_unless_its_own_server_has_it() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        assert!(!free("listen", address, Some("process 7")).is_fault());
        // It closes both connections, one for each plane, without an answer.
        std::thread::scope(|scope| {
            scope.spawn(|| taken.incoming().take(2).for_each(drop));
            assert!(free("listen", address, None).is_fault());
        });
        assert!(!free("listen", "127.0.0.1:0".parse().unwrap(), None).is_fault());
    }
}
