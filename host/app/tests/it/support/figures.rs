//! The kernel's figures of a server's process: its children, its memory and its CPU time.

use std::fs;

use super::server::Server;

impl Server {
    /// The processes that it has started and that have not ended.
    pub(crate) fn children(&self) -> Vec<u32> {
        let server_id = self.process.server.child.id();
        let mut children = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
            let Some(number) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            // The process may have ended.
            let status = fs::read_to_string(entry.path().join("status")).unwrap_or_default();
            let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"));
            if parent.is_some_and(|parent| parent.trim() == server_id.to_string()) {
                children.push(number);
            }
        }
        children
    }

    /// The memory that it has now.
    pub(crate) fn resident_bytes(&self) -> usize {
        self.memory("VmRSS:")
    }

    /// Reset the peak to the memory that it has now.
    pub(crate) fn forget_peak(&self) {
        let path = format!("/proc/{}/clear_refs", self.process.server.child.id());
        fs::write(path, "5").unwrap();
    }

    /// Peak memory that it had since the last [`Self::forget_peak`], or since its start.
    pub(crate) fn peak_resident_bytes(&self) -> usize {
        self.memory("VmHWM:")
    }

    /// The size of its address space now, used or not.
    pub(crate) fn mapped_bytes(&self) -> usize {
        self.memory("VmSize:")
    }

    /// The CPU time that its threads of this name have used, in milliseconds, to 10 ms a thread.
    pub(crate) fn cpu_ms_of(&self, thread: &str) -> u64 {
        let threads = format!("/proc/{}/task", self.process.server.child.id());
        let mut ticks = 0;
        for thread_folder in fs::read_dir(threads).unwrap() {
            // The thread may have ended.
            let stat =
                fs::read_to_string(thread_folder.unwrap().path().join("stat")).unwrap_or_default();
            let Some((head, fields)) = stat.rsplit_once(')') else { continue };
            if head.split_once('(').is_some_and(|(_, name)| name == thread) {
                // User and system time are fields 14 and 15. `fields` begins with the third one.
                let fields = fields.split_whitespace().skip(11).take(2);
                ticks += fields.map(|ticks| ticks.parse::<u64>().unwrap()).sum::<u64>();
            }
        }
        ticks * 10
    }

    fn memory(&self, line: &str) -> usize {
        let status = format!("/proc/{}/status", self.process.server.child.id());
        let status = fs::read_to_string(status).unwrap();
        let value = status.lines().find_map(|other| other.strip_prefix(line)).unwrap();
        value.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() << 10
    }
}
