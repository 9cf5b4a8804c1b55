use std::path::Path;
use std::sync::Arc;

use gristmill_core::ErrorCode;
use gristmill_state::{Change, ChangeOptions, ReleaseNote, TenantSpec};
use gristmill_store::Store;

use crate::change_request::ChangeRequest;
use crate::load::progress::Progress;
use crate::release_log::append::{Appended, Draft, Rest};
use crate::release_log::{ReleaseLog, Replayed};
use crate::testing::name;
use crate::uploads::Uploads;

/// A server that shares the log in `directory` and keeps as few releases as possible.
struct Writer {
    log: ReleaseLog,
    replayed: Replayed,
    store: Arc<Store>,
}

impl Writer {
    async fn start(directory: &Path, server: &str) -> Self {
        let url = format!("file://{}", directory.join("shared").display()).parse().unwrap();
        let store = Store::open_shared(&url, &directory.join(server), 1 << 20).unwrap();
        let (store, progress) = (Arc::new(store), Progress::default());
        let uploads = Arc::new(Uploads::new(store.clone()));
        let log = ReleaseLog::new(store.clone(), uploads, progress, 1, None);
        let replayed = log.replay().await.unwrap();
        Self { log, replayed, store }
    }

    /// Releases that bring a tenant each. The log is not read on before.
    fn drafts(&self, tenants: &[&str]) -> Vec<Draft> {
        let (mut head, mut desired) = (self.replayed.head.clone(), self.replayed.desired.clone());
        let draft = |tenant: &&str| {
            let change = Change::PutTenant { tenant: name(tenant), spec: TenantSpec::default() };
            let request = ChangeRequest::one(change, ChangeOptions::default());
            let plan = request.plan(&desired, head.number + 1).unwrap();
            desired = plan.desired.clone();
            let draft = Draft::of(&head, ReleaseNote::default(), plan).unwrap();
            head = draft.head().clone();
            draft
        };
        tenants.iter().map(draft).collect()
    }

    async fn append(&mut self, drafts: Vec<Draft>) -> Appended {
        self.log.append(&mut self.replayed, drafts).await.unwrap()
    }

    async fn make(&mut self, tenant: &str) {
        let appended = self.append(self.drafts(&[tenant])).await;
        assert!(appended.kept == 1 && appended.unconfirmed.is_none(), "{tenant}");
    }

    /// Append releases of which another server has the first number.
    async fn lose(&mut self, tenants: &[&str]) {
        let appended = self.append(self.drafts(tenants)).await;
        assert!(appended.kept == 0 && matches!(appended.rest, Rest::Again), "{tenants:?}");
    }

    /// Append releases of which the log may have the first ones.
    async fn append_in_vain(&mut self, tenants: &[&str]) -> usize {
        let appended = self.append(self.drafts(tenants)).await;
        assert_eq!(appended.kept, 0);
        let Rest::Failed { source, unknown } = appended.rest else { panic!("lost") };
        assert_eq!(source.code(), ErrorCode::Unavailable);
        unknown
    }

    async fn read_on(&mut self) -> Vec<String> {
        self.log.read_on(&mut self.replayed).await.unwrap();
        self.replayed.desired.tenants.keys().map(ToString::to_string).collect()
    }
}

/// Two writers of one log: the first one has made tenant `a` and then these, and its checkpoint
/// stands for all releases but the last one. The other one has read the release of `a`.
async fn with_a_slow_one(directory: &Path, tenants: &[&str]) -> (Writer, Writer) {
    let mut one = Writer::start(directory, "one").await;
    one.make("a").await;
    let slow = Writer::start(directory, "slow").await;
    for tenant in tenants {
        one.make(tenant).await;
    }
    let last = 1 + tenants.len() as u64;
    one.log.collect(last).await;
    assert_eq!(one.store.log().await.unwrap().numbers, [last], "the checkpoint stands for others");
    (one, slow)
}

#[tokio::test]
async fn of_two_writers_of_a_number_one_reads_on_and_both_releases_stay() {
    let directory = tempfile::tempdir().unwrap();
    let mut one = Writer::start(directory.path(), "one").await;
    let mut two = Writer::start(directory.path(), "two").await;
    one.make("a").await;
    two.lose(&["b"]).await;
    assert_eq!(two.read_on().await, ["a"]);
    two.make("b").await;
    assert_eq!(one.read_on().await, ["a", "b"]);
    assert_eq!(one.replayed.head, two.replayed.head);
}

#[tokio::test]
async fn a_release_in_the_place_of_one_that_was_removed_is_not_made() {
    let directory = tempfile::tempdir().unwrap();
    let (mut one, mut slow) = with_a_slow_one(directory.path(), &["b", "c"]).await;
    // Release 3 does not follow it.
    slow.lose(&["lost"]).await;
    assert_eq!(slow.read_on().await, ["a", "b", "c"]);
    slow.make("d").await;
    assert_eq!(one.read_on().await, ["a", "b", "c", "d"]);
    let fresh = Writer::start(directory.path(), "fresh").await;
    assert_eq!(fresh.replayed.head, one.replayed.head);
}

#[tokio::test]
async fn a_release_far_behind_the_log_is_not_acknowledged_and_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let (one, mut slow) = with_a_slow_one(directory.path(), &["b", "c", "d", "e"]).await;
    assert_eq!(slow.append_in_vain(&["lost"]).await, 1);
    assert_eq!(slow.read_on().await, ["a", "b", "c", "d", "e"]);
    assert_eq!(slow.replayed.head, one.replayed.head);
    assert_eq!(slow.log.base(), 4);
}

#[tokio::test]
async fn what_is_in_the_log_decides_not_the_answer_of_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let mut one = Writer::start(directory.path(), "one").await;
    one.make("a").await;
    // The store did it, and says that it failed.
    one.store.faults().fail_after_next_append();
    one.make("b").await;
    assert_eq!(one.replayed.head.number, 2);
    // A repeated call finds what the first one has written.
    let drafts = one.drafts(&["c", "d"]);
    one.store.append(3, vec![drafts[0].document.clone()]).await.unwrap();
    let appended = one.append(drafts).await;
    assert!(appended.kept == 2 && appended.unconfirmed.is_none());
    assert_eq!(one.replayed.head.number, 4);
    let mut two = Writer::start(directory.path(), "two").await;
    assert_eq!(two.read_on().await, ["a", "b", "c", "d"]);
}

#[tokio::test]
async fn of_releases_that_are_appended_together_those_before_another_servers_are_made() {
    let directory = tempfile::tempdir().unwrap();
    let mut one = Writer::start(directory.path(), "one").await;
    one.make("a").await;
    let mut two = Writer::start(directory.path(), "two").await;
    let mut drafts = one.drafts(&["b", "c", "d"]);
    // Another server is first with the number of the second one.
    let first = drafts.remove(0);
    one.store.append(2, vec![first.document.clone()]).await.unwrap();
    assert_eq!(two.read_on().await, ["a", "b"]);
    two.make("theirs").await;
    drafts.insert(0, first);
    let appended = one.append(drafts).await;
    assert!(appended.kept == 1 && matches!(appended.rest, Rest::Again));
    assert_eq!(one.read_on().await, ["a", "b", "theirs"]);
    assert_eq!(one.replayed.head, two.replayed.head);
}

#[tokio::test]
async fn some_releases_in_the_place_of_removed_ones_are_not_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let (_one, mut slow) = with_a_slow_one(directory.path(), &["b", "c", "d"]).await;
    assert_eq!(slow.append_in_vain(&["lost", "too"]).await, 2);
    assert_eq!(slow.read_on().await, ["a", "b", "c", "d"]);
}
