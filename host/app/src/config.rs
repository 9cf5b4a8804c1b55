//! Configuration: each setting is a flag, a `GRISTMILL_*` variable and a key of `gristmill.toml`,
//! in that order of precedence. All faults are reported together, before a port is bound.
//!
//! In reading order: `sections` lists all settings, each in one line; `section` makes structs from
//! the list, `reader` reads the settings, `value` has their types, `stores` reads the tables of
//! stores, and `fault` has the possible faults.

mod fault;
mod reader;
mod section;
mod sections;
mod setting;
mod stores;
mod value;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgMatches};

pub(crate) use self::fault::{Fault, Faults};
use self::reader::Reader;
use self::sections::{
    Access, ConnectionLimits, Listeners, Logging, Metrics, Models, Plugins, Requests, Shutdown,
    Uploads,
};
pub(crate) use self::sections::{Data, Replicas, Tls, Traces};
pub(crate) use self::setting::Setting;
use self::stores::Stores;

/// Variables that are not settings, without `GRISTMILL_`: the path of the file, and those of
/// commands that call a server or build plugins.
const OTHER_VARIABLES: [&str; 9] = [
    "CONFIG",
    "ADMIN_URL",
    "API_KEY",
    "CA_FILE",
    "CLIENT_CERTIFICATE",
    "CLIENT_KEY",
    "BUILD_DIR",
    "CONTEXT",
    "CONTEXTS",
];

/// The configuration, valid.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) data: Data,
    pub(crate) replicas: Replicas,
    pub(crate) listeners: Listeners,
    pub(crate) tls: Tls,
    pub(crate) access: Access,
    pub(crate) requests: Requests,
    pub(crate) models: Models,
    pub(crate) plugins: Plugins,
    pub(crate) stores: Stores,
    pub(crate) uploads: Uploads,
    pub(crate) connections: ConnectionLimits,
    pub(crate) shutdown: Shutdown,
    pub(crate) metrics: Metrics,
    pub(crate) traces: Traces,
    pub(crate) logging: Logging,
}

/// All settings, in the order of their sections.
pub(crate) fn settings() -> impl Iterator<Item = &'static Setting> {
    let sections: [&'static [Setting]; 14] = [
        Data::SETTINGS,
        Replicas::SETTINGS,
        Listeners::SETTINGS,
        Tls::SETTINGS,
        Access::SETTINGS,
        Requests::SETTINGS,
        Models::SETTINGS,
        Plugins::SETTINGS,
        Uploads::SETTINGS,
        ConnectionLimits::SETTINGS,
        Shutdown::SETTINGS,
        Metrics::SETTINGS,
        Traces::SETTINGS,
        Logging::SETTINGS,
    ];
    sections.into_iter().flatten()
}

/// The flags of `serve`.
pub(crate) fn args() -> Vec<Arg> {
    args_of(|_| true)
}

/// The flags of commands that work on the data directory alone.
pub(crate) fn data_dir_args() -> Vec<Arg> {
    args_of(|key| key == "data_dir")
}

/// The flags of commands that work on the store.
pub(crate) fn data_args() -> Vec<Arg> {
    args_of(|key| Data::SETTINGS.iter().any(|setting| setting.key == key))
}

fn args_of(wanted: impl Fn(&str) -> bool) -> Vec<Arg> {
    let file = Arg::new("config")
        .long("config")
        .value_name("FILE")
        .env("GRISTMILL_CONFIG")
        .help("Configuration file; without it, gristmill.toml is read if it exists");
    let settings = settings().filter(|setting| wanted(setting.key));
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

/// The variables that begin with `GRISTMILL_` but are not settings. They may be misspelt.
pub(crate) fn unknown_variables(names: impl Iterator<Item = OsString>) -> Vec<String> {
    let is_known = |name: &str| {
        let setting = settings().any(|setting| setting.key.to_uppercase() == name);
        setting || OTHER_VARIABLES.contains(&name)
    };
    let names = names.filter_map(|name| name.into_string().ok());
    names
        .filter(|name| name.strip_prefix("GRISTMILL_").is_some_and(|rest| !is_known(rest)))
        .collect()
}

/// A name for clap, which needs it for the whole time of the process. Called once for each name.
fn leaked(name: String) -> &'static str {
    name.leak()
}

impl Config {
    /// The configuration, or everything that is wrong with it. `defaults` stand in for those of
    /// their settings.
    pub(crate) fn resolve(
        matches: &ArgMatches,
        defaults: &'static [(&'static str, &'static str)],
    ) -> Result<Self, Faults> {
        let mut reader = Reader { defaults, ..reader(matches) };
        let config = Self::read(&mut reader);
        let mut faults = reader.faults;
        config.check(&mut faults);
        if faults.is_empty() { Ok(config) } else { Err(Faults(faults)) }
    }

    fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            data: Data::read(reader),
            replicas: Replicas::read(reader),
            listeners: Listeners::read(reader),
            tls: Tls::read(reader),
            access: Access::read(reader),
            requests: Requests::read(reader),
            models: Models::read(reader),
            plugins: Plugins::read(reader),
            stores: stores::read(&reader.file, &mut reader.faults),
            uploads: Uploads::read(reader),
            connections: ConnectionLimits::read(reader),
            shutdown: Shutdown::read(reader),
            metrics: Metrics::read(reader),
            traces: Traces::read(reader),
            logging: Logging::read(reader),
        }
    }

    /// Check the rules that concern several settings.
    fn check(&self, faults: &mut Vec<Fault>) {
        let Requests { message_bytes_max: message, tenant_bytes_max: tenant, .. } = self.requests;
        if tenant < message {
            faults.push(Fault::SmallBudget { tenant, message });
        }
        let Listeners { listen, grpc_listen, admin_listen } = self.listeners;
        let addresses =
            [("listen", listen), ("grpc_listen", grpc_listen), ("admin_listen", admin_listen)];
        let metrics = self.metrics.metrics_listen.map(|metrics| ("metrics_listen", metrics));
        let addresses: Vec<_> = addresses.into_iter().chain(metrics).collect();
        for (index, (second, address)) in addresses.iter().copied().enumerate() {
            let same = |(_, other): &&(&str, _)| *other == address && address.port() != 0;
            if let Some((first, _)) = addresses[..index].iter().find(same) {
                faults.push(Fault::SameAddress { first, second, address });
            }
        }
        if self.data.store.is_some() && self.data.hash_key_file.is_none() {
            faults.push(Fault::Missing { missing: "hash_key_file", needed_by: "store" });
        }
        if self.metrics.push_metrics_s.is_some() && self.traces.otlp_endpoint.is_none() {
            let (missing, needed_by) = ("otlp_endpoint", "push_metrics_s");
            faults.push(Fault::Missing { missing, needed_by });
        }
        let Tls { tls_certificate, tls_key, admin_tls_certificate, admin_tls_key, .. } = &self.tls;
        for (certificate, key) in [
            (("tls_certificate", tls_certificate), ("tls_key", tls_key)),
            (("admin_tls_certificate", admin_tls_certificate), ("admin_tls_key", admin_tls_key)),
        ] {
            for ((missing, path), (needed_by, other)) in [(certificate, key), (key, certificate)] {
                if path.is_none() && other.is_some() {
                    faults.push(Fault::Missing { missing, needed_by });
                }
            }
        }
        let of_admin = tls_certificate.as_ref().or(admin_tls_certificate.as_ref());
        if self.tls.admin_client_ca.is_some() && of_admin.is_none() {
            let (missing, needed_by) =
                ("admin_tls_certificate or tls_certificate", "admin_client_ca");
            faults.push(Fault::Missing { missing, needed_by });
        }
    }
}

/// Where the state is, by the [flags](data_args) of a command that needs nothing else.
pub(crate) fn data(matches: &ArgMatches) -> Result<Data, Faults> {
    let mut reader = reader(matches);
    let data = Data::read(&mut reader);
    if reader.faults.is_empty() { Ok(data) } else { Err(Faults(reader.faults)) }
}

fn reader(matches: &ArgMatches) -> Reader<'_> {
    let mut faults = Vec::new();
    let file = read_file(matches, &mut faults);
    Reader { matches, file, defaults: &[], faults }
}

/// The file's keys, each of them known.
fn read_file(matches: &ArgMatches, faults: &mut Vec<Fault>) -> toml::Table {
    let path_argument = matches.get_one::<String>("config").map(PathBuf::from);
    let path = path_argument.clone().unwrap_or_else(|| "gristmill.toml".into());
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if path_argument.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
            return toml::Table::new();
        }
        Err(source) => {
            faults.push(Fault::File { path, source });
            return toml::Table::new();
        }
    };
    let table = match text.parse::<toml::Table>() {
        Ok(table) => table,
        Err(source) => {
            faults.push(Fault::Toml { path, source });
            return toml::Table::new();
        }
    };
    let known_keys: Vec<_> = settings().map(|setting| setting.key).chain([stores::KEY]).collect();
    for key in table.keys().filter(|key| !known_keys.contains(&key.as_str())) {
        let (path, key, known_keys) = (path.clone(), key.clone(), known_keys.join(", "));
        faults.push(Fault::UnknownKey { path, key, known_keys });
    }
    table
}

#[cfg(test)]
mod tests {
    use super::{Config, Faults, args};

    fn resolve(flags: &[&str], file: &str) -> Result<Config, Faults> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("gristmill.toml");
        std::fs::write(&path, file).unwrap();
        let command = clap::Command::new("serve").args(args());
        let arguments = ["serve", "--config", path.to_str().unwrap()];
        Config::resolve(&command.get_matches_from(arguments.iter().chain(flags)), &[])
    }

    #[test]
    fn flags_go_before_the_file_and_the_file_before_defaults() {
        let config =
            resolve(&["--listen", "127.0.0.1:1"], "listen = '127.0.0.1:2'\ndrain_timeout_s = 7")
                .unwrap();
        assert_eq!(config.listeners.listen.port(), 1);
        assert_eq!(config.shutdown.drain_timeout.as_secs(), 7);
        assert_eq!(config.listeners.admin_listen.port(), 8081);
    }

    #[test]
    fn an_address_may_have_a_hosts_name() {
        let config = resolve(&["--listen", "localhost:7001"], "").unwrap();
        assert_eq!(config.listeners.listen, "127.0.0.1:7001".parse().unwrap());
    }

    #[test]
    fn variables_that_are_not_settings_are_found() {
        let names =
            ["GRISTMILL_LISTN", "GRISTMILL_LISTEN", "GRISTMILL_CONFIG", "GRISTMILL_", "PATH"];
        let unknown = super::unknown_variables(names.map(Into::into).into_iter());
        assert_eq!(unknown, ["GRISTMILL_LISTN", "GRISTMILL_"]);
    }

    #[test]
    fn all_faults_are_reported_together() {
        let file = "liten = 'x'\nadmin_listen = 'nowhere'\ndrain_timeout_s = 99999\nlog_format = 'xml'\n\
                    admin_token = 'short'\nheader_timeout_s = [1]\ninfer_timeout_s = 1.5\n\
                    upload_timeout_s = 'soon'\nlog = 'a=b=c'\n\
                    tenant_bytes_max = 2000";
        let flags = ["--concurrent-plugin-calls", "0", "--connections-max", "9"];
        let faults = resolve(&flags, file).unwrap_err().to_string();
        for named in [
            "\"liten\"",
            "admin_listen is \"nowhere\": must be an address of this machine and a port, such as 127.0.0.1:8081",
            "drain_timeout_s is 99999: must be 0 to 3600",
            "log_format is \"xml\"",
            "admin_token is shorter",
            "header_timeout_s must be a number, not an array",
            "infer_timeout_s is 1.5: must be a whole number",
            "upload_timeout_s is \"soon\": must be a whole number",
            "log is \"a=b=c\"",
            "concurrent_plugin_calls is 0",
            "connections_max is 9: must be 16 to 16777216",
            "tenant_bytes_max is 2000: must be at least message_bytes_max, 67108864",
        ] {
            assert!(faults.contains(named), "{named} is missing from:\n{faults}");
        }
    }

    #[test]
    fn what_tls_needs_is_named() {
        let faults = |flags: &[&str]| resolve(flags, "").unwrap_err().to_string();
        let text = faults(&["--tls-certificate", "a", "--admin-tls-key", "b"]);
        for named in [
            "tls_key is missing: tls_certificate needs it",
            "admin_tls_certificate is missing: admin_tls_key needs it",
        ] {
            assert!(text.contains(named), "{text}");
        }
        let text = faults(&["--admin-client-ca", "a"]);
        let named = "admin_tls_certificate or tls_certificate is missing: admin_client_ca needs it";
        assert!(text.contains(named), "{text}");
    }

    #[test]
    fn a_shared_store_needs_a_shared_secret_and_its_url_has_none() {
        let error = resolve(&["--store", "s3://bucket/mill"], "").unwrap_err().to_string();
        assert!(error.contains("hash_key_file is missing: store needs it"), "{error}");
        let flags = ["--store", "s3://bucket/mill", "--hash-key-file", "key"];
        let config = resolve(&flags, "start_offline = true\nreplica_name = 'one'").unwrap();
        assert_eq!(config.data.store.unwrap().to_string(), "s3://bucket/mill");
        assert!(config.replicas.start_offline);
        let error = resolve(&["--store", "s3://key:word@bucket/"], "").unwrap_err().to_string();
        assert!(
            error.contains("store must have no password") && !error.contains("word@"),
            "{error}"
        );
        let error = resolve(&["--store", "/srv/x"], "start_offline = 1").unwrap_err().to_string();
        for named in ["store is \"/srv/x\": must be the URL", "start_offline"] {
            assert!(error.contains(named), "{error}");
        }
    }

    #[test]
    fn origins_are_a_list_or_a_text_with_commas() {
        let expected = resolve(&["--cors-origins", "https://a.example, http://b:81"], "").unwrap();
        let expected = expected.access.cors_origins.unwrap();
        assert!(expected.has("https://a.example") && expected.has("http://b:81"));
        for file in ["['https://a.example', 'http://b:81']", "'https://a.example,http://b:81'"] {
            let config = resolve(&[], &format!("cors_origins = {file}")).unwrap();
            assert_eq!(config.access.cors_origins.as_ref(), Some(&expected), "{file}");
        }
        let any = resolve(&[], "cors_origins = '*'").unwrap();
        assert!(any.access.cors_origins.unwrap().is_any());
        for (file, named) in [
            (
                "['https://a.example/', 'null']",
                "write \"https://a.example\"; \"null\" is the origin",
            ),
            ("['*', 'https://a.example']", "\"*\" stands for all origins: it must be alone"),
            ("[1]", "cors_origins must be text or a list of texts, not an array with other values"),
            ("true", "cors_origins must be text or a list of texts, not a boolean"),
        ] {
            let faults = resolve(&[], &format!("cors_origins = {file}")).unwrap_err().to_string();
            assert!(faults.contains(named), "{named} is missing from:\n{faults}");
        }
    }

    #[test]
    fn every_default_is_valid() {
        let config = resolve(&[], "").unwrap();
        assert_eq!(config.requests.infer_timeout.as_secs(), 30);
        assert_eq!(config.connections.connections_max, None);
        for setting in super::settings() {
            assert!(setting.default != Some(""), "{}", setting.key);
        }
    }

    #[test]
    fn a_secret_is_not_repeated() {
        let faults = resolve(&[], "admin_token = 'not-sendable-äöü'").unwrap_err().to_string();
        assert!(faults.contains("admin_token cannot be sent in a header"), "{faults}");
        assert!(!faults.contains("not-sendable"), "{faults}");
    }
}
