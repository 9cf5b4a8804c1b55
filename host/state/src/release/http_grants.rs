//! The services to which a tenant's plugins may send HTTP requests: the key `http` of its document.
//!
//! Refuses to know which addresses are public: the client of the requests knows.

use std::str::FromStr;

use gristmill_core::{AddressRange, Destination, HostPattern, Scheme};
use serde_json::Value;
use utoipa::ToSchema;

use crate::release::document::Document;

/// The key of a tenant's document.
const HTTP: &str = "http";

/// Maximum services of a tenant, and ranges of addresses of each.
const GRANTS_MAX: usize = 64;
const RANGES_MAX: usize = 16;

/// A service to which a tenant's plugins may send HTTP requests.
// What it is in documents; `Destination` is what is kept.
#[derive(ToSchema)]
#[schema(as = HttpGrant)]
#[allow(dead_code, reason = "it describes the documents")]
pub struct HttpGrantDocument {
    /// `http`, or `https` for TLS.
    #[schema(value_type = String)]
    scheme: Scheme,
    /// A name in lower case such as `api.example.com`, `*.example.com` for all names below it, or
    /// an address.
    #[schema(value_type = String)]
    host: HostPattern,
    /// If it is not given: 443, or 80 without TLS.
    #[schema(value_type = Option<u16>, minimum = 1, maximum = 65_535)]
    port: u16,
    /// Ranges such as `10.0.0.0/8`, or addresses, that the host may have although they are not
    /// public.
    #[schema(value_type = Option<Vec<String>>, max_items = 16)]
    addresses: Vec<AddressRange>,
}

/// The services that a tenant's document grants. None of them has a fault.
pub fn read_http(document: &mut Document) -> Vec<Destination> {
    let granted = document.objects(HTTP, read_grant).unwrap_or_default();
    if granted.len() > GRANTS_MAX {
        let count = granted.len();
        document.fault(HTTP, format_args!(" has {count} services: the limit is {GRANTS_MAX}"));
    }
    granted
}

fn read_grant(document: &mut Document) -> Option<Destination> {
    let scheme = document.one_of("scheme", &Scheme::NAMES);
    let scheme = document.require("scheme", scheme);
    let host = document.text("host").and_then(|text| match HostPattern::from_str(&text) {
        Ok(host) => Some(host),
        Err(error) => {
            document.fault("host", format_args!(": {error}"));
            None
        }
    });
    let host = document.require("host", host);
    let port = document.read("port", "a port, 1 to 65535", |value| {
        value.as_u64().and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0)
    });
    let addresses = document.list("addresses", range).unwrap_or_default();
    if addresses.len() > RANGES_MAX {
        let count = addresses.len();
        document.fault("addresses", format_args!(" has {count}: the limit is {RANGES_MAX}"));
    }
    let scheme = scheme?;
    Some(Destination { scheme, host: host?, port: port.unwrap_or(scheme.usual_port()), addresses })
}

fn range(value: &Value) -> Result<AddressRange, String> {
    let text = value.as_str().ok_or_else(|| " must be text".to_owned())?;
    text.parse::<AddressRange>().map_err(|error| format!(": {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(http: Value) -> (Vec<Destination>, Vec<String>) {
        let Value::Object(keys) = json!({ "http": http }) else { unreachable!() };
        let mut document = Document::new(keys);
        let granted = read_http(&mut document);
        (granted, document.finish().into_texts())
    }

    #[test]
    fn a_grant_is_kept_as_it_was_given_with_its_port() {
        let (granted, faults) = read(json!([
            { "scheme": "https", "host": "api.example.com" },
            { "scheme": "http", "host": "*.internal", "port": 8080,
              "addresses": ["10.0.0.0/8", "fd00::7"] },
        ]));
        assert_eq!(faults, [""; 0]);
        assert_eq!((granted[0].port, granted[0].addresses.len()), (443, 0));
        let written = serde_json::to_value(&granted).unwrap();
        let expected = json!([
            { "scheme": "https", "host": "api.example.com", "port": 443 },
            { "scheme": "http", "host": "*.internal", "port": 8080,
              "addresses": ["10.0.0.0/8", "fd00::7"] },
        ]);
        assert_eq!(written, expected);
        assert_eq!(serde_json::from_value::<Vec<Destination>>(written.clone()).unwrap(), granted);
        assert_eq!(read(written), (granted, Vec::new()));
        assert_eq!(read(Value::Null), (Vec::new(), Vec::new()));
    }

    #[test]
    fn all_faults_are_named_at_once() {
        let (granted, faults) = read(json!([
            { "scheme": "ftp", "host": "https://a.example", "port": 0, "addresses": ["10.1/8", 7] },
            { "scheme": "https", "host": "a*.example", "addresses": ["0.0.0.0/0", "10.1.0.0/8"] },
            { "hosts": [] },
            "https://a.example",
        ]));
        assert!(granted.is_empty());
        assert_eq!(faults, ["http[3] must be a JSON object"]);
        let (_, faults) = read(json!([
            { "scheme": "ftp", "host": "https://a.example", "port": 0, "addresses": ["10.1/8", 7] },
            { "scheme": "https", "host": "a*.example", "addresses": ["0.0.0.0/0", "10.1.0.0/8"] },
            { "hosts": [] },
        ]));
        for named in [
            "http[0].scheme is \"ftp\": must be one of http, https",
            "http[0].host: \"https://a.example\" has more than a host",
            "http[0].port is 0: must be a port, 1 to 65535",
            "http[0].addresses[0]: \"10.1/8\" is not a range",
            "http[0].addresses[1] must be text",
            "http[1].host: \"a*.example\": a star stands only at the beginning",
            "http[1].addresses[0]: \"0.0.0.0/0\" has too many addresses",
            "http[1].addresses[1]: \"10.1.0.0/8\" begins before this address: write \"10.0.0.0/8\"",
            "http[2].scheme is missing",
            "http[2].host is missing",
            "http[2]: unknown key \"hosts\"; known are scheme, host, port, addresses",
        ] {
            assert!(faults.iter().any(|fault| fault.starts_with(named)), "{named}: {faults:#?}");
        }
        assert_eq!(faults.len(), 11, "{faults:#?}");
        let many: Vec<_> =
            (0..65).map(|at| json!({ "scheme": "http", "host": format!("h{at}") })).collect();
        assert_eq!(read(json!(many)).1, ["http has 65 services: the limit is 64"]);
    }
}
