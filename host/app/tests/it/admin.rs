//! The admin plane: its documents, uploads, keys, tokens and roles, and what it refuses.

mod api_document;
mod api_keys;
mod bad_changes;
mod bad_documents;
mod bad_uploads;
mod blobs;
mod calls;
mod console;
mod deletions;
mod deploy_tokens;
mod edits;
mod events;
mod fault_pointers;
mod read_back;
mod roles;
mod root_token;
mod schemathesis;
mod signed_plugins;
mod slowest_requests;
mod tokens;
mod uploads;
