use std::path::Path;
use std::sync::Arc;

use gristmill_core::{ClientError, ErrorCode};
use gristmill_store::{Appended, Store};

use crate::change_request::ChangeRequest;
use crate::error::ControlError;
use crate::load::progress::Progress;
use crate::release::change::{Change, ReleaseNote};
use crate::release::tenant::TenantSpec;
use crate::release_log::{Append, ReleaseLog, Replayed};
use crate::terms::Terms;
use crate::testing::name;
use crate::uploads::Uploads;

/// A server that shares the log in `directory` and keeps as few releases as possible.
struct Writer {
    log: ReleaseLog,
    replayed: Replayed,
    store: Arc<Store>,
}

impl Writer {
    async fn start(directory: &Path, own: &str) -> Self {
        let url = format!("file://{}", directory.join("shared").display()).parse().unwrap();
        let store = Store::open_shared(&url, &directory.join(own), 1 << 20).unwrap();
        let (store, progress) = (Arc::new(store), Progress::default());
        let uploads = Arc::new(Uploads::new(store.clone()));
        let log = ReleaseLog::new(store.clone(), uploads, progress, (1, None));
        let replayed = log.replay().await.unwrap();
        Self { log, replayed, store }
    }

    /// Append a release that brings a tenant, without reading on before.
    async fn append(&mut self, tenant: &str) -> Result<Append, ControlError> {
        let change = Change::PutTenant { tenant: name(tenant), spec: TenantSpec::default() };
        let request = ChangeRequest::one(change, Terms::default());
        let plan = request.plan(&self.replayed.desired, self.replayed.head.number + 1).unwrap();
        self.log.append(&mut self.replayed, ReleaseNote::default(), plan).await
    }

    async fn make(&mut self, tenant: &str) {
        assert!(matches!(self.append(tenant).await, Ok(Append::Kept)), "{tenant}");
    }

    async fn read_on(&mut self) -> Vec<String> {
        self.log.read_on(&mut self.replayed).await.unwrap();
        self.replayed.desired.tenants.keys().map(ToString::to_string).collect()
    }
}

#[tokio::test]
async fn of_two_writers_of_a_number_one_reads_on_and_both_releases_stay() {
    let directory = tempfile::tempdir().unwrap();
    let mut one = Writer::start(directory.path(), "one").await;
    let mut two = Writer::start(directory.path(), "two").await;
    one.make("a").await;
    assert!(matches!(two.append("b").await, Ok(Append::Lost)));
    assert_eq!(two.read_on().await, ["a"]);
    two.make("b").await;
    assert_eq!(one.read_on().await, ["a", "b"]);
    assert_eq!(one.replayed.head, two.replayed.head);
}

#[tokio::test]
async fn a_release_in_the_place_of_one_that_was_removed_is_not_made() {
    let directory = tempfile::tempdir().unwrap();
    let mut one = Writer::start(directory.path(), "one").await;
    one.make("a").await;
    let mut slow = Writer::start(directory.path(), "slow").await;
    one.make("b").await;
    one.make("c").await;
    one.log.collect(3).await;
    assert_eq!(one.store.log().await.unwrap().numbers, [3], "the checkpoint stands for 1 and 2");
    // Release 3 does not follow it.
    assert!(matches!(slow.append("lost").await, Ok(Append::Lost)));
    assert_eq!(slow.read_on().await, ["a", "b", "c"]);
    slow.make("d").await;
    assert_eq!(one.read_on().await, ["a", "b", "c", "d"]);
    let fresh = Writer::start(directory.path(), "fresh").await;
    assert_eq!(fresh.replayed.head, one.replayed.head);
}

#[tokio::test]
async fn a_release_far_behind_the_log_is_not_acknowledged_and_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let mut one = Writer::start(directory.path(), "one").await;
    one.make("a").await;
    let mut slow = Writer::start(directory.path(), "slow").await;
    for tenant in ["b", "c", "d", "e"] {
        one.make(tenant).await;
    }
    one.log.collect(5).await;
    assert_eq!(one.store.log().await.unwrap().numbers, [5]);
    let error = slow.append("lost").await.err().unwrap();
    assert!(matches!(error, ControlError::Unconfirmed { number: 2, .. }), "{error:?}");
    assert_eq!(error.code(), ErrorCode::Unavailable);
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
    let document = one.store.document(2).await.unwrap().unwrap();
    assert_eq!(one.store.append(2, document.clone()).await.unwrap(), Appended::Lost);
    let outcome = one.log.among_others(Ok(Appended::Lost), &one.replayed.head, &document).await;
    assert_eq!(outcome.unwrap().unwrap(), Appended::Yes);
}
