//! `gristmill plugin`: from an empty folder to a running pipeline.

mod access;
pub(crate) mod admin;
pub(crate) mod build;
mod build_folder;
pub(crate) mod check;
mod children;
mod component_file;
mod language;
pub(crate) mod list;
pub(crate) mod logs;
pub(crate) mod new;
pub(crate) mod output;
pub(crate) mod push;
mod report;
mod sdk;
pub(crate) mod test;
mod tool;
mod trust;
mod within;
