//! Slows down callers who try wrong tokens, by their addresses. Knows no clock.
//!
//! A valid token passes in any case: the operator may be behind the same proxy as an attacker.
//! Wrong ones are refused at once rather than delayed: calls that wait would take up connections,
//! which are limited. So the bound keeps the log readable and tells attackers apart; that no token
//! is guessed follows from the tokens' length.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use gristmill_transport::client_of;

/// The wrong tokens that an address may send within [`WINDOW`] before it has to wait.
const FREE: u32 = 10;
const WINDOW: Duration = Duration::from_secs(60);

/// The first time for which it has to wait, and the longest. Each one is twice the one before.
const WAIT_MIN: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(60);

/// An address without a wrong token for so long begins anew.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(600);

/// Maximum addresses that are kept. The one whose last wrong token is the oldest goes first.
const CLIENTS_MAX: usize = 1024;

/// The addresses that sent wrong tokens.
#[derive(Default)]
pub(crate) struct Attempts(HashMap<IpAddr, Client>);

struct Client {
    /// When the window began, and the wrong tokens within it.
    began: Instant,
    failures: u32,
    /// The last one.
    last: Instant,
    /// How long it had to wait last, and until when.
    wait: Duration,
    until: Instant,
}

impl Attempts {
    /// Note that a wrong token came from `address` at `now`. Returns how long the address has to
    /// wait, if it has to.
    pub(crate) fn failed(&mut self, address: IpAddr, now: Instant) -> Option<Duration> {
        let address = client_of(address);
        let new = Client { began: now, failures: 0, last: now, wait: Duration::ZERO, until: now };
        if !self.0.contains_key(&address) && self.0.len() >= CLIENTS_MAX {
            let oldest = self.0.iter().min_by_key(|(_, client)| client.last);
            if let Some(oldest) = oldest.map(|(address, _)| *address) {
                self.0.remove(&oldest);
            }
        }
        let client = self.0.entry(address).or_insert(new);
        if now.duration_since(client.last) >= FORGOTTEN_AFTER {
            client.wait = Duration::ZERO;
        }
        client.last = now;
        if now < client.until {
            return Some(client.until - now);
        }
        if now.duration_since(client.began) >= WINDOW {
            (client.began, client.failures) = (now, 0);
        }
        client.failures += 1;
        if client.failures <= FREE && client.wait.is_zero() {
            return None;
        }
        client.wait = (client.wait * 2).clamp(WAIT_MIN, WAIT_MAX);
        client.until = now + client.wait;
        Some(client.wait)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    const ONE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn after_ten_wrong_tokens_in_a_minute_an_address_waits_longer_and_longer() {
        let (mut attempts, begun) = (Attempts::default(), Instant::now());
        for second in 0..10 {
            assert_eq!(attempts.failed(ONE, begun + seconds(second)), None);
        }
        let mut now = begun + seconds(10);
        for wait in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(attempts.failed(ONE, now), Some(seconds(wait)));
            assert_eq!(attempts.failed(ONE, now), Some(seconds(wait)), "while it waits");
            let half = seconds(wait) / 2;
            assert_eq!(attempts.failed(ONE, now + half), Some(seconds(wait) - half));
            assert_eq!(attempts.failed(OTHER, begun), attempts.failed(OTHER, begun));
            now += seconds(wait);
        }
        now += FORGOTTEN_AFTER;
        for _ in 0..10 {
            assert_eq!(attempts.failed(ONE, now), None, "forgotten");
        }
        assert_eq!(attempts.failed(ONE, now), Some(seconds(1)));
    }

    #[test]
    fn few_wrong_tokens_in_a_long_time_are_mistakes() {
        let (mut attempts, begun) = (Attempts::default(), Instant::now());
        for minute in 0..60 {
            for second in [0, 1, 2] {
                assert_eq!(attempts.failed(ONE, begun + seconds(60 * minute + second)), None);
            }
        }
    }

    #[test]
    fn a_network_of_ipv6_is_one_client_and_the_table_is_bounded() {
        let (mut attempts, now) = (Attempts::default(), Instant::now());
        let address = |network: u16, host: u16| {
            IpAddr::from(Ipv6Addr::new(0x2001, 0xdb8, 0, network, 0, 0, 0, host))
        };
        for host in 0..10 {
            assert_eq!(attempts.failed(address(1, host), now), None);
        }
        assert!(attempts.failed(address(1, 99), now).is_some());
        for network in 2..2000 {
            let later = now + Duration::from_millis(network.into());
            assert_eq!(attempts.failed(address(network, 0), later), None);
        }
        assert_eq!(attempts.0.len(), CLIENTS_MAX);
        assert!(!attempts.0.contains_key(&client_of(address(1, 0))), "the oldest one is gone");
        assert!(attempts.0.contains_key(&client_of(address(1999, 0))));
    }
}
