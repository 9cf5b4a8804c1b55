//! The lines with which a server announces its addresses. `gristmill serve` writes them, and
//! programs that start it read them.

use std::io::{self, BufRead};

use serde_json::{Value, json};

const DATA: &str = "data plane  ";
const GRPC: &str = "grpc        ";
const METRICS: &str = "metrics     ";
const ADMIN: &str = "admin plane ";

/// The URL of each plane of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The data plane's, over HTTP.
    pub data: String,
    /// The data plane's, over gRPC.
    pub grpc: String,
    /// That of the metrics' own plane, if there is one.
    pub metrics: Option<String>,
    /// The admin plane's.
    pub admin: String,
}

impl Addresses {
    /// The lines as text, for people. `version` is the server's.
    pub fn to_text(&self, version: &str) -> String {
        let Self { data, grpc, metrics, admin } = self;
        let metrics = metrics.as_ref().map(|metrics| format!("{METRICS}{metrics}\n"));
        let metrics = metrics.unwrap_or_default();
        format!("gristmill {version}\n{DATA}{data}\n{GRPC}{grpc}\n{metrics}{ADMIN}{admin}\n")
    }

    /// The same as one line of JSON.
    pub fn to_json(&self, version: &str) -> String {
        let Self { data, grpc, metrics, admin } = self;
        let mut line = json!({
            "message": "serving", "version": version, "data": data, "grpc": grpc, "admin": admin,
        });
        if let Some(metrics) = metrics {
            line["metrics"] = metrics.as_str().into();
        }
        format!("{line}\n")
    }

    /// gRPC's host and port, the form that clients of the Open Inference Protocol need.
    pub fn grpc_authority(&self) -> &str {
        without_scheme(&self.grpc)
    }

    /// The data plane's host and port.
    pub fn data_authority(&self) -> &str {
        without_scheme(&self.data)
    }

    /// Reads lines until all addresses are known, and adds the lines to `lines`. Returns none if
    /// the output ends earlier.
    pub(crate) fn read(
        output: &mut impl BufRead,
        lines: &mut Vec<String>,
    ) -> io::Result<Option<Self>> {
        let (mut data, mut grpc, mut metrics) = (None, None, None);
        for line in output.lines() {
            let line = line?;
            if let Some(addresses) = Self::of_json(&line) {
                lines.push(line);
                return Ok(Some(addresses));
            }
            let address = |name: &str| line.strip_prefix(name).map(str::to_owned);
            data = data.or_else(|| address(DATA));
            grpc = grpc.or_else(|| address(GRPC));
            metrics = metrics.or_else(|| address(METRICS));
            let admin = address(ADMIN);
            lines.push(line);
            if let Some(((data, grpc), admin)) = data.as_ref().zip(grpc.as_ref()).zip(admin) {
                let (data, grpc) = (data.clone(), grpc.clone());
                return Ok(Some(Self { data, grpc, metrics, admin }));
            }
        }
        Ok(None)
    }

    fn of_json(line: &str) -> Option<Self> {
        let document: Value = serde_json::from_str(line).ok()?;
        let address = |name: &str| document[name].as_str().map(str::to_owned);
        let (data, grpc, admin) = (address("data")?, address("grpc")?, address("admin")?);
        Some(Self { data, grpc, metrics: address("metrics"), admin })
    }
}

fn without_scheme(url: &str) -> &str {
    url.split_once("://").map_or(url, |(_, authority)| authority)
}

#[cfg(test)]
mod tests {
    use super::Addresses;

    #[test]
    fn what_is_written_can_be_read() {
        let without = Addresses {
            data: "http://127.0.0.1:1".into(),
            grpc: "http://127.0.0.1:2".into(),
            metrics: None,
            admin: "https://127.0.0.1:3".into(),
        };
        let with = Addresses { metrics: Some("http://127.0.0.1:4".into()), ..without.clone() };
        [without, with].iter().for_each(read_again);
        let none = Addresses::read(&mut &b"gristmill 1.2.3\n"[..], &mut Vec::new()).unwrap();
        assert_eq!(none, None);
    }

    fn read_again(addresses: &Addresses) {
        assert_eq!(addresses.grpc_authority(), "127.0.0.1:2");
        for printed in [addresses.to_text("1.2.3"), addresses.to_json("1.2.3")] {
            let mut lines = Vec::new();
            let output = format!("admin token abc (shown only this once)\n{printed}and more\n");
            let read = Addresses::read(&mut output.as_bytes(), &mut lines).unwrap();
            assert_eq!(read.as_ref(), Some(addresses));
            assert_eq!(lines.len(), 1 + printed.lines().count());
        }
    }
}
