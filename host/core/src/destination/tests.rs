use super::*;

fn pattern(text: &str) -> HostPattern {
    text.parse().unwrap()
}

#[test]
fn a_pattern_has_its_host_or_the_names_below_it() {
    for (text, host, has) in [
        ("api.example.com", "api.example.com", true),
        ("api.example.com", "xapi.example.com", false),
        ("api.example.com", "api.example.com.", false),
        ("*.example.com", "api.example.com", true),
        ("*.example.com", "a.b.example.com", true),
        ("*.example.com", "example.com", false),
        ("*.example.com", ".example.com", false),
        ("*.example.com", "notexample.com", false),
        ("*.example.com", "example.com.evil.test", false),
        ("localhost", "localhost", true),
        ("10.0.0.7", "10.0.0.7", true),
        ("[2001:db8:0::7]", "[2001:db8::7]", true),
    ] {
        assert_eq!(pattern(text).has(host), has, "{text} {host}");
    }
}

#[test]
fn only_hosts_are_patterns() {
    let long = "a".repeat(64);
    for text in [
        "",
        "*",
        "*.",
        "a..b",
        ".a",
        "a.",
        "A.example.com",
        "ex ample",
        "\u{e4}.example",
        &long,
        "0x7f.1",
        "1.2.3",
        "256.0.0.1",
        "*.0.0.1",
        "*.10.0.0.7",
        "[::1",
        "[10.0.0.7]",
        "a.*.example.com",
        "*a.example.com",
        "*.*.example.com",
        "http://a.example",
        "a:80",
        "u@a",
        "a/b",
    ] {
        assert!(text.parse::<HostPattern>().is_err(), "{text}");
    }
    let error_of = |text: &str| text.parse::<HostPattern>().unwrap_err().to_string();
    assert!(error_of("https://a.example/").contains("keys of their own"));
    assert!(error_of("a.*.b").contains("only at the beginning"));
}

#[test]
fn a_range_has_the_addresses_of_its_prefix() {
    for (range, address, has) in [
        ("10.0.0.0/8", "10.255.255.255", true),
        ("10.0.0.0/8", "11.0.0.0", false),
        ("10.0.0.0/8", "::ffff:10.0.0.1", false),
        ("10.0.0.7", "10.0.0.7", true),
        ("10.0.0.7", "10.0.0.8", false),
        ("10.0.0.7/32", "10.0.0.7", true),
        ("fc00::/7", "fdff::1", true),
        ("fc00::/7", "fe00::1", false),
        ("::1", "::1", true),
        ("::1", "127.0.0.1", false),
    ] {
        let range: AddressRange = range.parse().unwrap();
        assert_eq!(range.has(address.parse().unwrap()), has, "{range} {address}");
    }
}

#[test]
fn only_ranges_of_a_private_networks_size_are_ranges() {
    for text in ["", "10", "10.0.0.0/", "10.0.0.0/33", "::/129", "10.0.0.0/-1", "a/8", "010.0.0.1"]
    {
        let error = text.parse::<AddressRange>().unwrap_err();
        assert_eq!(error, InvalidRange::NotOne(text.into()));
    }
    for text in ["0.0.0.0/0", "0.0.0.0/7", "::/0", "fc00::/6"] {
        let error = text.parse::<AddressRange>().unwrap_err();
        assert_eq!(error, InvalidRange::TooWide(text.into()));
    }
    let begins = "10.1.0.0/8".parse::<AddressRange>().unwrap_err();
    assert!(begins.to_string().ends_with("write \"10.0.0.0/8\""), "{begins}");
    let mapped = "::ffff:10.0.0.0/104".parse::<AddressRange>().unwrap_err();
    assert!(matches!(mapped, InvalidRange::Mapped(_)));
}

#[test]
fn a_destination_is_a_scheme_a_host_and_a_port() {
    let (scheme, host, port) = (Scheme::Https, pattern("*.example.com"), 8443);
    let destination = Destination { scheme, host, port, addresses: Vec::new() };
    assert!(destination.is(Scheme::Https, "a.example.com", 8443));
    assert!(!destination.is(Scheme::Http, "a.example.com", 8443));
    assert!(!destination.is(Scheme::Https, "a.example.com", 443));
    assert!(!destination.is(Scheme::Https, "a.example.org", 8443));
}
