//! What `gristmill doctor` finds, and what it asks the server that commands would call. The program
//! adds what it finds about this machine and the settings.

use std::time::{Duration, SystemTime};

use anyhow::Result;
use clap::{Arg, ArgMatches};
use gristmill_client::http::StatusCode;
use gristmill_client::http::header::DATE;
use serde_json::{Value, json};

use crate::admin::{self, Admin};
use crate::output::{Output, escaped};

/// The difference of two clocks that does no harm.
const CLOCK_SLACK: Duration = Duration::from_secs(30);

/// One thing that was looked at.
#[derive(Clone, Debug)]
pub struct Finding {
    subject: &'static str,
    state: Severity,
    text: String,
    /// What to do. Empty if nothing has to be done.
    cure: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Severity {
    Ok,
    Warning,
    Fault,
}

impl Severity {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Fault => "fault",
        }
    }
}

impl Finding {
    /// It is as it should be.
    pub fn ok(subject: &'static str, text: impl Into<String>) -> Self {
        Self { subject, state: Severity::Ok, text: text.into(), cure: String::new() }
    }

    /// A server works, but not as well as it could.
    pub fn warning(
        subject: &'static str,
        text: impl Into<String>,
        cure: impl Into<String>,
    ) -> Self {
        Self { subject, state: Severity::Warning, text: text.into(), cure: cure.into() }
    }

    /// A server does not start, or a command does not work.
    pub fn fault(subject: &'static str, text: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { subject, state: Severity::Fault, text: text.into(), cure: cure.into() }
    }

    /// Whether something does not work.
    pub fn is_fault(&self) -> bool {
        self.state == Severity::Fault
    }

    fn line(&self) -> String {
        let Self { subject, state, text, cure } = self;
        let state = state.name();
        let cure = match cure.is_empty() {
            true => String::new(),
            false => format!("; {cure}"),
        };
        escaped(&format!("{state:<8} {subject:<12} {text}{cure}")).replace('\n', " ") + "\n"
    }

    fn document(&self) -> Value {
        let Self { subject, state, text, cure } = self;
        let mut document = json!({ "subject": subject, "state": state.name(), "text": text });
        if !cure.is_empty() {
            document["cure"] = cure.as_str().into();
        }
        document
    }
}

/// The flags that say which server is asked, and `--output`.
pub fn arguments() -> impl Iterator<Item = Arg> {
    admin::asking()
}

/// Print the findings: a line for each, or a list in JSON.
pub fn print(findings: &[Finding], matches: &ArgMatches) {
    let document = Value::from_iter(findings.iter().map(Finding::document));
    Output::of(matches).print(document, || findings.iter().map(Finding::line).collect());
}

/// The server that commands with these flags call: whether it answers, the token, the clock, and
/// the version. `version` is that of this program.
pub fn server(matches: &ArgMatches, version: &str) -> Vec<Finding> {
    let admin = match Admin::of(matches) {
        Ok(admin) => admin,
        Err(error) => {
            let cure = "the commands that call a server need it";
            return vec![Finding::warning("server", format!("{error:#}"), cure)];
        }
    };
    looked_at(&admin, version).unwrap_or_else(|error| {
        let cure = "`gristmill up` starts one here";
        vec![Finding::warning("server", format!("{error:#}"), cure)]
    })
}

fn looked_at(admin: &Admin, version: &str) -> Result<Vec<Finding>> {
    let answer = admin.look("self")?;
    let about: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let mut findings = vec![token(admin, answer.status, &about)];
    findings.push(clock(answer.header(DATE.as_str()), SystemTime::now()));
    if answer.status == StatusCode::OK {
        let status: Value = serde_json::from_slice(&admin.look("status")?.body).unwrap_or_default();
        findings.push(versions(status["version"].as_str().unwrap_or_default(), version));
    }
    Ok(findings)
}

fn token(admin: &Admin, status: StatusCode, about: &Value) -> Finding {
    const SUBJECT: &str = "token";
    let (address, text) = (admin.address(), |key: &str| about[key].as_str().unwrap_or_default());
    match status {
        StatusCode::OK => {
            let (name, role) = (text("name"), text("role"));
            let end = match about["expires"].as_str() {
                Some(end) => format!("until {end}"),
                None => "without an end".to_owned(),
            };
            Finding::ok(SUBJECT, format!("{address} takes it: {name}, role {role}, {end}"))
        }
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS => {
            let text = format!("{address} refuses it: {status}: {}", text("detail"));
            let cure = "`gristmill context show` says which token is meant; `gristmill token rotate` \
                        makes another secret, `gristmill token reset` another root token";
            Finding::fault(SUBJECT, text, cure)
        }
        _ => {
            let text = format!("{address} answers {status}: {}", text("detail"));
            Finding::warning(SUBJECT, text, "is it still loading, or not the admin plane?")
        }
    }
}

fn clock(date: &str, now: SystemTime) -> Finding {
    const SUBJECT: &str = "clock";
    let Ok(server) = httpdate::parse_http_date(date) else {
        return Finding::warning(SUBJECT, "the server does not say what time it is", "");
    };
    let (differ, word) = match server.duration_since(now) {
        Ok(ahead) => (ahead, "ahead of"),
        Err(behind) => (behind.duration(), "behind"),
    };
    if differ <= CLOCK_SLACK {
        return Finding::ok(SUBJECT, "the server and this machine agree");
    }
    let text = format!("the server is {} s {word} this machine", differ.as_secs());
    Finding::warning(SUBJECT, text, "set both by NTP: tokens and certificates end by the clock")
}

fn versions(of_server: &str, own_version: &str) -> Finding {
    const SUBJECT: &str = "version";
    match of_server == own_version {
        true => Finding::ok(SUBJECT, format!("the server and this program are {own_version}")),
        false => Finding::warning(
            SUBJECT,
            format!("the server is {of_server}, this program {own_version}"),
            "take the program of the server: newer commands may not be known there",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_agree_within_half_a_minute() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        let then = httpdate::parse_http_date(date).unwrap();
        assert_eq!(clock(date, then + Duration::from_secs(30)).state, Severity::Ok);
        let behind = clock(date, then + Duration::from_secs(95));
        assert_eq!(behind.state, Severity::Warning);
        assert_eq!(behind.text, "the server is 95 s behind this machine");
        let ahead = clock(date, then - Duration::from_secs(40));
        assert_eq!(ahead.text, "the server is 40 s ahead of this machine");
        assert_eq!(clock("", then).state, Severity::Warning);
    }

    #[test]
    fn a_finding_is_one_line() {
        let line = Finding::fault("ports", "a\nb \u{1b}", "do c").line();
        assert_eq!(line, "fault    ports        a b \\u{1b}; do c\n");
        let document = Finding::ok("ports", "free").document();
        assert_eq!(document, json!({ "subject": "ports", "state": "ok", "text": "free" }));
        assert_eq!(versions("1", "2").state, Severity::Warning);
        assert_eq!(versions("1", "1").state, Severity::Ok);
    }
}
