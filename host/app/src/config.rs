//! Configuration: each setting is a flag, a `GRISTMILL_*` variable and a key of `gristmill.toml`, in
//! that order of precedence. All faults are reported together, before a port is bound.

use std::ffi::OsString;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgMatches};
use gristmill_core::Name;
use gristmill_telemetry::LogFormat;

/// One setting: its key in the file, from which flag and variable follow, and what it means.
pub(crate) struct Setting {
    pub(crate) key: &'static str,
    pub(crate) default: Option<&'static str>,
    pub(crate) help: &'static str,
}

pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        key: "data_dir",
        default: Some("gristmill-data"),
        help: "Where blobs, the release log and compiled plugins are kept",
    },
    Setting {
        key: "listen",
        default: Some("127.0.0.1:8080"),
        help: "Address of the data plane: /v1, /v2 and health",
    },
    Setting {
        key: "grpc_listen",
        default: Some("127.0.0.1:8082"),
        help: "Address of the Open Inference Protocol over gRPC, without TLS",
    },
    Setting {
        key: "admin_listen",
        default: Some("127.0.0.1:8081"),
        help: "Address of the admin plane: /admin/v1",
    },
    Setting {
        key: "admin_token",
        default: None,
        help: "The admin token, at least 16 characters; where none is given, one is made at the first start and printed once",
    },
    Setting {
        key: "open_tenant",
        default: None,
        help: "The tenant as which calls of /v2 and gRPC act that bring no API key; without it they are refused",
    },
    Setting {
        key: "message_bytes_max",
        default: Some("67108864"),
        help: "The largest request of /v2 and gRPC, also once it is decompressed",
    },
    Setting {
        key: "tenant_bytes_max",
        default: Some("1073741824"),
        help: "Bytes that one tenant's requests and answers may hold at the same time; what is more is refused for now",
    },
    Setting {
        key: "infer_timeout_s",
        default: Some("30"),
        help: "Seconds that a request of /v2 or gRPC may take, where its client does not ask for less",
    },
    Setting {
        key: "onnxruntime_library",
        default: None,
        help: "ONNX Runtime's shared library, 1.23 or newer; otherwise ORT_DYLIB_PATH or <data_dir>/onnxruntime/ is looked at, and without it models run on tract",
    },
    Setting {
        key: "model_proof_timeout_s",
        default: Some("60"),
        help: "Seconds of processor time that a model's first load and run may take, in a process of its own; ten times as long by the clock",
    },
    Setting {
        key: "model_proof_memory_bytes",
        default: Some("2147483648"),
        help: "The most memory that a model's first load and run may take, besides four times its file",
    },
    Setting {
        key: "model_run_memory_bytes",
        default: Some("1073741824"),
        help: "The most memory that the runs of one instance of a model may take on the host, besides its weights; a run that would take more fails",
    },
    Setting {
        key: "concurrent_plugin_calls",
        default: Some("256"),
        help: "Plugin calls running at the same time; further ones wait",
    },
    Setting {
        key: "plugin_memory_bytes",
        default: Some("67108864"),
        help: "The most memory that a plugin call may have",
    },
    Setting {
        key: "plugin_instances",
        default: Some("64"),
        help: "The most core modules that an instance of a plugin may have",
    },
    Setting {
        key: "compile_timeout_s",
        default: Some("60"),
        help: "Seconds of processor time that compiling a plugin may take; ten times as long by the clock",
    },
    Setting {
        key: "compile_memory_bytes",
        default: Some("2147483648"),
        help: "The most memory that compiling a plugin may take",
    },
    Setting {
        key: "compile_concurrency",
        default: Some("1"),
        help: "Plugins that are compiled at the same time; further ones wait",
    },
    Setting {
        key: "upload_bytes_max",
        default: Some("1073741824"),
        help: "The largest model or plugin that can be uploaded",
    },
    Setting {
        key: "connections_max",
        default: None,
        help: "Connections of the data plane and gRPC at the same time; where all are taken, those that have waited longest for a request are closed. Follows from the limit on open files where it is not given",
    },
    Setting {
        key: "connections_per_client_max",
        default: None,
        help: "Connections of one client to the data plane and gRPC, a client being an IPv4 address or an IPv6 network of 64 bits; half of connections_max where it is not given, and at least 16. Behind a proxy all clients have its address: set it to connections_max there",
    },
    Setting {
        key: "upload_timeout_s",
        default: Some("900"),
        help: "Seconds that an upload may take; one of which nothing comes for 30 seconds is given up before",
    },
    Setting {
        key: "header_timeout_s",
        default: Some("30"),
        help: "Seconds for which a connection may wait for a request, and until a request's headers must have arrived",
    },
    Setting {
        key: "write_timeout_s",
        default: Some("30"),
        help: "Seconds for which a client may take next to nothing of what it is sent before its connection is closed",
    },
    Setting {
        key: "shutdown_delay_s",
        default: Some("5"),
        help: "Seconds for which a server that is told to end serves on, while /readyz says that it is not ready",
    },
    Setting {
        key: "drain_timeout_s",
        default: Some("30"),
        help: "Seconds that a shutdown waits for requests under way",
    },
    Setting {
        key: "log",
        default: Some("info,ort=warn"),
        help: "What is logged: error, warn, info, debug, trace, or a filter such as info,gristmill_http=debug",
    },
    Setting { key: "log_format", default: Some("text"), help: "How it is logged: text or json" },
];

/// The configuration, valid.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) data_dir: PathBuf,
    pub(crate) listen: SocketAddr,
    pub(crate) grpc_listen: SocketAddr,
    pub(crate) admin_listen: SocketAddr,
    pub(crate) admin_token: Option<String>,
    pub(crate) open_tenant: Option<Name>,
    pub(crate) message_bytes_max: usize,
    pub(crate) tenant_bytes_max: usize,
    pub(crate) infer_timeout: Duration,
    pub(crate) onnxruntime_library: Option<PathBuf>,
    pub(crate) model_proof_timeout: Duration,
    pub(crate) model_proof_memory_bytes: u64,
    pub(crate) model_run_memory_bytes: usize,
    pub(crate) concurrent_plugin_calls: u32,
    pub(crate) plugin_memory_bytes: usize,
    pub(crate) plugin_instances: u32,
    pub(crate) compile_timeout: Duration,
    pub(crate) compile_memory_bytes: u64,
    pub(crate) compile_concurrency: usize,
    pub(crate) upload_bytes_max: usize,
    pub(crate) connections_max: Option<usize>,
    pub(crate) connections_per_client_max: Option<usize>,
    pub(crate) upload_timeout: Duration,
    pub(crate) header_timeout: Duration,
    pub(crate) write_timeout: Duration,
    pub(crate) shutdown_delay: Duration,
    pub(crate) drain_timeout: Duration,
    pub(crate) log: String,
    pub(crate) log_format: LogFormat,
}

/// The flags of `serve`.
pub(crate) fn args() -> Vec<Arg> {
    args_of(|_| true)
}

/// The flags of commands that work on the data directory.
pub(crate) fn data_dir_args() -> Vec<Arg> {
    args_of(|key| key == "data_dir")
}

fn args_of(wanted: impl Fn(&str) -> bool) -> Vec<Arg> {
    let file = Arg::new("config")
        .long("config")
        .value_name("FILE")
        .env("GRISTMILL_CONFIG")
        .help("Configuration file; gristmill.toml is read where it exists");
    let settings = SETTINGS.iter().filter(|setting| wanted(setting.key));
    let settings = settings.map(|setting| {
        let help = match setting.default {
            Some(default) => format!("{} [default: {default}]", setting.help),
            None => setting.help.to_owned(),
        };
        Arg::new(setting.key)
            .long(leaked(setting.key.replace('_', "-")))
            .value_name("VALUE")
            .env(leaked(format!("GRISTMILL_{}", setting.key.to_uppercase())))
            .hide_env_values(true)
            .help(help)
    });
    std::iter::once(file).chain(settings).collect()
}

/// The variables that begin as a setting's do but are none: misspelt, they would do nothing.
pub(crate) fn unknown_variables(names: impl Iterator<Item = OsString>) -> Vec<String> {
    let known = |name: &str| {
        let setting = SETTINGS.iter().any(|setting| setting.key.to_uppercase() == name);
        // GRISTMILL_ADMIN_URL is the command line's.
        setting || ["CONFIG", "ADMIN_URL"].contains(&name)
    };
    let names = names.filter_map(|name| name.into_string().ok());
    names.filter(|name| name.strip_prefix("GRISTMILL_").is_some_and(|own| !known(own))).collect()
}

/// Names made once a process, as clap wants them.
fn leaked(name: String) -> &'static str {
    name.leak()
}

impl Config {
    /// The configuration, or everything that is wrong with it.
    pub(crate) fn resolve(matches: &ArgMatches) -> Result<Self, Vec<String>> {
        let mut faults = Vec::new();
        let file = read_file(matches, &mut faults);
        let mut reader = Reader { matches, file, faults };
        let config = Self {
            data_dir: reader.value("data_dir"),
            listen: reader.address("listen"),
            grpc_listen: reader.address("grpc_listen"),
            admin_listen: reader.address("admin_listen"),
            admin_token: reader.optional("admin_token"),
            open_tenant: reader.optional("open_tenant"),
            message_bytes_max: reader.within("message_bytes_max", 1 << 10, 2 << 30),
            tenant_bytes_max: reader.within("tenant_bytes_max", 1 << 10, 1 << 40),
            infer_timeout: Duration::from_secs(reader.within("infer_timeout_s", 1, 3600)),
            onnxruntime_library: reader.optional("onnxruntime_library"),
            model_proof_timeout: Duration::from_secs(reader.within(
                "model_proof_timeout_s",
                1,
                86_400,
            )),
            model_proof_memory_bytes: reader.within("model_proof_memory_bytes", 64 << 20, 1 << 40),
            model_run_memory_bytes: reader.within("model_run_memory_bytes", 1 << 20, 1 << 40),
            concurrent_plugin_calls: reader.within("concurrent_plugin_calls", 1, 10_000),
            plugin_memory_bytes: reader.within("plugin_memory_bytes", 1 << 20, 4 << 30),
            plugin_instances: reader.within("plugin_instances", 1, 1000),
            compile_timeout: Duration::from_secs(reader.within("compile_timeout_s", 1, 86_400)),
            compile_memory_bytes: reader.within("compile_memory_bytes", 64 << 20, 1 << 40),
            compile_concurrency: reader.within("compile_concurrency", 1, 64),
            upload_bytes_max: reader.within("upload_bytes_max", 1 << 10, 1 << 40),
            connections_max: reader.optional_within("connections_max", 16, 1 << 24),
            connections_per_client_max: reader.optional_within(
                "connections_per_client_max",
                1,
                1 << 24,
            ),
            upload_timeout: Duration::from_secs(reader.within("upload_timeout_s", 1, 86_400)),
            header_timeout: Duration::from_secs(reader.within("header_timeout_s", 1, 3600)),
            write_timeout: Duration::from_secs(reader.within("write_timeout_s", 1, 3600)),
            shutdown_delay: Duration::from_secs(reader.within("shutdown_delay_s", 0, 3600)),
            drain_timeout: Duration::from_secs(reader.within("drain_timeout_s", 0, 3600)),
            log: reader.value("log"),
            log_format: reader.log_format(),
        };
        let mut faults = reader.faults;
        if let Err(error) = gristmill_telemetry::check_filter(&config.log) {
            faults.push(format!("log is {:?}: {error}", config.log));
        }
        if config.admin_token.as_ref().is_some_and(|token| token.len() < 16) {
            faults.push("admin_token is shorter than 16 characters".into());
        }
        let sendable = |token: &String| {
            token.trim() == token && token.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        };
        if !config.admin_token.as_ref().is_none_or(sendable) {
            faults.push(
                "admin_token cannot be sent in a header: it must be ASCII, without control \
                 characters and without blanks at its ends"
                    .into(),
            );
        }
        let (request, tenant) = (config.message_bytes_max, config.tenant_bytes_max);
        if tenant < request {
            faults.push(format!(
                "tenant_bytes_max is {tenant}: must be at least message_bytes_max, {request}"
            ));
        }
        let addresses = [
            ("listen", config.listen),
            ("grpc_listen", config.grpc_listen),
            ("admin_listen", config.admin_listen),
        ];
        for (index, (name, address)) in addresses.iter().enumerate() {
            let same = |other: &&(&str, SocketAddr)| other.1 == *address && address.port() != 0;
            if let Some((other, _)) = addresses[..index].iter().find(same) {
                faults.push(format!("{other} and {name} are both {address}"));
            }
        }
        if faults.is_empty() { Ok(config) } else { Err(faults) }
    }
}

/// The data directory alone, by the [flags](data_dir_args) of a command that needs nothing else.
pub(crate) fn data_dir(matches: &ArgMatches) -> Result<PathBuf, Vec<String>> {
    let mut faults = Vec::new();
    let file = read_file(matches, &mut faults);
    let mut reader = Reader { matches, file, faults };
    let data_dir = reader.value("data_dir");
    if reader.faults.is_empty() { Ok(data_dir) } else { Err(reader.faults) }
}

/// The file's keys, each of them known and a plain value.
fn read_file(matches: &ArgMatches, faults: &mut Vec<String>) -> toml::Table {
    let given = matches.get_one::<String>("config").map(PathBuf::from);
    let path = given.clone().unwrap_or_else(|| "gristmill.toml".into());
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if given.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
            return toml::Table::new();
        }
        Err(error) => {
            faults.push(format!("{}: {error}", path.display()));
            return toml::Table::new();
        }
    };
    let table = text.parse::<toml::Table>().unwrap_or_else(|error| {
        faults.push(format!("{}: {error}", path.display()));
        toml::Table::new()
    });
    for key in table.keys().filter(|key| SETTINGS.iter().all(|setting| setting.key != **key)) {
        let known: Vec<_> = SETTINGS.iter().map(|setting| setting.key).collect();
        faults.push(format!(
            "{}: unknown key {key:?}; known are {}",
            path.display(),
            known.join(", ")
        ));
    }
    table
}

struct Reader<'a> {
    matches: &'a ArgMatches,
    file: toml::Table,
    faults: Vec<String>,
}

impl Reader<'_> {
    /// The setting as text: flag or variable, else file, else default.
    fn text(&mut self, key: &str) -> Option<String> {
        if let Some(value) = self.matches.get_one::<String>(key) {
            return Some(value.clone());
        }
        match self.file.get(key) {
            Some(toml::Value::String(text)) => return Some(text.clone()),
            Some(toml::Value::Integer(number)) => return Some(number.to_string()),
            Some(other) => {
                self.faults
                    .push(format!("{key} is a {}: must be text or a number", other.type_str()));
            }
            None => {}
        }
        let setting = SETTINGS.iter().find(|setting| setting.key == key)?;
        setting.default.map(str::to_owned)
    }

    fn optional<T: std::str::FromStr<Err: std::fmt::Display>>(&mut self, key: &str) -> Option<T> {
        let text = self.text(key)?;
        match text.parse() {
            Ok(value) => Some(value),
            Err(error) => {
                self.faults.push(format!("{key} is {text:?}: {error}"));
                None
            }
        }
    }

    /// The setting; on a fault its default, so that the remaining faults are found as well.
    fn value<T: std::str::FromStr<Err: std::fmt::Display>>(&mut self, key: &str) -> T {
        match self.optional(key) {
            Some(value) => value,
            None => default_of(key),
        }
    }

    /// The setting, where it is given.
    fn optional_within<T>(&mut self, key: &str, min: T, max: T) -> Option<T>
    where
        T: std::str::FromStr<Err: std::fmt::Display> + PartialOrd + std::fmt::Display,
    {
        let value: T = self.optional(key)?;
        if value < min || value > max {
            self.faults.push(format!("{key} is {value}: must be {min} to {max}"));
        }
        Some(value)
    }

    /// An address to listen on. A host's name stands for the first of its addresses, IPv4 first.
    fn address(&mut self, key: &str) -> SocketAddr {
        let text = self.text(key).unwrap_or_default();
        let addresses = text.to_socket_addrs().map(|found| found.collect::<Vec<_>>());
        let found = addresses.unwrap_or_default();
        let Some(address) = found.iter().find(|own| own.is_ipv4()).or(found.first()) else {
            self.faults.push(format!(
                "{key} is {text:?}: must be an address of this machine and a port, such as {}",
                SETTINGS
                    .iter()
                    .find(|own| own.key == key)
                    .and_then(|own| own.default)
                    .unwrap_or("")
            ));
            return default_of(key);
        };
        *address
    }

    fn within<T>(&mut self, key: &str, min: T, max: T) -> T
    where
        T: std::str::FromStr<Err: std::fmt::Display> + PartialOrd + std::fmt::Display,
    {
        let value: T = self.value(key);
        if value < min || value > max {
            self.faults.push(format!("{key} is {value}: must be {min} to {max}"));
        }
        value
    }

    fn log_format(&mut self) -> LogFormat {
        match self.text("log_format").as_deref() {
            Some("json") => LogFormat::Json,
            Some("text") => LogFormat::Text,
            other => {
                let found = other.unwrap_or_default();
                self.faults.push(format!("log_format is {found:?}: must be text or json"));
                LogFormat::Text
            }
        }
    }
}

#[expect(clippy::expect_used, reason = "every setting read as a value has a valid default")]
fn default_of<T: std::str::FromStr<Err: std::fmt::Display>>(key: &str) -> T {
    let setting = SETTINGS.iter().find(|setting| setting.key == key);
    let default = setting.and_then(|setting| setting.default).expect("a default");
    default.parse().ok().expect("a valid default")
}

#[cfg(test)]
mod tests {
    use super::{Config, args};

    fn resolve(flags: &[&str], file: &str) -> Result<Config, Vec<String>> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("gristmill.toml");
        std::fs::write(&path, file).unwrap();
        let command = clap::Command::new("serve").args(args());
        let given = ["serve", "--config", path.to_str().unwrap()];
        Config::resolve(&command.get_matches_from(given.iter().chain(flags)))
    }

    #[test]
    fn flags_go_before_the_file_and_the_file_before_defaults() {
        let config =
            resolve(&["--listen", "127.0.0.1:1"], "listen = '127.0.0.1:2'\ndrain_timeout_s = 7")
                .unwrap();
        assert_eq!(config.listen.port(), 1);
        assert_eq!(config.drain_timeout.as_secs(), 7);
        assert_eq!(config.admin_listen.port(), 8081);
    }

    #[test]
    fn an_address_may_have_a_hosts_name() {
        let config = resolve(&["--listen", "localhost:7001"], "").unwrap();
        assert_eq!(config.listen, "127.0.0.1:7001".parse().unwrap());
    }

    #[test]
    fn variables_that_are_no_settings_are_found() {
        let names =
            ["GRISTMILL_LISTN", "GRISTMILL_LISTEN", "GRISTMILL_CONFIG", "GRISTMILL_", "PATH"];
        let unknown = super::unknown_variables(names.map(Into::into).into_iter());
        assert_eq!(unknown, ["GRISTMILL_LISTN", "GRISTMILL_"]);
    }

    #[test]
    fn all_faults_are_reported_together() {
        let file = "liten = 'x'\nadmin_listen = 'nowhere'\ndrain_timeout_s = 99999\nlog_format = 'xml'\n\
                    admin_token = 'short'\nheader_timeout_s = [1]\nlog = 'a=b=c'\n\
                    tenant_bytes_max = 2000";
        let flags = ["--concurrent-plugin-calls", "0", "--connections-max", "9"];
        let faults = resolve(&flags, file).unwrap_err().join("\n");
        for named in [
            "\"liten\"",
            "admin_listen is \"nowhere\": must be an address of this machine and a port, such as 127.0.0.1:8081",
            "drain_timeout_s is 99999: must be 0 to 3600",
            "log_format is \"xml\"",
            "admin_token is shorter",
            "header_timeout_s is a array",
            "log is \"a=b=c\"",
            "concurrent_plugin_calls is 0",
            "connections_max is 9: must be 16 to 16777216",
            "tenant_bytes_max is 2000: must be at least message_bytes_max, 67108864",
        ] {
            assert!(faults.contains(named), "{named} is missing from:\n{faults}");
        }
    }
}
