//! A Redis Cluster of three servers without replicas. It is made over the wire, as `redis-cli
//! --cluster create` does it.

use super::eventually::eventually;
use super::redis::Redis;

/// The slots of a cluster.
const SLOTS: usize = 16384;

/// The first slot of each server.
const FIRST_SLOTS: [usize; 3] = [0, 5461, 10922];

const OPTIONS: [&str; 4] = ["--cluster-enabled", "yes", "--cluster-require-full-coverage", "no"];

/// A cluster. Each server answers also while another one is gone.
pub(crate) struct RedisCluster {
    pub(crate) servers: Vec<Redis>,
}

impl RedisCluster {
    /// It serves all slots when this returns.
    pub(crate) fn start() -> Self {
        let cluster = Self { servers: (0..3).map(|_| Redis::start_with(&OPTIONS)).collect() };
        for (at, first) in FIRST_SLOTS.iter().enumerate() {
            let first = first.to_string();
            let last = (FIRST_SLOTS.get(at + 1).unwrap_or(&SLOTS) - 1).to_string();
            let epoch = (at + 1).to_string();
            cluster.cluster(at, &["SET-CONFIG-EPOCH", &epoch]);
            cluster.cluster(at, &["ADDSLOTSRANGE", &first, &last]);
        }
        for server in &cluster.servers[1..] {
            cluster.cluster(0, &["MEET", "127.0.0.1", &server.port().to_string()]);
        }
        eventually("the servers know each other", || {
            (0..3).all(|at| {
                let info = cluster.cluster(at, &["INFO"]);
                ["cluster_state:ok", "cluster_slots_assigned:16384", "cluster_known_nodes:3"]
                    .iter()
                    .all(|line| info.contains(line))
            })
        });
        cluster
    }

    /// Its addresses, as the configuration has them: the last ones, so many.
    pub(crate) fn urls(&self, count: usize) -> String {
        let servers = self.servers.iter().rev().take(count);
        let urls: Vec<_> = servers.map(|server| format!("'{}'", server.url())).collect();
        format!("[{}]", urls.join(", "))
    }

    /// The slot of a key.
    pub(crate) fn slot(&self, key: &str) -> usize {
        self.cluster(0, &["KEYSLOT", key]).parse().unwrap()
    }

    /// The server that had the slot of a key at the start.
    pub(crate) fn server_of(&self, key: &str) -> usize {
        let slot = self.slot(key);
        FIRST_SLOTS.iter().rposition(|first| *first <= slot).unwrap()
    }

    /// The key `{prefix}k0`, or a later one, that this server had at the start: without the prefix.
    pub(crate) fn key_on(&self, server: usize, prefix: &str) -> String {
        let mut keys = (0..).map(|number| format!("k{number}"));
        keys.find(|key| self.server_of(&format!("{prefix}{key}")) == server).unwrap()
    }

    /// Begin to move a slot.
    pub(crate) fn begin_moving(&self, slot: usize, from: usize, to: usize) {
        let slot = slot.to_string();
        let (from_id, to_id) = (self.cluster(from, &["MYID"]), self.cluster(to, &["MYID"]));
        self.cluster(to, &["SETSLOT", &slot, "IMPORTING", &from_id]);
        self.cluster(from, &["SETSLOT", &slot, "MIGRATING", &to_id]);
    }

    /// Say that a slot, of which `from` has no key any more, has moved.
    pub(crate) fn end_moving(&self, slot: usize, from: usize, to: usize) {
        let (slot, to_id) = (slot.to_string(), self.cluster(to, &["MYID"]));
        // The one that gets it must know first.
        let others = (0..3).filter(|at| ![to, from].contains(at));
        for at in [to, from].into_iter().chain(others) {
            self.cluster(at, &["SETSLOT", &slot, "NODE", &to_id]);
        }
    }

    /// How often a server answered with an error of this code.
    pub(crate) fn errors(&self, server: usize, code: &str) -> u64 {
        let stats = self.servers[server].command(&[b"INFO", b"errorstats"]);
        let line = format!("errorstat_{code}:count=");
        stats.lines().find_map(|entry| entry.strip_prefix(&line)?.parse().ok()).unwrap_or(0)
    }

    /// The answer of a server to `CLUSTER`.
    fn cluster(&self, server: usize, arguments: &[&str]) -> String {
        let parts = ["CLUSTER"].iter().chain(arguments).map(|part| part.as_bytes());
        self.servers[server].command(&parts.collect::<Vec<_>>())
    }
}
