//! Where calls may go. A name is only ever allowed towards public addresses; an address that is not public is allowed by
//! its network alone, so that whoever owns a name cannot point it into the machine's own surroundings.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

/// The destinations that calls may go to: the word `public`, names, `*.suffix`, addresses and networks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowList {
    public: bool,
    names: Vec<Pattern>,
    networks: Vec<Network>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    Exactly(String),
    /// With the dot it begins with.
    Below(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    prefix: u8,
}

impl AllowList {
    /// Every public address, and no other.
    #[must_use]
    pub fn public() -> Self {
        Self { public: true, ..Self::default() }
    }

    /// Whether a connection may be made to an address that was reached by this name, or was written itself.
    #[must_use]
    pub fn permits(&self, name: Option<&str>, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(address))
            || (is_public(address) && (self.public || name.is_some_and(|name| self.names_it(name))))
    }

    /// Whether a name can lead anywhere that is allowed.
    pub(super) fn may_look_up(&self, name: &str) -> bool {
        self.public || !self.networks.is_empty() || self.names_it(name)
    }

    fn names_it(&self, name: &str) -> bool {
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        self.names.iter().any(|pattern| match pattern {
            Pattern::Exactly(exactly) => *exactly == name,
            Pattern::Below(suffix) => name.len() > suffix.len() && name.ends_with(suffix.as_str()),
        })
    }
}

impl FromStr for AllowList {
    type Err = String;

    /// Reads entries with commas or blanks between; nothing at all allows nothing.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut list = Self::default();
        for entry in text.split([',', ' ', '\n', '\t']).filter(|entry| !entry.is_empty()) {
            let lower = entry.to_ascii_lowercase();
            if lower == "public" {
                list.public = true;
            } else if let Some(network) = Network::read(&lower)? {
                list.networks.push(network);
            } else {
                list.names.push(Pattern::read(&lower)?);
            }
        }
        Ok(list)
    }
}

impl Pattern {
    fn read(entry: &str) -> Result<Self, String> {
        let (name, below) = match entry.strip_prefix("*.") {
            Some(rest) => (rest, true),
            None => (entry, false),
        };
        let label = |label: &str| {
            !label.is_empty()
                && label.len() <= 63
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
        };
        let ends_in_number = name
            .rsplit('.')
            .next()
            .is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit()) || last.starts_with("0x"));
        if name.len() > 253 || !name.split('.').all(label) || ends_in_number {
            return Err(format!(
                "{entry:?} is no destination; write the word public, a host's name, *.example.org, an address or a \
                 network as 10.20.0.0/16, with commas between, without ports"
            ));
        }
        Ok(if below { Self::Below(format!(".{name}")) } else { Self::Exactly(name.to_owned()) })
    }
}

impl Network {
    /// The network that an entry means; nothing if it does not look like one.
    fn read(entry: &str) -> Result<Option<Self>, String> {
        let (address, prefix) = match entry.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (entry, None),
        };
        let Ok(address) = address.trim_matches(['[', ']']).parse::<IpAddr>() else {
            return match prefix {
                Some(_) => Err(format!("{entry:?} is no network; write one as 10.20.0.0/16 or fd00:1::/32")),
                None => Ok(None),
            };
        };
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => longest,
            Some(text) => text
                .parse()
                .ok()
                .filter(|prefix| *prefix <= longest)
                .ok_or_else(|| format!("{entry:?}: the number after / must be from 0 to {longest}"))?,
        };
        let network = Self { address, prefix };
        let first = network.first();
        if first != address {
            return Err(format!("{entry:?} is not how a network begins; write {first}/{prefix}"));
        }
        Ok(Some(network))
    }

    fn first(self) -> IpAddr {
        match self.address {
            IpAddr::V4(address) => Ipv4Addr::from_bits(v4(address, self.prefix)).into(),
            IpAddr::V6(address) => Ipv6Addr::from_bits(v6(address, self.prefix)).into(),
        }
    }

    fn contains(self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => v4(own, self.prefix) == v4(other, self.prefix),
            (IpAddr::V6(own), IpAddr::V6(other)) => v6(own, self.prefix) == v6(other, self.prefix),
            _ => false,
        }
    }
}

fn v4(address: Ipv4Addr, prefix: u8) -> u32 {
    address.to_bits() & u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0)
}

fn v6(address: Ipv6Addr, prefix: u8) -> u128 {
    address.to_bits() & u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0)
}

/// What is not public of IPv4, by IANA's registry of special-purpose addresses (RFC 6890 and what followed it).
const SPECIAL_V4: [(u32, u8); 16] = [
    (0x0000_0000, 8),  // this network
    (0x0a00_0000, 8),  // private
    (0x6440_0000, 10), // shared by carriers
    (0x7f00_0000, 8),  // loopback
    (0xa9fe_0000, 16), // link-local, where clouds keep their metadata
    (0xac10_0000, 12), // private
    (0xc000_0000, 24), // protocol assignments
    (0xc000_0200, 24), // documentation
    (0xc058_6300, 24), // 6to4 relays, which are no more
    (0xc0a8_0000, 16), // private
    (0xc612_0000, 15), // benchmarks
    (0xc633_6400, 24), // documentation
    (0xcb00_7100, 24), // documentation
    (0xe000_0000, 4),  // multicast
    (0xf000_0000, 4),  // reserved
    (0xffff_ffff, 32), // broadcast
];

/// What is not public within the one part of IPv6 that is (`2000::/3`).
const SPECIAL_V6: [(u128, u8); 4] = [
    (0x2001_0000 << 96, 23), // protocol assignments, Teredo among them
    (0x2001_0db8 << 96, 32), // documentation
    (0x2002_0000 << 96, 16), // 6to4, which holds an address of IPv4
    (0x3fff_0000 << 96, 20), // documentation
];

/// Whether an address is one of the public Internet. Of IPv6 only `2000::/3` can be, so those that hold an address of IPv4
/// (mapped, NAT64) are none.
fn is_public(address: IpAddr) -> bool {
    let within = |(first, prefix): (IpAddr, u8)| Network { address: first, prefix }.contains(address);
    match address {
        IpAddr::V4(_) => {
            !SPECIAL_V4.iter().any(|(first, prefix)| within((Ipv4Addr::from_bits(*first).into(), *prefix)))
        }
        IpAddr::V6(_) => {
            within((Ipv6Addr::from_bits(0x2000_0000 << 96).into(), 3))
                && !SPECIAL_V6
                    .iter()
                    .any(|(first, prefix)| within((Ipv6Addr::from_bits(*first).into(), *prefix)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> AllowList {
        text.parse().unwrap()
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn addresses_that_are_not_public_are_refused_unless_their_network_is_allowed() {
        let not_public = [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.1.1.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::808:808",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ];
        for text in not_public {
            let address = ip(text);
            assert!(!list("public, *.example.org").permits(Some("a.example.org"), address), "{text}");
            assert!(list(text).permits(None, address), "{text} is allowed by itself");
            assert!(list(text).permits(Some("any.name"), address), "{text} is allowed by any name");
        }
        for text in ["1.1.1.1", "8.8.8.8", "100.128.0.1", "172.32.0.1", "2606:4700::1", "2a00:1450::1"] {
            assert!(AllowList::public().permits(None, ip(text)), "{text}");
            assert!(!list("").permits(Some("a.example.org"), ip(text)), "{text}");
        }
    }

    #[test]
    fn names_allow_themselves_and_suffixes_what_is_below() {
        let named = list("hooks.example.com *.Example.ORG");
        let public = ip("1.1.1.1");
        for name in ["hooks.example.com", "HOOKS.example.com.", "a.example.org", "a.b.example.org"] {
            assert!(named.permits(Some(name), public), "{name}");
        }
        for name in
            ["example.com", "xhooks.example.com", "example.org", "evilexample.org", "a.example.org.evil.com"]
        {
            assert!(!named.permits(Some(name), public), "{name}");
            assert!(!named.may_look_up(name), "{name}");
        }
        assert!(!named.permits(None, public));
    }

    #[test]
    fn networks_end_where_they_end() {
        let networks = list("10.20.0.0/16,fd00:1::/32,0.0.0.0/0");
        assert!(networks.permits(None, ip("10.20.255.255")) && networks.permits(None, ip("127.0.0.1")));
        assert!(networks.permits(None, ip("fd00:1:ffff::")) && !networks.permits(None, ip("fd00:2::")));
        assert!(!list("10.20.0.0/16").permits(None, ip("10.21.0.0")));
    }

    #[test]
    fn what_is_no_destination_is_refused_with_what_would_do() {
        for (entry, hint) in [
            ("10.1.2.3/8", "10.0.0.0/8"),
            ("10.0.0.0/33", "0 to 32"),
            ("fd00::/129", "0 to 128"),
            ("host/8", "no network"),
            ("host:80", "without ports"),
            ("http://host", "no network"),
            ("*", "no destination"),
            ("a.*.org", "no destination"),
            ("127.1", "no destination"),
            ("0x7f000001", "no destination"),
            ("2130706433", "no destination"),
            ("a..b", "no destination"),
        ] {
            let error = entry.parse::<AllowList>().unwrap_err();
            assert!(error.contains(hint), "{entry}: {error}");
        }
    }
}
