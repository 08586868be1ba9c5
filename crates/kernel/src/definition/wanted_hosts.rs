//! The hosts that a tool call names, so that a person can be asked for those that its agent was not granted. A call names
//! single hosts with single ports: a person sees exactly what a yes allows.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Network, arguments};
use crate::primitives::{HostRule, RemoteHost, limit};

/// The tool that reads pages of the web. Other layers name it as well.
pub const FETCH: &str = "fetch";

/// Whether an agent may ask a person for hosts that it was not granted. It only shrinks downwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostRequests {
    #[default]
    Refused,
    /// For each call, unless the answer says that it is remembered.
    Ask,
}

impl HostRequests {
    #[must_use]
    pub const fn is_refused(&self) -> bool {
        matches!(self, Self::Refused)
    }
}

/// Which argument of a tool names the hosts that a call connects to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostsArgument {
    pub argument: String,
    pub kind: HostsKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostsKind {
    /// A list of hosts beside those that the agent was granted. Anything else is refused before the tool is called.
    List,
    /// An address of the web. Without hosts in it, the tool says what is wrong with it.
    Url,
}

impl HostsArgument {
    #[must_use]
    pub fn list(argument: &str) -> Self {
        Self { argument: argument.to_owned(), kind: HostsKind::List }
    }

    #[must_use]
    pub fn url(argument: &str) -> Self {
        Self { argument: argument.to_owned(), kind: HostsKind::Url }
    }

    /// The hosts of a call, each with one port.
    ///
    /// # Errors
    /// What is wrong with a list, in words.
    pub fn of_call(&self, args: &str) -> Result<Network, String> {
        let values = arguments::values(args, &self.argument).unwrap_or_default();
        match (self.kind, values.as_slice()) {
            (HostsKind::Url, [Value::String(url)]) => {
                Ok(Network::hosts(host_of_url(url).map(|(host, port)| HostRule::one(host, port))))
            }
            (HostsKind::Url, _) | (HostsKind::List, [] | [Value::Null]) => Ok(Network::Denied),
            (HostsKind::List, [Value::Array(list)]) => self.of_list(list),
            (HostsKind::List, [_]) => Err(format!("`{}` is not a list of hosts", self.argument)),
            (HostsKind::List, [_, _, ..]) => Err(format!("`{}` is there more than once", self.argument)),
        }
    }

    fn of_list(&self, list: &[Value]) -> Result<Network, String> {
        let count_max = limit::HOSTS_ASKED_MAX;
        if list.len() > count_max {
            return Err(format!("{} hosts in `{}`, the limit is {count_max}", list.len(), self.argument));
        }
        let mut hosts = Vec::new();
        for value in list {
            let text = value.as_str().ok_or_else(|| format!("`{}` is not a list of texts", self.argument))?;
            let rule: HostRule = text.parse().map_err(|error| format!("{error}"))?;
            if rule.host().is_none() {
                return Err(format!("`{rule}` is more than one host: name each that you need"));
            }
            hosts.extend(rule.ports().iter().map(|port| rule.at(*port)));
        }
        Ok(Network::hosts(hosts))
    }
}

/// The host and the port of an address that is written in the usual form. The tool reads it again by its own rules, and
/// connects to nothing that was not allowed by name.
pub(super) fn host_of_url(url: &str) -> Option<(RemoteHost, u16)> {
    let (scheme, rest) = url.split_once("://")?;
    let port = match scheme {
        _ if scheme.eq_ignore_ascii_case("https") => 443,
        _ if scheme.eq_ignore_ascii_case("http") => 80,
        _ => return None,
    };
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let host = &rest[..end];
    if host.contains(['@', '*']) {
        return None;
    }
    let rule: HostRule = host.parse().ok()?;
    let named = match rule.ports() {
        [port] => *port,
        _ => port,
    };
    Some((rule.host()?.clone(), named))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G26 (what a call names): single hosts with single ports, and never something that two readers read differently.
    #[test]
    fn g26_a_call_names_single_hosts() {
        let (list, url) = (HostsArgument::list("hosts"), HostsArgument::url("url"));
        for (argument, args, hosts) in [
            (&list, r#"{"command": "x"}"#, "no host"),
            (&list, r#"{"hosts": null}"#, "no host"),
            (&list, r#"{"hosts": []}"#, "no host"),
            (&list, r#"{"hosts": ["A.org:443", "a.org:443"]}"#, "`a.org:443`"),
            (&list, r#"{"hosts": ["a.org"]}"#, "`a.org:80`, `a.org:443`"),
            (&list, r#"{"hosts": ["[::1]:8080", "10.0.0.5:22"]}"#, "`10.0.0.5:22`, `[::1]:8080`"),
            (&url, r#"{"url": "https://a.org/x?y#z"}"#, "`a.org:443`"),
            (&url, r#"{"url": "HTTP://A.org"}"#, "`a.org:80`"),
            (&url, r#"{"url": "http://a.org:443/"}"#, "`a.org:443`"),
            (&url, r#"{"url": "https://[::1]:8080/"}"#, "`[::1]:8080`"),
            (&url, r#"{"url": "https://a.org\\@b.org/"}"#, "`a.org:443`"),
            (&url, r#"{"url": "https://a.org/", "url": "https://b.org/"}"#, "no host"),
            (&url, r#"{"url": "https://a.org@b.org/"}"#, "no host"),
            (&url, r#"{"url": "https://*.a.org/"}"#, "no host"),
            (&url, r#"{"url": "https://a.org./"}"#, "no host"),
            (&url, r#"{"url": "https://a%2eorg/"}"#, "no host"),
            (&url, r#"{"url": "https://0x7f.1/"}"#, "no host"),
            (&url, r#"{"url": "https:a.org"}"#, "no host"),
            (&url, r#"{"url": "ftp://a.org/"}"#, "no host"),
            (&url, r#"{"url": 7}"#, "no host"),
        ] {
            assert_eq!(argument.of_call(args).map(|hosts| hosts.to_string()), Ok(hosts.to_owned()), "{args}");
        }
        let many =
            format!(r#"{{"hosts": [{}]}}"#, vec![r#""a.org:443""#; limit::HOSTS_ASKED_MAX + 1].join(","));
        for (args, problem) in [
            (r#"{"hosts": "a.org"}"#, "not a list of hosts"),
            (r#"{"hosts": [1]}"#, "not a list of texts"),
            (r#"{"hosts": ["a.org"], "hosts": ["b.org"]}"#, "more than once"),
            (r#"{"hosts": ["*.a.org"]}"#, "`*.a.org` is more than one host"),
            (r#"{"hosts": ["https://a.org"]}"#, "https://a.org"),
            (&many, "17 hosts in `hosts`, the limit is 16"),
        ] {
            let said = list.of_call(args).unwrap_err();
            assert!(said.contains(problem), "{args}: {said}");
        }
    }
}
