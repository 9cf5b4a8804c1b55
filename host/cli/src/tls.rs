//! `gristmill tls self-signed`: a certificate for a server without an authority.
//!
//! It is for a server and not for an authority, and has its names as subjectAltName, so every
//! client takes it that is told to trust it: this program, curl, Python and browsers.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail, ensure};
use clap::{ArgAction, ArgMatches, Command, value_parser};
use rcgen::{
    CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use serde_json::json;

use crate::args::{group, option, texts};
use crate::output::{self, Output, escaped};

/// The files.
const CERTIFICATE: &str = "server.crt";
const KEY: &str = "server.key";

/// The names that a server on this machine always has.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Maximum days. Some clients refuse certificates that are valid for longer than two years.
const DAYS_MAX: u32 = 3650;
const DAYS: &str = "365";

/// Maximum characters of a name in a certificate.
const NAME_LEN_MAX: usize = 253;

pub(crate) fn command() -> Command {
    let self_signed = Command::new("self-signed")
        .about("Make a key and a certificate that signs itself")
        .after_help(
            "Examples:\n  \
             gristmill tls self-signed --host gristmill.example --host 10.0.0.5\n  \
             gristmill tls self-signed --host gristmill.example --days 90 --out /etc/gristmill\n\n\
             It writes server.crt, and server.key, which only you may read. The certificate is for \
             the names that are given, and for localhost. A client must be told to trust it, so \
             give its file to your clients. A server takes over new files without a restart.",
        )
        .args([
            option("host", "NAME").required(true).action(ArgAction::Append).help(
                "A name or an address by which clients call the server; several times for more",
            ),
            option("days", "N")
                .default_value(DAYS)
                .value_parser(value_parser!(u32).range(1..=i64::from(DAYS_MAX)))
                .help("For how many days it is valid"),
            option("out", "FOLDER")
                .default_value(".")
                .value_parser(value_parser!(PathBuf))
                .help("The folder for both files, which must not be there yet"),
            output::argument(),
        ]);
    group("tls").about("Make a certificate for a server").subcommand(self_signed)
}

pub(crate) fn run(matches: &ArgMatches) -> Result<()> {
    match matches.subcommand() {
        Some(("self-signed", matches)) => self_signed(matches),
        _ => bail!("no such command; see gristmill tls --help"),
    }
}

fn self_signed(matches: &ArgMatches) -> Result<()> {
    let mut hosts = Vec::new();
    for host in texts(matches, "host") {
        check_host(host)?;
        hosts.push(host.clone());
    }
    for local in LOCAL {
        if !hosts.iter().any(|host| host == local) {
            hosts.push(local.to_owned());
        }
    }
    // `*.example` stands for many names, and is itself none that a client can call.
    let called = hosts.iter().find(|host| !host.starts_with('*')).context("--host is missing")?;
    let days = *matches.get_one::<u32>("days").context("--days is missing")?;
    let folder = matches.get_one::<PathBuf>("out").context("--out is missing")?;
    let made = Made::of(&hosts, SystemTime::now(), days)?;
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let (certificate, key) = (folder.join(CERTIFICATE), folder.join(KEY));
    for path in [&certificate, &key] {
        ensure!(
            !path.exists(),
            "{} is there already: remove it, or give another folder with --out",
            path.display()
        );
    }
    write_new(&key, &made.key, 0o600)?;
    write_new(&certificate, &made.certificate, 0o644)?;
    let (certificate, key) = (certificate.display(), key.display());
    let until = made.until;
    match Output::of(matches) {
        Output::Json => println!(
            "{}",
            json!({
                "certificate": certificate.to_string(), "key": key.to_string(), "hosts": hosts,
                "until": until,
            })
        ),
        Output::Text => print!(
            "{}",
            escaped(&format!(
                "{certificate} is for {all}, until {until}\n\
                 {key} is its key\n\n\
                 The server:  gristmill serve --tls-certificate {certificate} --tls-key {key}\n\
                 or           GRISTMILL_TLS_CERTIFICATE={certificate} GRISTMILL_TLS_KEY={key}\n\
                 Its clients: gristmill status --admin https://{host}:8081 --ca-file {certificate}\n\
                 or           GRISTMILL_CA_FILE={certificate}\n\
                 or           curl --cacert {certificate} https://{host}:8080/readyz\n",
                all = hosts.join(", "),
                host = in_url(called),
            ))
        ),
    }
    Ok(())
}

/// A pair, in PEM.
struct Made {
    certificate: String,
    key: String,
    /// The day on which it ends.
    until: String,
}

impl Made {
    fn of(hosts: &[String], now: SystemTime, days: u32) -> Result<Self> {
        let end = now + Duration::from_secs(u64::from(days) * 24 * 3600);
        let (begin, end) = (Day::of(now)?, Day::of(end)?);
        let mut params = CertificateParams::new(hosts).context("--host")?;
        params.distinguished_name.push(DnType::CommonName, "Gristmill");
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.not_before = date_time_ymd(begin.year, begin.month, begin.day);
        params.not_after = date_time_ymd(end.year, end.month, end.day);
        let key = KeyPair::generate().context("cannot make a key")?;
        let certificate = params.self_signed(&key).context("cannot make a certificate")?;
        let Day { year, month, day } = end;
        let until = format!("{year}-{month:02}-{day:02}");
        Ok(Self { certificate: certificate.pem(), key: key.serialize_pem(), until })
    }
}

/// A day in UTC.
struct Day {
    year: i32,
    month: u8,
    day: u8,
}

impl Day {
    fn of(time: SystemTime) -> Result<Self> {
        // Such as 2027-01-01T00:00:00Z.
        let text = humantime::format_rfc3339_seconds(time).to_string();
        let date = text.split('T').next().unwrap_or_default();
        let parts: Vec<_> = date.split('-').collect();
        let [year, month, day] = parts[..] else { bail!("{date} is no date") };
        Ok(Self { year: year.parse()?, month: month.parse()?, day: day.parse()? })
    }
}

/// Refuse what no client asks for: a URL, a port, or anything else that is no name and no address.
fn check_host(host: &str) -> Result<()> {
    let is_label = |label: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !label.is_empty() && label.bytes().all(is_plain)
    };
    // Clients take a star for the first part alone.
    let below = host.strip_prefix("*.").unwrap_or(host);
    let is_name = host.len() <= NAME_LEN_MAX && below.split('.').all(is_label);
    ensure!(
        host.parse::<IpAddr>().is_ok() || is_name,
        "--host is {host:?}: must be a name or an address, without a scheme and without a port"
    );
    Ok(())
}

/// The host as it stands in a URL.
fn in_url(host: &str) -> String {
    match host.contains(':') {
        true => format!("[{host}]"),
        false => host.to_owned(),
    }
}

/// Write a file that is not there yet.
fn write_new(path: &Path, content: &str, mode: u32) -> Result<()> {
    let write = || {
        let mut file: File =
            OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
        file.write_all(content.as_bytes())?;
        file.sync_all()
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_or_an_address() {
        for host in ["localhost", "gristmill.example", "*.example.com", "10.0.0.5", "::1"] {
            check_host(host).unwrap();
            assert!(Made::of(&[host.to_owned()], SystemTime::now(), 1).is_ok(), "{host}");
        }
        for host in
            ["", "https://a", "a:8081", "a b", "a..b", "[::1]", "\u{e4}.example", "*", "a.*.b"]
        {
            let error = check_host(host).unwrap_err().to_string();
            assert!(error.starts_with(&format!("--host is {host:?}: must be")), "{error}");
        }
    }

    #[test]
    fn it_ends_so_many_days_later() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        assert_eq!(Made::of(&["a".to_owned()], now, 365).unwrap().until, "2002-09-09");
    }
}
