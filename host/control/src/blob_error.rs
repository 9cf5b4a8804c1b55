//! Why an uploaded file, or a part of it, is not taken.

use gristmill_core::Digest;

/// Why a file or a part of it is not taken.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// Its content has another digest than its name says.
    #[error("the file has the digest {actual}, not {named}: nothing of it is kept")]
    OtherDigest {
        /// The digest in the path.
        named: Digest,
        /// That of the bytes.
        actual: Digest,
    },
    /// A part begins elsewhere than the last one ended.
    #[error("Upload-Offset is {offset}, but {bytes} bytes have arrived: go on from there")]
    Offset {
        /// Where it begins.
        offset: u64,
        /// Where it must begin.
        bytes: u64,
    },
    /// Another part of the same file is arriving.
    #[error("another part of this file is arriving: wait for its end")]
    Busy,
    /// The files that wait have too many bytes together.
    #[error(
        "the uploaded files that wait for a release would have over {max} bytes \
         (waiting_bytes_max): make the release, delete some of them, or wait for up to an hour"
    )]
    TooManyBytes {
        /// Maximum bytes that may wait.
        max: usize,
    },
    /// The files of the token have too many bytes together.
    #[error(
        "the files that were uploaded with this token and wait for a release would have over {max} \
         bytes, its share of {of} (waiting_bytes_max): make the release, delete some of them, or \
         wait for up to an hour"
    )]
    TooManyOfToken {
        /// Maximum bytes that may wait.
        max: usize,
        /// The bytes of which this is a share.
        of: usize,
    },
    /// The files of all deploy tokens have too many bytes together.
    #[error(
        "the files that were uploaded with deploy tokens and wait for a release would have over \
         {max} bytes, their share of {of} (waiting_bytes_max): try again when releases are made, in \
         an hour at the latest"
    )]
    TooManyOfTokens {
        /// Maximum bytes that may wait.
        max: usize,
        /// The bytes of which this is a share.
        of: usize,
    },
    /// Too many files are waiting.
    #[error(
        "{0} files wait for {1} already: finish or delete one of them, or wait for up to an hour"
    )]
    TooMany(usize, &'static str),
}
