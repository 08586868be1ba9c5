//! The server of an address, for people and for comparing.

use std::fmt;

use reqwest::Url;

use super::post::is_loopback;

/// The host and port of an address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName {
    /// In lower case; an IPv6 address in brackets.
    host: String,
    port: u16,
    /// Whether the scheme says the port already.
    is_usual_port: bool,
}

impl HostName {
    /// The host of an address, if it has one.
    #[must_use]
    pub fn of_url(url: &str) -> Option<Self> {
        let url = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
        // DNS takes a name with a dot at its end for the same name.
        let host = url.host_str()?.trim_end_matches('.').to_owned();
        let port = url.port_or_known_default()?;
        (!host.is_empty()).then_some(Self { host, port, is_usual_port: url.port().is_none() })
    }

    /// Without the port.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Whether it is this machine.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        Url::parse(&format!("http://{}/", self.host)).is_ok_and(|url| is_loopback(&url))
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.host)?;
        if self.is_usual_port { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(url: &str) -> Option<String> {
        HostName::of_url(url).map(|host| host.to_string())
    }

    #[test]
    fn a_host_is_the_same_however_its_address_is_written() {
        for (url, host) in [
            ("https://Models.Example/v1", "models.example"),
            ("https://models.example.:443/", "models.example"),
            ("https://models.example:8443", "models.example:8443"),
            ("http://127.1:8080/v1", "127.0.0.1:8080"),
            ("http://2130706433/", "127.0.0.1"),
            ("https://[::1]:80/", "[::1]:80"),
            ("https://models.example@evil.example/", "evil.example"),
            ("https://models.example\\@evil.example/", "models.example"),
        ] {
            assert_eq!(shown(url).as_deref(), Some(host), "{url}");
        }
        for url in ["file:///etc/passwd", "not an address", "https://", "data:,x"] {
            assert_eq!(shown(url), None, "{url}");
        }
        assert_eq!(HostName::of_url("http://a.example/").unwrap().port(), 80);
        assert_eq!(HostName::of_url("https://a.example/").unwrap().port(), 443);
    }

    #[test]
    fn this_machine_is_known_by_all_its_names() {
        let is_loopback = |host: &str| HostName::of_url(&format!("http://{host}/")).unwrap().is_loopback();
        for here in ["localhost", "127.0.0.1:1", "127.9.9.9", "[::1]"] {
            assert!(is_loopback(here), "{here}");
        }
        for away in ["localhost.example", "10.0.0.1", "models.example", "[::2]"] {
            assert!(!is_loopback(away), "{away}");
        }
    }
}
