//! Hosts and ports that an agent may connect to, as people write them: `api.github.com`, `*.example.org`,
//! `localhost:8080`, `[::1]:443`. What they cover is decided by text alone. Drivers resolve names and keep private
//! addresses out, unless a rule names the address itself.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::IdError;

/// The ports of a rule that names none: those of `http` and `https`.
pub const WEB_PORTS: [u16; 2] = [80, 443];

/// Longest name of a host, and of one of the labels between its dots, as DNS has them.
const NAME_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

/// A host, as a rule or a request names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RemoteHost {
    /// In lower case and without a dot at its end.
    Name(Arc<str>),
    Address(IpAddr),
}

impl RemoteHost {
    /// Whether it is `localhost` or a name below it, which always means this machine.
    #[must_use]
    pub fn is_localhost(&self) -> bool {
        match self {
            Self::Name(name) => &**name == "localhost" || name.ends_with(".localhost"),
            Self::Address(address) => address.is_loopback(),
        }
    }
}

impl FromStr for RemoteHost {
    type Err = IdError;

    /// An address of version 6 is in brackets. Only the usual form of an address is one, so `127.1` and `0x7f000001`,
    /// which some resolvers read as addresses, are not hosts.
    fn from_str(text: &str) -> Result<Self, IdError> {
        let invalid = || {
            IdError::new(
                "host",
                text,
                "a name such as `api.example.org`, an address such as `192.0.2.1`, or `[2001:db8::1]`",
            )
        };
        if let Some(inside) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let address: Ipv6Addr = inside.parse().map_err(|_| invalid())?;
            return Ok(Self::Address(IpAddr::V6(address).to_canonical()));
        }
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Ok(Self::Address(IpAddr::V4(address)));
        }
        let name = text.to_ascii_lowercase();
        if is_host_name(&name) { Ok(Self::Name(name.into())) } else { Err(invalid()) }
    }
}

impl fmt::Display for RemoteHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// A host, or every name below a domain, with one port or [`WEB_PORTS`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct HostRule {
    hosts: Hosts,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Hosts {
    One(RemoteHost),
    /// Every name that ends in a dot and this one, but not the name itself.
    Below(Arc<str>),
}

impl HostRule {
    /// A rule for one host and one port.
    #[must_use]
    pub const fn one(host: RemoteHost, port: u16) -> Self {
        Self { hosts: Hosts::One(host), port: Some(port) }
    }

    /// Whether a connection to a port of a host is covered.
    #[must_use]
    pub fn has(&self, host: &RemoteHost, port: u16) -> bool {
        let has_host = match (&self.hosts, host) {
            (Hosts::One(one), host) => one == host,
            (Hosts::Below(domain), RemoteHost::Name(name)) => is_below(name, domain),
            (Hosts::Below(_), RemoteHost::Address(_)) => false,
        };
        has_host && self.ports().contains(&port)
    }

    /// Whether it has everything that another rule has.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let covers_hosts = match (&self.hosts, &other.hosts) {
            (Hosts::One(one), Hosts::One(other)) => one == other,
            (Hosts::One(_), Hosts::Below(_)) | (Hosts::Below(_), Hosts::One(RemoteHost::Address(_))) => false,
            (Hosts::Below(domain), Hosts::One(RemoteHost::Name(name))) => is_below(name, domain),
            (Hosts::Below(domain), Hosts::Below(other)) => domain == other || is_below(other, domain),
        };
        covers_hosts && other.ports().iter().all(|port| self.ports().contains(port))
    }

    /// The one host that it names, if it is not a pattern.
    #[must_use]
    pub const fn host(&self) -> Option<&RemoteHost> {
        match &self.hosts {
            Hosts::One(host) => Some(host),
            Hosts::Below(_) => None,
        }
    }

    /// The address that it names, if it names one.
    #[must_use]
    pub const fn address(&self) -> Option<IpAddr> {
        match self.hosts {
            Hosts::One(RemoteHost::Address(address)) => Some(address),
            Hosts::One(RemoteHost::Name(_)) | Hosts::Below(_) => None,
        }
    }

    /// Its hosts, at one port.
    #[must_use]
    pub fn at(&self, port: u16) -> Self {
        Self { hosts: self.hosts.clone(), port: Some(port) }
    }

    #[must_use]
    pub fn ports(&self) -> &[u16] {
        self.port.as_ref().map_or(&WEB_PORTS, std::slice::from_ref)
    }
}

impl FromStr for HostRule {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let invalid = || {
            IdError::new(
                "host",
                text,
                "a host such as `api.example.org`, `*.example.org`, `192.0.2.1` or `[2001:db8::1]`, and `:` with a port unless it is 80 or 443; names of other scripts in their `xn--` form",
            )
        };
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port_from(port).ok_or_else(invalid)?)),
            Some(_) | None => (text, None),
        };
        let hosts = match host.strip_prefix("*.") {
            Some(domain) => {
                let domain = domain.to_ascii_lowercase();
                // All names of a top-level domain are those of strangers.
                if !is_host_name(&domain) || !domain.contains('.') {
                    return Err(invalid());
                }
                Hosts::Below(domain.into())
            }
            None => Hosts::One(host.parse().map_err(|_| invalid())?),
        };
        Ok(Self { hosts, port })
    }
}

impl TryFrom<String> for HostRule {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl From<HostRule> for String {
    fn from(rule: HostRule) -> Self {
        rule.to_string()
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hosts {
            Hosts::One(host) => write!(f, "{host}")?,
            Hosts::Below(domain) => write!(f, "*.{domain}")?,
        }
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

fn is_below(name: &str, domain: &str) -> bool {
    name.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
}

/// Digits only, as `+80` and `080` are not how ports are written.
fn port_from(text: &str) -> Option<u16> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|_| digits)
}

/// Names of DNS in lower case. Where the last label begins with a digit, a resolver may read the whole as an address.
fn is_host_name(name: &str) -> bool {
    let label = |label: &str| {
        let plain = label.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'));
        plain
            && !label.is_empty()
            && label.len() <= LABEL_BYTES_MAX
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = name.rsplit('.').next().unwrap_or_default();
    name.len() <= NAME_BYTES_MAX
        && name.split('.').all(label)
        && !last.starts_with(|first: char| first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(text: &str) -> HostRule {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    fn host(text: &str) -> RemoteHost {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    /// G26 (by text): a rule is written back as it was read, and what could mean something else is not a rule.
    #[test]
    fn g26_only_hosts_and_ports_in_their_usual_form_are_rules() {
        for (text, shown) in [
            ("api.github.com:443", "api.github.com:443"),
            ("API.GitHub.com", "api.github.com"),
            ("*.example.org", "*.example.org"),
            ("*.example.org:8080", "*.example.org:8080"),
            ("localhost:3000", "localhost:3000"),
            ("_dmarc.a-b.xn--bcher-kva.example", "_dmarc.a-b.xn--bcher-kva.example"),
            ("10.0.0.5:5432", "10.0.0.5:5432"),
            ("[::1]", "[::1]"),
            ("[2001:db8:0:0::1]:443", "[2001:db8::1]:443"),
            ("[::ffff:127.0.0.1]:80", "127.0.0.1:80"),
        ] {
            assert_eq!(rule(text).to_string(), shown);
            assert_eq!(rule(shown), rule(text));
        }
        let (long_label, long) = (format!("{}.org", "a".repeat(64)), format!("{}org", "a.".repeat(126)));
        for bad in [
            "",
            "*",
            "*.",
            "*.org",
            "*.*.org",
            "a.*.org",
            "*example.org",
            "**.example.org",
            ":443",
            "a.org:",
            "a.org:0",
            "a.org:080",
            "a.org:+80",
            "a.org:65536",
            "a.org:80:80",
            "a..org",
            ".a.org",
            "a.org.",
            "-a.org",
            "a-.org",
            "a b.org",
            "a/b",
            "user@a.org",
            "https://a.org",
            "127.1",
            "0x7f000001",
            "2130706433",
            "127.0.0.01",
            "1.2.3.4.5",
            "a.0x10",
            "::1",
            "[::1",
            "::1]",
            "[::1]80",
            "[fe80::1%eth0]",
            "b\u{fc}cher.example",
            "a\u{2024}org",
            "a.org\n",
            "\u{ff41}.org",
            &long_label,
            &long,
        ] {
            assert!(bad.parse::<HostRule>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_rule_has_its_hosts_at_its_ports() {
        for (text, to, port, has) in [
            ("a.org", "a.org", 443, true),
            ("a.org", "A.ORG", 80, true),
            ("a.org", "a.org", 22, false),
            ("a.org:22", "a.org", 22, true),
            ("a.org:22", "a.org", 443, false),
            ("a.org", "b.a.org", 443, false),
            ("*.a.org", "b.a.org", 443, true),
            ("*.a.org", "c.b.a.org", 443, true),
            ("*.a.org", "a.org", 443, false),
            ("*.a.org", "ba.org", 443, false),
            ("*.a.org", "a.org.b", 443, false),
            ("127.0.0.1", "127.0.0.1", 80, true),
            ("127.0.0.1", "[::ffff:127.0.0.1]", 80, true),
            ("127.0.0.1", "127.0.0.2", 80, false),
            ("localhost", "127.0.0.1", 80, false),
        ] {
            assert_eq!(rule(text).has(&host(to), port), has, "{text} {to} {port}");
        }
    }

    #[test]
    fn a_rule_covers_what_it_has_and_nothing_else() {
        for (text, other, covers) in [
            ("a.org", "a.org", true),
            ("a.org", "a.org:443", true),
            ("a.org:443", "a.org", false),
            ("a.org:443", "a.org:80", false),
            ("*.a.org", "b.a.org", true),
            ("*.a.org", "*.a.org:80", true),
            ("*.a.org", "*.b.a.org", true),
            ("*.b.a.org", "*.a.org", false),
            ("*.a.org", "a.org", false),
            ("a.org", "*.a.org", false),
            ("*.a.org", "10.0.0.1", false),
            ("10.0.0.1", "10.0.0.1:80", true),
        ] {
            assert_eq!(rule(text).covers(&rule(other)), covers, "{text} {other}");
        }
    }
}
