//! Tests with changes that wait for the lock together, and with a store that fails at an append:
//! the release is in the log, but may not stay there, or cannot be written.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gristmill_core::{ClientError, Digest, ErrorCode, KeyHash, Name};
use gristmill_state::{
    Change, ChangeOptions, Role, Serving, StateError, TenantSpec, TokenScope, TokenSpec, TokenUse,
};
use gristmill_store::Store;

use crate::testing::{Machine, digest, name};
use crate::{Control, ControlError, NewRelease, Published};

async fn open(directory: &Path) -> (Arc<Store>, Arc<Control>) {
    let store = Arc::new(Store::open_local(&directory.join("store")).unwrap());
    let parts = Machine::of(directory).parts(store.clone());
    (store, Arc::new(Control::open(parts).await.unwrap()))
}

fn acme() -> Name {
    "acme".parse().unwrap()
}

fn put(tenant: &str) -> Vec<Change> {
    vec![Change::PutTenant { tenant: tenant.parse().unwrap(), spec: TenantSpec::default() }]
}

async fn release(control: &Control, changes: Vec<Change>) -> Result<Published, ControlError> {
    release_by(control, changes, ChangeOptions::default()).await
}

async fn release_by(
    control: &Control,
    changes: Vec<Change>,
    options: ChangeOptions,
) -> Result<Published, ControlError> {
    let changes = changes.into_iter().map(Into::into).collect();
    control.release(NewRelease { changes, ..NewRelease::default() }, options).await
}

#[track_caller]
fn assert_unconfirmed(error: &ControlError, release: u64) {
    let is_it = |number| number == release;
    assert!(matches!(error, ControlError::Unconfirmed { number, .. } if is_it(*number)), "{error}");
    assert_eq!(error.code(), ErrorCode::Internal);
    assert!(!error.to_string().contains('/'), "{error}");
}

#[tokio::test]
async fn a_release_whose_append_failed_serves_where_the_log_has_it_and_is_no_success() {
    let directory = tempfile::tempdir().unwrap();
    let (store, control) = open(directory.path()).await;
    store.faults().fail_after_next_append();
    assert_unconfirmed(&release(&control, put("acme")).await.unwrap_err(), 1);
    assert_eq!(control.cell().load().release, 1);
    assert!(control.cell().load().tenants.contains_key(&acme()));
    assert_eq!(store.log_end().await.unwrap(), None, "nobody knows that it stays");
    // The same change succeeds only when its release is known to be on stable storage.
    let again = release(&control, put("acme")).await.unwrap();
    assert_eq!(again.release, 1);
    assert!(store.log_end().await.unwrap().is_some());

    store.faults().fail_after_next_append();
    let other = vec![Change::DeleteTenant { tenant: acme() }];
    assert_unconfirmed(&release(&control, other).await.unwrap_err(), 2);
    // The next release in the log confirms it.
    assert_eq!(release(&control, put("acme")).await.unwrap().release, 3);
    drop(control);
    let (_, control) = open(directory.path()).await;
    assert_eq!(control.cell().load().release, 3);
}

/// A plugin's file.
fn guest() -> Bytes {
    let components = std::env::var("GRISTMILL_TEST_COMPONENTS");
    let components = components
        .unwrap_or_else(|_| format!("{}/../../target/components", env!("CARGO_MANIFEST_DIR")));
    std::fs::read(format!("{components}/bench-guest.wasm")).unwrap().into()
}

#[tokio::test]
async fn the_file_of_an_upload_whose_append_failed_stays_where_the_log_names_it() {
    let plugin = guest();
    let directory = tempfile::tempdir().unwrap();
    let (store, control) = open(directory.path()).await;
    release(&control, put("acme")).await.unwrap();
    store.faults().fail_after_next_append();
    let name: Name = "guest".parse().unwrap();
    let incoming = control.receive().await.unwrap().write(plugin.clone()).await.unwrap();
    let file = incoming.finish().await.unwrap();
    let error = control
        .put_plugin(&acme(), &name, (file, None), ChangeOptions::default())
        .await
        .unwrap_err();
    assert_unconfirmed(&error, 2);
    assert!(store.blob(Digest::of(&plugin)).await.is_ok(), "the log names it");
    drop(control);
    let (_, control) = open(directory.path()).await;
    let snapshot = control.cell().load();
    assert!(snapshot.tenants[&acme()].plugins[&name].newest.is_ok());
}

#[tokio::test]
async fn a_change_of_one_tenant_leaves_the_others_as_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let (_, control) = open(directory.path()).await;
    release(&control, [put("acme"), put("other")].concat()).await.unwrap();
    let (other, guest_name): (Name, Name) = ("other".parse().unwrap(), "guest".parse().unwrap());
    for tenant in [acme(), other.clone()] {
        let incoming = control.receive().await.unwrap().write(guest()).await.unwrap();
        let file = incoming.finish().await.unwrap();
        control
            .put_plugin(&tenant, &guest_name, (file, None), ChangeOptions::default())
            .await
            .unwrap();
    }
    let before = control.serving();
    control
        .delete(
            Change::DeletePlugin { tenant: acme(), plugin: guest_name },
            false,
            ChangeOptions::default(),
        )
        .await
        .unwrap();
    let after = control.serving();
    let tenant = |serving: &Serving, name: &Name| serving.snapshot.tenants[name].clone();
    assert!(Arc::ptr_eq(&tenant(&before, &other), &tenant(&after, &other)));
    assert!(!Arc::ptr_eq(&tenant(&before, &acme()), &tenant(&after, &acme())));
    assert_eq!((after.snapshot.release, after.desired.tenants[&acme()].plugins.len()), (4, 0));
}

/// Ask for these releases while another change holds the lock. They come in this order.
async fn together(
    control: &Arc<Control>,
    releases: impl IntoIterator<Item = Vec<Change>>,
) -> Vec<Result<Published, ControlError>> {
    let by_anyone = |changes| (changes, ChangeOptions::default());
    together_by(control, releases.into_iter().map(by_anyone)).await
}

/// As [`together`], each with its own options.
async fn together_by(
    control: &Arc<Control>,
    releases: impl IntoIterator<Item = (Vec<Change>, ChangeOptions)>,
) -> Vec<Result<Published, ControlError>> {
    let lock = control.releases.replayed.lock().await;
    let mut making = Vec::new();
    for (waiting, (changes, options)) in releases.into_iter().enumerate() {
        let releasing = control.clone();
        making.push(tokio::spawn(async move { release_by(&releasing, changes, options).await }));
        let arrived = async {
            while control.releases.queue.len() == waiting {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), arrived).await.unwrap();
    }
    drop(lock);
    let mut made = Vec::new();
    for one in making {
        made.push(one.await.unwrap());
    }
    made
}

#[tokio::test]
async fn changes_that_arrive_together_are_appended_and_published_together() {
    let directory = tempfile::tempdir().unwrap();
    let (store, control) = open(directory.path()).await;
    // One call appends them all: so all of them are unconfirmed.
    store.faults().fail_after_next_append();
    let changes = || ["a", "b", "c"].map(put);
    for (made, release) in together(&control, changes()).await.into_iter().zip(1..) {
        assert_unconfirmed(&made.unwrap_err(), release);
    }
    assert_eq!(control.cell().load().release, 3);
    assert_eq!(control.cell().load().tenants.size(), 3);
    assert_eq!(control.serving().touched.len(), 3);
    // They are there, each in a release of its own.
    for made in together(&control, changes()).await {
        assert_eq!(made.unwrap().release, 3);
    }
    for (number, tenant) in (1..).zip(["a", "b", "c"]) {
        let document = store.document(number).await.unwrap().unwrap();
        let text = String::from_utf8(document.to_vec()).unwrap();
        assert!(text.contains(&format!("\"tenant\": \"{tenant}\"")), "{text}");
    }
    drop(control);
    let (_, control) = open(directory.path()).await;
    assert_eq!(control.cell().load().tenants.size(), 3);
}

#[tokio::test]
async fn each_of_the_changes_that_arrive_together_is_decided_by_the_state_before_it() {
    let directory = tempfile::tempdir().unwrap();
    let (store, control) = open(directory.path()).await;
    let delete = |tenant: &str| vec![Change::DeleteTenant { tenant: tenant.parse().unwrap() }];
    let changes = [delete("a"), put("a"), put("a"), delete("a"), delete("a"), put("b")];
    let made = together(&control, changes).await;
    let releases: Vec<_> = made.iter().map(|made| made.as_ref().map(|made| made.release)).collect();
    assert!(matches!(releases[0], Err(ControlError::At { index: 0, .. })), "{:?}", releases[0]);
    assert_eq!(releases[1].as_ref().unwrap(), &1);
    assert_eq!(releases[2].as_ref().unwrap(), &1, "it is there already");
    assert_eq!(releases[3].as_ref().unwrap(), &2);
    assert!(matches!(releases[4], Err(ControlError::At { .. })), "{:?}", releases[4]);
    assert_eq!(releases[5].as_ref().unwrap(), &3);
    assert_eq!(store.log().await.unwrap().numbers, [1, 2, 3]);
    let snapshot = control.cell().load();
    assert_eq!((snapshot.release, snapshot.tenants.size()), (3, 1));
}

#[tokio::test]
async fn a_token_that_a_change_deletes_makes_none_of_those_that_arrive_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let (_, control) = open(directory.path()).await;
    let token = name("ci");
    let hash = KeyHash::Plain(digest(1));
    let spec = TokenSpec { role: Role::Admin, tenants: [].into(), expires_at_ms: None, hash };
    let token_scope = TokenScope::of(&token, &spec);
    let created = vec![Change::PutToken { token: token.clone(), spec }];
    let version = release(&control, created).await.unwrap().release;
    let options = || ChangeOptions {
        token_scope: token_scope.clone(),
        token: Some(TokenUse { name: token.clone(), version }),
        ..ChangeOptions::default()
    };
    let deleted = vec![Change::DeleteToken { token: token.clone() }];
    let changes =
        [(put("a"), options()), (deleted, ChangeOptions::default()), (put("b"), options())];
    let made = together_by(&control, changes).await;
    assert_eq!(made[0].as_ref().unwrap().release, 2);
    assert_eq!(made[1].as_ref().unwrap().release, 3);
    let error = made[2].as_ref().unwrap_err();
    assert!(matches!(error, ControlError::State(StateError::TokenChanged)), "{error}");
    assert_eq!(control.cell().load().tenants.size(), 1);
}

#[tokio::test]
async fn more_changes_than_are_made_together_are_all_made() {
    let directory = tempfile::tempdir().unwrap();
    let (_, control) = open(directory.path()).await;
    let names: Vec<_> = (0..100).map(|index| format!("t{index}")).collect();
    let made = together(&control, names.iter().map(|name| put(name))).await;
    let releases: Vec<_> = made.into_iter().map(|made| made.unwrap().release).collect();
    assert_eq!(releases, (1..=100).collect::<Vec<_>>());
    assert_eq!(control.cell().load().tenants.size(), 100);
}

#[tokio::test]
async fn a_change_that_is_made_already_succeeds_only_when_its_release_is_confirmed() {
    let directory = tempfile::tempdir().unwrap();
    let (store, control) = open(directory.path()).await;
    store.faults().fail_after_next_append();
    let made = together(&control, [put("a"), put("a")]).await;
    assert_unconfirmed(made[0].as_ref().unwrap_err(), 1);
    assert_eq!(made[1].as_ref().unwrap().release, 1);
    assert!(store.log_end().await.unwrap().is_some());
}

#[tokio::test]
async fn a_document_that_cannot_be_written_fails_its_own_change_only() {
    let directory = tempfile::tempdir().unwrap();
    let (store, control) = open(directory.path()).await;
    release(&control, put("a")).await.unwrap();
    store.faults().refuse_document(3);
    let made = together(&control, [put("b"), put("c")]).await;
    assert_eq!(made[0].as_ref().unwrap().release, 2);
    let error = made[1].as_ref().unwrap_err();
    assert!(matches!(error, ControlError::Store(_)), "{error}");
    assert_eq!(control.cell().load().release, 2);
    store.faults().refuse_document(0);
    assert_eq!(release(&control, put("c")).await.unwrap().release, 3);
}

#[tokio::test]
async fn documents_of_releases_have_the_permissions_of_ordinary_files() {
    let directory = tempfile::tempdir().unwrap();
    let (_, control) = open(directory.path()).await;
    release(&control, put("a")).await.unwrap();
    let ordinary = directory.path().join("ordinary");
    std::fs::write(&ordinary, "").unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode();
    let document = directory.path().join("store/log/00000000000000000001.json");
    assert_eq!(mode(&document), mode(&ordinary));
}
