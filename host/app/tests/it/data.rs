//! The data plane: requests through `/v1`, their connections and their limits.

mod answers;
mod bad_callers;
mod bad_requests;
mod browsers;
mod connections;
mod http2_floods;
mod limits;
mod memory;
mod quotas;
mod raw_requests;
mod serving;
mod shutdown;
mod try_page;
