//! The servers of a simulation, and their clients.
//!
//! A server lives until its clients have no more changes, or is killed, and then starts again with
//! the files of its disk.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use gristmill_core::{KeyHash, Name};
use gristmill_state::{Change, ChangeOptions, ReleaseNote, Role, TenantSpec, TokenSpec};
use gristmill_store::Store;
use gristmill_store::simulation::Objects;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::dice::Dice;
use super::history::{History, message};
use super::network::{FAULTS_OF, FaultyNetwork, LATE_MS, NetworkConfig};
use crate::testing::{Machine, digest, name};
use crate::{Control, ControlParts, NewRelease};

/// The servers that make changes.
pub(super) const SERVERS: u64 = 2;

/// The lives of a server, the clients of a life, and the changes that each asks for.
const LIVES: u64 = 2;
const CLIENTS: u64 = 2;
const CHANGES: u64 = 2;

/// A server that does not start after so many tries never does.
const STARTS_MAX: usize = 200;

/// The longest pauses of a client and of a look at the log, and the longest life of a server that
/// is killed, in milliseconds.
const PAUSE_MS: u64 = 200;
const LOOK_MS: u64 = 800;
const LIFE_MS: u64 = 1500;

/// One simulation.
pub(super) struct World {
    machine: Arc<Machine>,
    dice: Dice,
    pub(super) shared: Objects,
    pub(super) history: Mutex<History>,
    is_calm: Arc<AtomicBool>,
    begun: Instant,
}

/// A server that runs.
struct Life {
    control: Arc<Control>,
    network: Arc<FaultyNetwork>,
    server: u64,
    /// How many lives it had before.
    number: u64,
}

impl World {
    /// Call it on a runtime whose time is paused.
    pub(super) fn new(machine: Arc<Machine>, seed: u64) -> Self {
        Self {
            machine,
            dice: Dice::of_seed(seed),
            shared: Objects::default(),
            history: Mutex::default(),
            is_calm: Arc::default(),
            begun: Instant::now(),
        }
    }

    /// Let the servers run until their clients have no more changes, and read the log to its end.
    /// Returns them, and those that start anew: each of them with its disk, and one without.
    pub(super) async fn run(&self) -> Vec<Arc<Control>> {
        let disks: Vec<_> = (0..SERVERS).map(|_| Objects::default()).collect();
        let running = (0..).zip(&disks).map(|(server, disk)| Box::pin(self.serve(server, disk)));
        let lives = join_all(running).await;
        self.is_calm.store(true, Ordering::Relaxed);
        // Until the last call has arrived.
        sleep(Duration::from_millis(2 * LATE_MS)).await;
        let mut servers = Vec::new();
        for life in lives {
            let followed = life.control.releases.follow(false).await;
            assert!(followed.is_ok(), "server {} cannot follow: {followed:?}", life.server);
            servers.push(life.control);
        }
        let new_disk = Objects::default();
        for (server, disk) in (0..).zip(disks.iter().chain([&new_disk])) {
            servers.push(self.start(server, LIVES, disk).await.control);
        }
        servers
    }

    /// The lives of a server. Returns the last one.
    async fn serve(&self, server: u64, disk: &Objects) -> Life {
        let mut number = 0;
        loop {
            let life = self.start(server, number, disk).await;
            let dice = self.dice.of("life", server * LIVES + number);
            let clients = join_all((0..CLIENTS).map(|client| Box::pin(self.change(&life, client))));
            let is_killed = number + 1 < LIVES && dice.of("killed", 0).below(2) == 0;
            tokio::select! {
                // Otherwise the order would be another one each time.
                biased;
                _ = clients => return life,
                () = self.follow(&life) => {}
                () = sleep(dice.of("ends", 0).time(LIFE_MS)), if is_killed => {}
            }
            life.network.cut();
            number += 1;
        }
    }

    async fn start(&self, server: u64, number: u64, disk: &Objects) -> Life {
        let network = Arc::new(FaultyNetwork::new(NetworkConfig {
            dice: self.dice.of("network", server * (LIVES + 1) + number),
            server,
            servers: SERVERS + 1,
            faults: [0, 1, 4, FAULTS_OF / 6][self.dice.of("faults", 0).below(4) as usize],
            begun: self.begun,
            is_calm: self.is_calm.clone(),
        }));
        let keep_releases = [1, 2, 5, 1000][self.dice.of("kept", 0).below(4) as usize];
        for _ in 0..STARTS_MAX {
            let store = Store::simulated(&self.shared, disk, network.clone()).unwrap();
            let parts = ControlParts { keep_releases, ..self.machine.parts(store.into()) };
            match Box::pin(Control::open(parts)).await {
                Ok(control) => return Life { control: control.into(), network, server, number },
                Err(error) if error.is_unreachable() => {}
                Err(error) => panic!("server {server} is refused its start: {error:?}"),
            }
        }
        panic!("server {server} does not start");
    }

    /// Look for releases of the other server, for ever.
    async fn follow(&self, life: &Life) {
        let mut serves = 0;
        for look in 0.. {
            let dice = self.dice.of("look", life.server * LIVES + life.number);
            sleep(dice.of("pause", look).time(LOOK_MS)).await;
            // The next look goes on after an error.
            let _ = life.control.releases.follow(true).await;
            serves = self.history.lock().see(life.server, &life.control, serves);
        }
    }

    /// Ask for some changes, one after the other.
    async fn change(&self, life: &Life, client: u64) {
        let mut tenants = Vec::new();
        for turn in 0..CHANGES {
            let place = (life.server * LIVES + life.number) * CLIENTS + client;
            let number = place * CHANGES + turn;
            let dice = self.dice.of("change", number);
            sleep(dice.of("pause", 0).time(PAUSE_MS)).await;
            let serves = life.control.serving().snapshot.release;
            let kind = dice.of("kind", 0).below(6);
            let changes = match kind {
                0 => match tenants.pop() {
                    Some(tenant) => vec![Change::DeleteTenant { tenant }],
                    None => vec![put_tenant(tenant_of(number), 1)],
                },
                1 => vec![put_token(number)],
                2 => vec![shared(number), put_tenant(tenant_of(number), 1)],
                3 => vec![shared(number)],
                _ => vec![put_tenant(tenant_of(number), 1)],
            };
            let new = NewRelease {
                changes: changes.into_iter().map(Into::into).collect(),
                expected_release: (kind == 5).then_some(serves),
                ..NewRelease::default()
            };
            let note = ReleaseNote { by: None, message: Some(message(number)) };
            self.history.lock().ask(number);
            let answer =
                life.control.release(new, ChangeOptions { note, ..ChangeOptions::default() }).await;
            let mut history = self.history.lock();
            history.answer(number, &answer);
            if let Ok(published) = &answer {
                let serves = life.control.serving().snapshot.release;
                assert!(serves >= published.release, "change {number} is made and does not serve");
            }
            if history.is_made(number) && kind >= 4 {
                tenants.push(tenant_of(number));
            }
        }
    }
}

fn tenant_of(change: u64) -> Name {
    name(&format!("t{change}"))
}

fn put_tenant(tenant: Name, weight: u32) -> Change {
    Change::PutTenant { tenant, spec: TenantSpec { weight, ..TenantSpec::default() } }
}

/// A change of a tenant that all clients change, each time to something else.
fn shared(change: u64) -> Change {
    put_tenant(name("shared"), change as u32 + 1)
}

fn put_token(change: u64) -> Change {
    let hash = KeyHash::Plain(digest(change as u8));
    let spec = TokenSpec { role: Role::Admin, tenants: BTreeSet::new(), expires_at_ms: None, hash };
    Change::PutToken { token: name(&format!("k{change}")), spec }
}
