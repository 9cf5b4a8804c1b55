//! Servers with the settings of the Helm chart, on one store: more, fewer, and others in their
//! place, under load. The test stands for Kubernetes: it has the endpoints of the Service.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::thread;

use tempfile::TempDir;

use crate::support::eventually::eventually;
use crate::support::files;
use crate::support::load::under_load;
use crate::support::s3::S3;
use crate::support::server::Server;
use crate::support::setup::Setup;

/// `gristmill.toml` of the chart's ConfigMap, as the Kustomize base has it.
fn chart_settings() -> String {
    let base = files::root().join("host/deploy/kustomize/base/resources.yaml");
    let text = fs::read_to_string(base).unwrap();
    let lines = text.lines().skip_while(|line| *line != "  gristmill.toml: |").skip(1);
    let lines: Vec<_> = lines.map_while(|line| line.strip_prefix("    ")).collect();
    lines.join("\n")
}

/// The Deployment and its Service.
struct Deployment {
    s3: S3,
    settings: TempDir,
    /// The servers that get requests.
    endpoints: Mutex<Vec<Arc<Server>>>,
    turn: AtomicUsize,
}

impl Deployment {
    fn new() -> Self {
        let settings = tempfile::tempdir().unwrap();
        fs::write(settings.path().join("gristmill.toml"), chart_settings()).unwrap();
        let (endpoints, turn) = (Mutex::default(), AtomicUsize::default());
        Self { s3: S3::start(), settings, endpoints, turn }
    }

    /// The chart's settings. The places and the addresses are this machine's, and the test says
    /// when a server has served on for long enough.
    fn setup(&self) -> Setup {
        let file = self.settings.path().join("gristmill.toml");
        let setup = self.s3.setup().flag("--config", file.to_str().unwrap());
        setup.flag("--metrics-listen", "127.0.0.1:0").flag("--shutdown-delay-s", "3600")
    }

    /// Start so many more. They get requests once they are ready.
    fn add(&self, count: usize) {
        let setups: Vec<_> = (0..count).map(|_| self.setup()).collect();
        let started: Vec<_> = thread::scope(|scope| {
            let start = |setup: Setup| scope.spawn(move || setup.start());
            let starting: Vec<_> = setups.into_iter().map(start).collect();
            starting.into_iter().map(|server| server.join().unwrap()).collect()
        });
        for server in started {
            eventually("it is ready", || server.data.get("/readyz").status == 200);
            self.endpoints.lock().unwrap().push(Arc::new(server));
        }
    }

    /// End those that have served longest. They get requests until they say that they are not
    /// ready, and serve on until nobody sends any more.
    fn remove(&self, count: usize) {
        let ending: Vec<_> = self.endpoints.lock().unwrap()[..count].to_vec();
        ending.iter().for_each(|server| server.signal_terminate());
        for server in &ending {
            eventually("it is not ready", || server.data.get("/readyz").status == 503);
        }
        self.endpoints.lock().unwrap().drain(..count);
        for server in ending {
            eventually("its last request has ended", || Arc::strong_count(&server) == 1);
            // This ends the delay.
            server.signal_terminate();
            let (_, status, _) = Arc::into_inner(server).unwrap().wait();
            assert_eq!(status.code(), Some(0));
        }
    }

    fn next_endpoint(&self) -> Arc<Server> {
        let endpoints = self.endpoints.lock().unwrap();
        endpoints[self.turn.fetch_add(1, Ordering::Relaxed) % endpoints.len()].clone()
    }
}

/// Many requests are answered by the servers that are there now.
fn answered(answers: &Receiver<()>) {
    answers.try_iter().for_each(drop);
    assert_eq!(answers.iter().take(20).count(), 20, "a request failed");
}

#[test]
fn no_request_fails_while_servers_are_replaced_added_and_removed() {
    let deployment = Deployment::new();
    deployment.add(1);
    deployment.next_endpoint().digits("acme");
    deployment.add(2);
    let ask = |_: usize| deployment.next_endpoint().assert_reads("acme", 7);
    under_load(2, ask, |answers| {
        answered(answers);
        for _ in 0..3 {
            deployment.add(1);
            deployment.remove(1);
            answered(answers);
        }
        deployment.add(2);
        assert_eq!(deployment.endpoints.lock().unwrap().len(), 5);
        answered(answers);
        deployment.remove(4);
        answered(answers);
    });
}
