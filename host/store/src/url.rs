//! Where a shared store is: a URL, and the object store that it leads to.
//!
//! Credentials come from the environment, as `object_store` reads them (`AWS_*`, `GOOGLE_*`,
//! `AZURE_*`). Invariant: a URL has no secret in it, so it may be shown.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::local::LocalFileSystem;
use object_store::prefix::PrefixStore;
use object_store::{BackoffConfig, ObjectStore, ObjectStoreScheme, RetryConfig};
use url::Url;

use crate::StoreError;

/// What a URL must be, for messages.
const EXPECTED: &str = "must be the URL of a bucket and a folder in it: s3://, gs:// or az://, or file:/// for a folder";

/// The URL of a shared store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreUrl(Url);

/// Why a text is not the URL of a store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreUrlError {
    /// It is none.
    #[error("{EXPECTED}")]
    Unknown,
    /// It may have a secret. The text of the error does not repeat it.
    #[error(
        "must have no password, no query and no fragment: credentials come from the environment"
    )]
    HasSecret,
}

impl FromStr for StoreUrl {
    type Err = StoreUrlError;

    fn from_str(text: &str) -> Result<Self, StoreUrlError> {
        let url = Url::parse(text).map_err(|_| StoreUrlError::Unknown)?;
        if url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
            return Err(StoreUrlError::HasSecret);
        }
        // A folder of the root would be as large as the disk.
        match ObjectStoreScheme::parse(&url) {
            Ok((ObjectStoreScheme::Local, folder)) if !folder.as_ref().is_empty() => Ok(Self(url)),
            Ok((
                ObjectStoreScheme::AmazonS3
                | ObjectStoreScheme::GoogleCloudStorage
                | ObjectStoreScheme::MicrosoftAzure,
                _,
            )) => Ok(Self(url)),
            _ => Err(StoreUrlError::Unknown),
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StoreUrl {
    /// The folder, if it is one of this machine.
    pub fn folder(&self) -> Option<PathBuf> {
        let Self(url) = self;
        (url.scheme() == "file").then(|| folder_of(url))
    }

    /// The objects in its folder.
    ///
    /// # Errors
    /// [`StoreError::Setup`]
    pub(crate) fn open(&self) -> Result<Arc<dyn ObjectStore>, StoreError> {
        // The provider of all TLS in this process. It fails if there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let Self(url) = self;
        let (scheme, folder) = ObjectStoreScheme::parse(url).map_err(StoreError::setup)?;
        let objects: Arc<dyn ObjectStore> = match scheme {
            ObjectStoreScheme::Local => return open_folder(url),
            ObjectStoreScheme::GoogleCloudStorage => {
                let builder = GoogleCloudStorageBuilder::from_env().with_retry(retries());
                Arc::new(builder.with_url(url.as_str()).build().map_err(StoreError::setup)?)
            }
            ObjectStoreScheme::MicrosoftAzure => {
                let builder = MicrosoftAzureBuilder::from_env().with_retry(retries());
                Arc::new(builder.with_url(url.as_str()).build().map_err(StoreError::setup)?)
            }
            _ => {
                let builder = AmazonS3Builder::from_env().with_retry(retries());
                Arc::new(builder.with_url(url.as_str()).build().map_err(StoreError::setup)?)
            }
        };
        Ok(Arc::new(PrefixStore::new(objects, folder)))
    }
}

fn folder_of(url: &Url) -> PathBuf {
    url.to_file_path().unwrap_or_else(|()| PathBuf::from(url.path()))
}

fn open_folder(url: &Url) -> Result<Arc<dyn ObjectStore>, StoreError> {
    let folder = folder_of(url);
    std::fs::create_dir_all(&folder).map_err(StoreError::setup)?;
    let objects = LocalFileSystem::new_with_prefix(folder).map_err(StoreError::setup)?;
    Ok(Arc::new(objects.with_fsync(true)))
}

/// A call is tried again for some seconds: a change waits for it, and its client for the change.
fn retries() -> RetryConfig {
    let backoff = BackoffConfig {
        init_backoff: Duration::from_millis(50),
        max_backoff: Duration::from_secs(2),
        base: 2.0,
    };
    RetryConfig { backoff, max_retries: 5, retry_timeout: Duration::from_secs(10) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_store_and_has_no_secret() {
        let read = |text: &str| text.parse::<StoreUrl>().map(|url| url.to_string());
        for url in [
            "s3://bucket/grist/mill",
            "gs://bucket",
            "az://container/folder",
            "abfss://container@account.dfs.core.windows.net/folder",
            "file:///srv/gristmill",
        ] {
            assert_eq!(read(url).as_deref(), Ok(url));
        }
        for unknown in ["/srv", "bucket", "http://host/bucket", "memory:///", "file:///", "s3:"] {
            assert_eq!(read(unknown), Err(StoreUrlError::Unknown), "{unknown}");
        }
        for secret in ["s3://key:secret@bucket/", "s3://bucket/?token=secret", "s3://bucket#secret"]
        {
            assert_eq!(read(secret), Err(StoreUrlError::HasSecret), "{secret}");
        }
    }
}
