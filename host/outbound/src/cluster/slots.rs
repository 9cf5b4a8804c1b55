//! Which slot a key has, and what a cluster answers about its slots.

use redis::{ServerError, Value};

/// The slots of a cluster.
pub(crate) const SLOTS: u16 = 16384;

/// The remainders of CRC-16 (XMODEM) for each byte.
const CRC: [u16; 256] = remainders();

/// A server of a cluster, as the cluster names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// Slots that one server has.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) first: u16,
    pub(crate) last: u16,
    pub(crate) server: Address,
}

/// Where a server of the cluster sends the one that asks for a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Redirect {
    /// The slot of the key is there.
    Moved(Address),
    /// The slot is being moved there, and this key may be there already.
    Ask(Address),
}

/// The slot of a key: that of the part in braces, if the key has one.
pub(crate) fn slot_of(key: &[u8]) -> u16 {
    let tag = || {
        let begin = key.iter().position(|byte| *byte == b'{')? + 1;
        let rest = key.get(begin..)?;
        let length = rest.iter().position(|byte| *byte == b'}').filter(|length| *length > 0)?;
        rest.get(..length)
    };
    let step = |crc: u16, byte: &u8| (crc << 8) ^ CRC[usize::from((crc >> 8) as u8 ^ byte)];
    tag().unwrap_or(key).iter().fold(0, step) % SLOTS
}

const fn remainders() -> [u16; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

/// The answer of the server at `asked` to `CLUSTER SLOTS`. None if it is another one.
pub(crate) fn ranges(answer: &[Value], asked: &Address) -> Option<Vec<Range>> {
    let [Value::Array(ranges)] = answer else { return None };
    // A slot has one server, so the work for an answer is bounded.
    if ranges.len() > usize::from(SLOTS) {
        return None;
    }
    let ranges: Vec<_> =
        ranges.iter().map(|range| range_of(range, asked)).collect::<Option<_>>()?;
    let slots: usize = ranges.iter().map(|range| usize::from(range.last - range.first) + 1).sum();
    (slots <= usize::from(SLOTS)).then_some(ranges)
}

fn range_of(range: &Value, asked: &Address) -> Option<Range> {
    let Value::Array(parts) = range else { return None };
    let [Value::Int(first), Value::Int(last), Value::Array(server), ..] = parts.as_slice() else {
        return None;
    };
    let [host, Value::Int(port), ..] = server.as_slice() else { return None };
    let host = match host {
        Value::BulkString(host) => str::from_utf8(host).ok()?,
        Value::Nil => "",
        _ => return None,
    };
    let server = address(host, u16::try_from(*port).ok()?, asked)?;
    let (first, last) = (u16::try_from(*first).ok()?, u16::try_from(*last).ok()?);
    (first <= last && last < SLOTS).then_some(Range { first, last, server })
}

/// The address that a server means: without a host, its own one.
fn address(host: &str, port: u16, asked: &Address) -> Option<Address> {
    let host = if host.is_empty() { &asked.host } else { host };
    // A server that does not know its name says "?".
    (host != "?" && port > 0).then(|| Address { host: host.to_owned(), port })
}

impl Redirect {
    /// Where the server at `asked` sends. None if this is another error.
    pub(crate) fn of(error: &ServerError, asked: &Address) -> Option<Self> {
        let redirect = match error.code() {
            "MOVED" => Self::Moved,
            "ASK" => Self::Ask,
            _ => return None,
        };
        let (_, server) = error.details()?.split_once(' ')?;
        let (host, port) = server.rsplit_once(':')?;
        address(host, port.parse().ok()?, asked).map(redirect)
    }
}

#[cfg(test)]
mod tests {
    use redis::parse_redis_value;

    use super::*;

    fn at(host: &str, port: u16) -> Address {
        Address { host: host.to_owned(), port }
    }

    #[test]
    fn a_key_has_the_slot_that_redis_gives_it() {
        // As `CLUSTER KEYSLOT` answers.
        for (key, slot) in [("", 0), ("a", 15495), ("123456789", 12739), ("foo", 12182)] {
            assert_eq!(slot_of(key.as_bytes()), slot, "{key}");
        }
        for (tagged, tag) in [("f:{foo}.x", "foo"), ("{foo}{bar}", "foo"), ("{{foo}}", "{foo")] {
            assert_eq!(slot_of(tagged.as_bytes()), slot_of(tag.as_bytes()), "{tagged}");
        }
        // Without something between braces, the whole key counts.
        for (one, other) in [("x{}foo", "foo"), ("x{foo", "foo"), ("x}foo{", "")] {
            assert_ne!(slot_of(one.as_bytes()), slot_of(other.as_bytes()), "{one}");
        }
    }

    #[test]
    fn the_slots_of_a_cluster_are_read() {
        let own_address = at("10.0.0.7", 6379);
        let read =
            |text: &str| ranges(&[parse_redis_value(text.as_bytes()).unwrap()], &own_address);
        let replica = "*2\r\n$8\r\n10.0.0.9\r\n:6379\r\n";
        let text = format!(
            "*3\r\n*4\r\n:0\r\n:5\r\n*3\r\n$8\r\n10.0.0.8\r\n:7\r\n$2\r\nid\r\n{replica}\
             *3\r\n:6\r\n:6\r\n*2\r\n$-1\r\n:8\r\n*3\r\n:7\r\n:16383\r\n*2\r\n$0\r\n\r\n:9\r\n"
        );
        let range = |first, last, server| Range { first, last, server };
        let expected = vec![
            range(0, 5, at("10.0.0.8", 7)),
            range(6, 6, at("10.0.0.7", 8)),
            range(7, 16383, at("10.0.0.7", 9)),
        ];
        assert_eq!(read(&text), Some(expected));
        assert_eq!(read("*0\r\n"), Some(Vec::new()));
        for absurd in [
            ":7\r\n",
            "*1\r\n:7\r\n",
            "*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\nh\r\n:7\r\n",
            "*1\r\n*3\r\n:5\r\n:4\r\n*2\r\n$1\r\nh\r\n:7\r\n",
            "*1\r\n*3\r\n:0\r\n:4\r\n*2\r\n$1\r\nh\r\n:70000\r\n",
            "*1\r\n*3\r\n:0\r\n:4\r\n*2\r\n$1\r\n?\r\n:7\r\n",
            "*2\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$1\r\nh\r\n:7\r\n\
             *3\r\n:0\r\n:0\r\n*2\r\n$1\r\nh\r\n:7\r\n",
        ] {
            assert_eq!(read(absurd), None, "{absurd}");
        }
    }

    #[test]
    fn a_redirect_names_a_server() {
        let own_address = at("10.0.0.7", 6379);
        let of = |line: &str| {
            let Ok(Value::ServerError(error)) = parse_redis_value(line.as_bytes()) else {
                panic!("{line}")
            };
            Redirect::of(&error, &own_address)
        };
        assert_eq!(of("-MOVED 7 10.0.0.8:6379\r\n"), Some(Redirect::Moved(at("10.0.0.8", 6379))));
        assert_eq!(of("-ASK 7 ::1:6380\r\n"), Some(Redirect::Ask(at("::1", 6380))));
        assert_eq!(of("-MOVED 7 :6380\r\n"), Some(Redirect::Moved(at("10.0.0.7", 6380))));
        for other in ["-MOVED 7\r\n", "-MOVED 7 x\r\n", "-ASK 7 ?:1\r\n", "-ERR MOVED 7 h:1\r\n"] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
