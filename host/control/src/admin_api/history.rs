//! Releases of many changes, the releases of the past, and going back to them.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use futures_util::FutureExt;
use gristmill_core::{Digest, Name};
use gristmill_state::{
    AskedChange, Change, ChangeOptions, Desired, Release, Scope, Serving, StateError, TenantFile,
    TokenScope,
};
use gristmill_store::StoreError;
use serde_json::Value;

use crate::admin_api::Control;
use crate::change_request::{AskedChanges, ChangeRequest};
use crate::error::ControlError;
use crate::history::{ReleaseSummary, release_document, release_summary, unreadable_summary};
use crate::releases::step::Published;
use crate::signatures::{FileBytes, find_signers};
use crate::uploads::Upload;

/// Maximum changes of a release that its summary names.
const SUMMARY_CHANGES: usize = 10;

/// Maximum releases that are read for a page of those that a few tenants are part of. The next
/// page goes on from there.
const LOOKED_AT: usize = 200;

/// The assets that a release brings to one tenant.
struct NewAssets {
    /// Their files, and those of the assets that the tenant has.
    files: HashSet<Digest>,
    /// The bytes of those that it does not have.
    bytes: u64,
    /// The bytes of all that it has.
    has: u64,
}

impl NewAssets {
    /// None yet.
    fn of(tenant: &Name, serving: &Serving) -> Self {
        let owner = serving.desired.tenants.get(tenant);
        let files = owner.into_iter().flat_map(|owner| owner.assets.values());
        let files = files.flat_map(TenantFile::versions).map(|(_, file)| file).collect();
        let has = serving.snapshot.tenants.get(tenant).map_or(0, |owner| owner.asset_bytes());
        Self { files, bytes: 0, has }
    }
}

/// A release of many changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewRelease {
    /// They are made in this order.
    pub changes: Vec<AskedChange>,
    /// The release that must serve when this one is made.
    pub expected_release: Option<u64>,
    /// Whether the users of a deleted thing are deleted with it.
    pub cascade: bool,
    /// Whether a model may be replaced by one that does not fit its users.
    pub force: bool,
    /// Whether the release is planned, loaded and checked, but not made.
    pub is_dry_run: bool,
    /// Whether a dry run answers what samples got, in place of comparing it.
    pub shows_answers: bool,
}

/// Going back to the state after an earlier release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rollback {
    /// The number of that release.
    pub to: u64,
    /// What goes back.
    pub scope: Scope,
    /// As in [`NewRelease`].
    pub expected_release: Option<u64>,
    /// As in [`NewRelease`].
    pub force: bool,
    /// As in [`NewRelease`].
    pub is_dry_run: bool,
}

impl Control {
    /// Make a release of many changes: all of them or none. The answer has the differences.
    ///
    /// # Errors
    /// [`ControlError::Moved`], [`ControlError::At`] names the change that is refused,
    /// [`ControlError::Refused`] what would not be served; or the log cannot be written.
    pub async fn release(
        &self,
        new: NewRelease,
        options: ChangeOptions,
    ) -> Result<Published, ControlError> {
        let NewRelease { changes, expected_release, cascade, force, is_dry_run, shows_answers } =
            new;
        let shows_answers = shows_answers && is_dry_run;
        let token_scope = options.token_scope.clone();
        let asked = AskedChanges::List(changes);
        // Before files are looked for: what is beyond the scope is refused as such.
        asked.check(&token_scope)?;
        let uploads =
            self.uploads_of(&asked, &token_scope).boxed().await.map_err(ControlError::logged)?;
        let asked = self.with_signers(asked, &token_scope).boxed().await?;
        let files: Vec<_> = uploads.iter().map(Upload::digest).collect();
        let request = ChangeRequest::of(asked, options);
        let request = ChangeRequest { expected_release, _uploads: uploads, ..request };
        let request = ChangeRequest { cascade, force, is_dry_run, shows_answers, ..request };
        let published = self.run(request).await?;
        if !is_dry_run {
            self.blobs.settle(token_scope.token(), &files);
        }
        Ok(published)
    }

    /// The changes, with what is known of the signatures of plugins. Their files are there.
    async fn with_signers(
        &self,
        mut asked: AskedChanges,
        token_scope: &TokenScope,
    ) -> Result<AskedChanges, ControlError> {
        if let AskedChanges::List(changes) = &mut asked {
            let _turn = self.releases.turns.turn(token_scope).await;
            let desired = self.desired();
            let found = find_signers(&desired, changes, FileBytes::Stored(&self.store));
            let at = |(index, source): (usize, ControlError)| ControlError::At {
                index,
                source: source.into(),
            };
            found.await.map_err(at)?;
        }
        Ok(asked)
    }

    /// The files that the changes name, which then stay. An author whose scope is a few tenants can
    /// name only files that the same token has uploaded, or that plugins or assets of these tenants
    /// have. New assets that are too large, alone or together, are refused before one is read.
    async fn uploads_of(
        &self,
        asked: &AskedChanges,
        token_scope: &TokenScope,
    ) -> Result<Vec<Upload>, ControlError> {
        let mut uploads = Vec::new();
        let AskedChanges::List(changes) = asked else { return Ok(uploads) };
        let (serving, mut new_assets) = (self.serving(), BTreeMap::new());
        for change in changes {
            if let AskedChange::Known(Change::PutAsset { tenant, .. }) = change {
                new_assets.entry(tenant).or_insert_with(|| NewAssets::of(tenant, &serving));
            }
        }
        let desired = serving.desired.clone();
        drop(serving);
        for (index, change) in changes.iter().enumerate() {
            let Some(digest) = change.blob() else { continue };
            if !token_scope.has_file(&desired, digest)
                && !self.blobs.has(token_scope.token(), digest)
            {
                let source = ControlError::NoFile(digest);
                return Err(ControlError::At { index, source: source.into() });
            }
            let upload = self.uploads.begin(digest).await;
            let at = |source: ControlError| ControlError::At { index, source: source.into() };
            let bytes = self.store.blob_bytes(digest).await.map_err(|error| match error {
                StoreError::Missing(digest) => at(ControlError::NoFile(digest)),
                error => at(error.into()),
            })?;
            if let AskedChange::Known(Change::PutAsset { tenant, asset, .. }) = change
                && let Some(new) = new_assets.get_mut(tenant)
                && new.files.insert(digest)
            {
                let limits = self.releases.asset_limits;
                limits.check(asset, bytes).map_err(at)?;
                new.bytes = new.bytes.saturating_add(bytes);
                limits.check_tenant(tenant, new.has, new.bytes).map_err(at)?;
            }
            uploads.push(upload);
        }
        Ok(uploads)
    }

    /// Bring back the state after an earlier release, as a new one. API keys stay as they are.
    ///
    /// # Errors
    /// [`StateError::NotFound`] for the release, [`StateError::NotThen`] for what it did not
    /// have; or as for [`Self::release`].
    pub async fn roll_back(
        &self,
        back: Rollback,
        options: ChangeOptions,
    ) -> Result<Published, ControlError> {
        let Rollback { to: number, scope, expected_release, force, is_dry_run } = back;
        options.token_scope.check_scope(&scope)?;
        // The past does not change, so it is read before the lock is taken.
        let then = self
            .releases
            .log
            .state_to_restore(number)
            .boxed()
            .await
            .map_err(ControlError::logged)?;
        let mut uploads = Vec::new();
        for digest in then.files() {
            uploads.push(self.uploads.begin(digest).boxed().await);
        }
        // Old releases may have been removed before their files were held.
        self.releases.log.check_kept(number)?;
        let asked = AskedChanges::Restore { then: then.into(), scope, number };
        let request = ChangeRequest { _uploads: uploads, ..ChangeRequest::of(asked, options) };
        self.run(ChangeRequest { expected_release, force, is_dry_run, ..request }).await
    }

    /// The document of a release, as far as it can be seen from `token_scope`. With `power`, it has
    /// what the release let its things do that they could not do before; for this the log is read
    /// up to the release.
    ///
    /// # Errors
    /// [`StateError::NotFound`], it cannot be read, or it is damaged.
    pub async fn past_release(
        &self,
        number: u64,
        power: bool,
        token_scope: &TokenScope,
    ) -> Result<Value, ControlError> {
        let release = self.part_of_release(number, token_scope).boxed().await?;
        let release = release.ok_or_else(|| ControlError::no_release(number))?;
        let mut document = release_document(&release)?;
        if power {
            // One at a time, because it reads so much. Of a deploy token, only one waits for that.
            let _turn = self.releases.turns.turn(token_scope).boxed().await;
            let _alone = self.releases.reading_powers.lock().await;
            let [before, after] =
                self.releases.log.around(number).boxed().await.map_err(ControlError::logged)?;
            // To a deploy token, a tenant in whose place the release made one is another tenant.
            let since = |state: &Desired, tenant: &Name| Some(state.tenants.get(tenant)?.since);
            let is_same = |change: &&Change| match change.tenant() {
                Some(tenant) => {
                    since(&before, tenant).is_none_or(|made| since(&after, tenant) == Some(made))
                }
                None => true,
            };
            let changes = release.changes.iter();
            let seen = changes.filter(|change| token_scope.is_server() || is_same(change));
            let subjects: BTreeSet<_> = seen.map(Change::target).collect();
            let power = self.releases.powers(&before, &after, subjects.iter());
            document["power"] = serde_json::to_value(power)?;
        }
        Ok(document)
    }

    /// Short documents of the releases before `before`, the last ones first, as far as they can be
    /// seen from `token_scope`; at most `limit`. Also returns the number before which the next page
    /// begins, if there are earlier ones. The list ends where releases were removed meanwhile. One
    /// that is damaged is in the list of those who see the whole server.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn past_releases(
        &self,
        before: Option<u64>,
        limit: usize,
        token_scope: &TokenScope,
    ) -> Result<(Vec<ReleaseSummary>, Option<u64>), ControlError> {
        let end = self.serving().snapshot.release.saturating_add(1);
        let end = before.map_or(end, |before| before.min(end));
        let mut documents = Vec::new();
        let first = self.releases.log.base() + 1;
        for number in (first..end).rev().take(LOOKED_AT) {
            match self.part_of_release(number, token_scope).boxed().await {
                Ok(release) => {
                    let summary = release.map(|release| release_summary(&release, SUMMARY_CHANGES));
                    documents.extend(summary);
                }
                Err(ControlError::NotKept { .. }) => return Ok((documents, None)),
                Err(
                    error @ (ControlError::Log { .. }
                    | ControlError::State(StateError::NotFound { .. })),
                ) => {
                    let summary =
                        token_scope.is_server().then(|| unreadable_summary(number, &error));
                    documents.extend(summary);
                }
                Err(error) => return Err(error),
            }
            let is_full = documents.len() == limit;
            if is_full || end - number == LOOKED_AT as u64 {
                return Ok((documents, Some(number).filter(|number| *number > first)));
            }
        }
        Ok((documents, None))
    }

    async fn part_of_release(
        &self,
        number: u64,
        token_scope: &TokenScope,
    ) -> Result<Option<Release>, ControlError> {
        let release = self.releases.log.release(number).await.map_err(ControlError::logged)?;
        Ok(token_scope.part_of(release, &self.desired()))
    }
}
