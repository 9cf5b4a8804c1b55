//! The addresses to which no request goes unless its grant names them: all that are not public, and
//! those of services that give a machine its credentials.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use gristmill_core::AddressRange;

/// Services of clouds that tell any program on a machine its credentials. A range allows one of
/// them only if it has no other address.
const METADATA: [IpAddr; 9] = [
    // AWS, Azure, Google, Oracle and others; containers and pods of AWS.
    v4(169, 254, 169, 254),
    v4(169, 254, 170, 2),
    v4(169, 254, 170, 23),
    // Alibaba; Azure; Oracle.
    v4(100, 100, 100, 200),
    v4(168, 63, 129, 16),
    v4(192, 0, 0, 192),
    // AWS, and its pods; Google.
    v6(0xfd00, 0xec2, 0x254),
    v6(0xfd00, 0xec2, 0x23),
    v6(0xfd20, 0xce, 0x254),
];

const fn v4(a: u8, b: u8, c: u8, d: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(a, b, c, d))
}

/// The address with these first two parts and this last one.
const fn v6(first: u16, second: u16, last: u16) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(first, second, 0, 0, 0, 0, 0, last))
}

/// The networks of IPv4 that are not public: the address, the bits of its prefix, and the kind.
const IPV4: [(Ipv4Addr, u32, &str); 15] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8, "an address without a host"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, PRIVATE),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "an address behind a provider's translation"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, LOOPBACK),
    (Ipv4Addr::new(169, 254, 0, 0), 16, LINK_LOCAL),
    (Ipv4Addr::new(172, 16, 0, 0), 12, PRIVATE),
    (Ipv4Addr::new(192, 0, 0, 0), 24, RESERVED),
    (Ipv4Addr::new(192, 0, 2, 0), 24, DOCUMENTATION),
    (Ipv4Addr::new(192, 88, 99, 0), 24, RESERVED),
    (Ipv4Addr::new(192, 168, 0, 0), 16, PRIVATE),
    (Ipv4Addr::new(198, 18, 0, 0), 15, RESERVED),
    (Ipv4Addr::new(198, 51, 100, 0), 24, DOCUMENTATION),
    (Ipv4Addr::new(203, 0, 113, 0), 24, DOCUMENTATION),
    (Ipv4Addr::new(224, 0, 0, 0), 4, MULTICAST),
    (Ipv4Addr::new(240, 0, 0, 0), 4, RESERVED),
];

/// The same of IPv6. Of all others only those that begin with the bits 001 are public.
const IPV6: [(Ipv6Addr, u32, &str); 10] = [
    (Ipv6Addr::UNSPECIFIED, 128, "an address without a host"),
    (Ipv6Addr::LOCALHOST, 128, LOOPBACK),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, PRIVATE),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, LINK_LOCAL),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, PRIVATE),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, MULTICAST),
    // Teredo, benchmarks, ORCHID and others.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, RESERVED),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, DOCUMENTATION),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, DOCUMENTATION),
    (Ipv6Addr::new(0x5f00, 0, 0, 0, 0, 0, 0, 0), 16, RESERVED),
];

const PRIVATE: &str = "a private address";
const LOOPBACK: &str = "an address of the server's own machine (loopback)";
const LINK_LOCAL: &str = "a link-local address";
const MULTICAST: &str = "a multicast address";
const DOCUMENTATION: &str = "an address for documentation";
const RESERVED: &str = "a reserved address";
const OF_METADATA: &str = "the address of a cloud's metadata service, which only a grant of this \
                           one address allows";

/// The kind of an address to which nothing may be sent. None if it is public, or `ranges` have it.
pub(crate) fn prohibited(address: IpAddr, ranges: &[AddressRange]) -> Option<&'static str> {
    let address = address.to_canonical();
    let mut named = ranges.iter().filter(|range| range.has(address));
    if is_metadata(address) {
        return (!named.any(AddressRange::is_one)).then_some(OF_METADATA);
    }
    if named.next().is_some() { None } else { kind(address) }
}

/// Whether a metadata service has this address, or the one that a translator makes of it.
fn is_metadata(address: IpAddr) -> bool {
    let inside = match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => embedded(address),
    };
    METADATA.contains(&inside.map_or(address, IpAddr::V4))
}

/// The kind of an address that is not public.
fn kind(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => {
            let differs = |net: Ipv4Addr| address.to_bits() ^ net.to_bits();
            let is_in = |net, bits: u32| differs(net).leading_zeros() >= bits;
            IPV4.iter().find(|(net, bits, _)| is_in(*net, *bits)).map(|(_, _, kind)| *kind)
        }
        IpAddr::V6(address) => {
            if let Some(embedded) = embedded(address) {
                return kind(embedded.into());
            }
            let differs = |net: Ipv6Addr| address.to_bits() ^ net.to_bits();
            let is_in = |net, bits: u32| differs(net).leading_zeros() >= bits;
            let found = IPV6.iter().find(|(net, bits, _)| is_in(*net, *bits));
            let is_global = address.segments()[0] >> 13 == 1;
            found.map(|(_, _, kind)| *kind).or((!is_global).then_some(RESERVED))
        }
    }
}

/// The address of IPv4 to which a translator sends what goes to this one: of NAT64 with the
/// well-known prefix, or of 6to4.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let bits = match address.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => [high, low],
        _ => return None,
    };
    let [[a, b], [c, d]] = bits.map(u16::to_be_bytes);
    Some(Ipv4Addr::new(a, b, c, d))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(address: &str, ranges: &[&str]) -> Option<&'static str> {
        let ranges: Vec<_> = ranges.iter().map(|range| range.parse().unwrap()).collect();
        prohibited(address.parse().unwrap(), &ranges)
    }

    #[test]
    fn only_public_addresses_are_allowed() {
        for address in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.0.0.1",
            "128.0.0.1",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.167.0.1",
            "198.17.0.1",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700::1111",
            "2001:200::1",
            "2a00::1",
            "::ffff:1.1.1.1",
            "64:ff9b::1.1.1.1",
            "2002:101:101::1",
        ] {
            assert_eq!(told(address, &[]), None, "{address}");
        }
        for (address, kind) in [
            ("0.0.0.0", "without a host"),
            ("0.1.2.3", "without a host"),
            ("10.0.0.1", "private"),
            ("100.64.0.1", "translation"),
            ("100.127.255.255", "translation"),
            ("127.0.0.1", "loopback"),
            ("127.255.255.255", "loopback"),
            ("169.254.1.1", "link-local"),
            ("169.254.169.254", "metadata"),
            ("169.254.170.2", "metadata"),
            ("168.63.129.16", "metadata"),
            ("100.100.100.200", "metadata"),
            ("172.16.0.1", "private"),
            ("172.31.255.255", "private"),
            ("192.0.0.8", "reserved"),
            ("192.0.2.1", "documentation"),
            ("192.168.1.1", "private"),
            ("198.19.255.255", "reserved"),
            ("198.51.100.7", "documentation"),
            ("203.0.113.7", "documentation"),
            ("224.0.0.1", "multicast"),
            ("239.255.255.250", "multicast"),
            ("240.0.0.1", "reserved"),
            ("255.255.255.255", "reserved"),
            ("::", "without a host"),
            ("::1", "loopback"),
            ("::7f00:1", "reserved"),
            ("::ffff:127.0.0.1", "loopback"),
            ("::ffff:10.0.0.1", "private"),
            ("::ffff:169.254.169.254", "metadata"),
            ("64:ff9b::127.0.0.1", "loopback"),
            ("64:ff9b::10.0.0.1", "private"),
            ("64:ff9b::169.254.169.254", "metadata"),
            ("64:ff9b:1::1.1.1.1", "reserved"),
            ("2002:7f00:1::", "loopback"),
            ("2002:a00:1::1", "private"),
            ("2002:c0a8:101::1", "private"),
            ("100::1", "reserved"),
            ("2001::1", "reserved"),
            ("2001:db8::1", "documentation"),
            ("3fff::1", "documentation"),
            ("4000::1", "reserved"),
            ("5f00::1", "reserved"),
            ("fc00::1", "private"),
            ("fd12:3456::1", "private"),
            ("fd00:ec2::254", "metadata"),
            ("fe80::1", "link-local"),
            ("fec0::1", "private"),
            ("ff02::1", "multicast"),
        ] {
            let answer = told(address, &[]);
            assert!(answer.is_some_and(|text| text.contains(kind)), "{address}: {answer:?}");
        }
    }

    #[test]
    fn a_range_allows_what_it_names_and_no_metadata_by_the_way() {
        for (address, range, is_allowed) in [
            ("10.1.2.3", "10.0.0.0/8", true),
            ("11.1.2.3", "10.0.0.0/8", true),
            ("192.168.0.1", "10.0.0.0/8", false),
            ("::ffff:10.1.2.3", "10.0.0.0/8", true),
            // What a translator would make of it is another network's business.
            ("64:ff9b::10.1.2.3", "10.0.0.0/8", false),
            ("64:ff9b::10.1.2.3", "64:ff9b::/96", true),
            ("64:ff9b::169.254.169.254", "64:ff9b::/96", false),
            ("64:ff9b::169.254.169.254", "64:ff9b::169.254.169.254", true),
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.2", "127.0.0.1", false),
            ("::1", "127.0.0.0/8", false),
            ("fd00::1", "fd00::/8", true),
            ("169.254.169.254", "169.254.0.0/16", false),
            ("169.254.169.254", "169.254.169.254", true),
            ("::ffff:169.254.169.254", "169.254.169.254/32", true),
            ("fd00:ec2::254", "fd00::/8", false),
        ] {
            assert_eq!(told(address, &[range]).is_none(), is_allowed, "{address} {range}");
        }
    }
}
