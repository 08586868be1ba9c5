//! A server that may be sent the user's keys, as the user names it: `openrouter.ai`, `127.0.0.1:8080`, `[::1]:8080`.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, de};
use spinney_drivers::http::HostName;
use spinney_kernel::primitives::HostRule;

/// Longest name of a host, by the rules of DNS.
const HOST_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

/// A server, at any port or at one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AllowedHost {
    /// In lower case; an IPv6 address in its brackets.
    host: String,
    /// Any port if absent.
    port: Option<u16>,
}

/// A text that names no server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAHost {
    text: String,
    why: &'static str,
}

impl fmt::Display for NotAHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, why } = self;
        let text: String = text.chars().take(60).collect();
        write!(
            f,
            "`{text}` is not a host: {why}; write a name or an address with an optional port, such as openrouter.ai or 127.0.0.1:8080"
        )
    }
}

impl std::error::Error for NotAHost {}

impl FromStr for AllowedHost {
    type Err = NotAHost;

    fn from_str(text: &str) -> Result<Self, NotAHost> {
        let wrong = |why| NotAHost { text: text.to_owned(), why };
        if text.contains("://") || text.contains('/') {
            return Err(wrong("leave out the scheme and the path"));
        }
        let (host, port) = match text.strip_prefix('[').map(|rest| rest.split_once(']')) {
            Some(Some((address, rest))) => {
                let address: Ipv6Addr =
                    address.parse().map_err(|_| wrong("the brackets do not contain an IPv6 address"))?;
                (format!("[{address}]"), rest.strip_prefix(':').ok_or(rest))
            }
            Some(None) => return Err(wrong("the bracket is not closed")),
            None => match text.split_once(':') {
                Some((_, port)) if port.contains(':') => return Err(wrong("an IPv6 address needs brackets")),
                Some((host, port)) => (named(host).map_err(wrong)?, Ok(port)),
                None => (named(text).map_err(wrong)?, Err("")),
            },
        };
        let port = match port {
            Ok(port) => {
                let digits = Some(port).filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
                let port = digits.and_then(|port| port.parse().ok()).filter(|port| *port > 0);
                Some(port.ok_or_else(|| wrong("the port must be a number from 1 to 65535"))?)
            }
            Err("") => None,
            Err(_) => return Err(wrong("there is text after the bracket")),
        };
        Ok(Self { host, port })
    }
}

impl AllowedHost {
    /// Whether it is the host of an address, at any port or at the named one.
    pub fn allows(&self, host: &HostName) -> bool {
        let has_host = match self.host.strip_prefix('*') {
            Some(domain) => host.host().strip_suffix(domain).is_some_and(|below| !below.is_empty()),
            None => self.host == host.host(),
        };
        has_host && self.port.is_none_or(|port| port == host.port())
    }

    /// Whether everything that a rule has is at this host, or below this domain.
    pub fn covers(&self, rule: &HostRule) -> bool {
        let Ok(any) = self.host.parse::<HostRule>() else { return false };
        rule.ports().iter().all(|port| {
            self.port.is_none_or(|allowed| allowed == *port) && any.at(*port).covers(&rule.at(*port))
        })
    }
}

/// A name, or an IPv4 address, in lower case.
fn named(host: &str) -> Result<String, &'static str> {
    if host.is_empty() || host.len() > HOST_BYTES_MAX {
        return Err("it is empty or too long");
    }
    let host = host.to_ascii_lowercase();
    if let Some(domain) = host.strip_prefix("*.") {
        // All names of a top-level domain are those of strangers.
        let is_below = host.parse::<HostRule>().is_ok() && !domain.contains(':');
        return if is_below { Ok(host) } else { Err("after `*.` comes a domain such as example.org") };
    }
    let is_label = |label: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        !label.is_empty()
            && label.len() <= LABEL_BYTES_MAX
            && label.bytes().all(is_plain)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    if host.contains('*') {
        return Err("a star is only allowed at its beginning, as in *.example.org");
    }
    if !host.split('.').all(is_label) {
        return Err("it contains invalid characters");
    }
    // What ends in a number is an address for every client, and may be written in odd ways.
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x");
    if is_number && host.parse::<Ipv4Addr>().is_err() {
        return Err("an IPv4 address has four numbers");
    }
    Ok(host)
}

impl fmt::Display for AllowedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl<'de> Deserialize<'de> for AllowedHost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_read_as_a_client_would_name_it() {
        for (written, read) in [
            ("OpenRouter.ai", "openrouter.ai"),
            ("localhost", "localhost"),
            ("127.0.0.1:8080", "127.0.0.1:8080"),
            ("[0:0::1]:8080", "[::1]:8080"),
            ("[::1]", "[::1]"),
            ("my_box:65535", "my_box:65535"),
        ] {
            assert_eq!(written.parse::<AllowedHost>().unwrap().to_string(), read);
        }
    }

    #[test]
    fn a_host_allows_its_own_addresses_only() {
        let allows = |allowed: &str, url: &str| {
            allowed.parse::<AllowedHost>().unwrap().allows(&HostName::of_url(url).unwrap())
        };
        for (allowed, url) in [
            ("models.example", "https://models.example/v1"),
            ("Models.Example", "https://MODELS.example:8443/v1"),
            ("models.example:443", "https://models.example/v1"),
            ("127.0.0.1:80", "http://127.0.0.1/v1"),
            ("127.0.0.1", "http://127.1:8080/v1"),
            ("[::1]:80", "http://[::1]/"),
        ] {
            assert!(allows(allowed, url), "{allowed} {url}");
        }
        for (allowed, url) in [
            ("models.example", "https://models.example.evil.example/"),
            ("models.example", "https://evil.example/models.example"),
            ("models.example", "https://models.example@evil.example/"),
            ("models.example:8443", "https://models.example/"),
            ("localhost", "http://127.0.0.1/"),
            ("example", "https://models.example/"),
        ] {
            assert!(!allows(allowed, url), "{allowed} {url}");
        }
    }

    #[test]
    fn what_is_not_a_host_is_refused() {
        for wrong in [
            "",
            " ",
            "a b",
            "https://a.b",
            "a.b/v1",
            "a..b",
            ".a",
            "a.",
            "a:",
            "a:0",
            "a:65536",
            "a:+1",
            "::1",
            "[::1",
            "[x]:1",
            "[::1]x",
            "-a.b",
            "bücher.de",
            "user@a.b",
            "127.1",
            "0x7f000001",
            "1.2.3.999",
            "2130706433",
        ] {
            assert!(wrong.parse::<AllowedHost>().is_err(), "{wrong}");
        }
        assert!("a".repeat(254).parse::<AllowedHost>().is_err());
        insta::assert_snapshot!("https://a.b".parse::<AllowedHost>().unwrap_err(), @"`https://a.b` is not a host: leave out the scheme and the path; write a name or an address with an optional port, such as openrouter.ai or 127.0.0.1:8080");
    }
}
