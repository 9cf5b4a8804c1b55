//! Plugins: the contract, the sandbox, and guests that misbehave.

mod arrays;
mod bad_guests;
mod bad_languages;
mod bad_plugins;
mod compiled_code;
mod compiling;
mod contract;
mod costly_pictures;
mod costly_uploads;
mod fuzz_inputs;
mod handlers;
mod init;
mod instance_reuse;
mod javascript;
mod languages;
mod leaks;
mod lines;
mod long_calls;
mod neighbours;
mod photos;
mod pictures;
mod sources;
mod stock_tools;
mod straight_line;
mod wasi;
mod wasip2;
