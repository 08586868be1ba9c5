//! Who gives the tokens of a server: what the server and its authorization server say of themselves (RFC 9728, RFC 8414).
//! Both are strangers, so each says only what it may: a server names itself, and an issuer itself.

use std::sync::Arc;

use reqwest::Url;
use serde_json::{Value, json};
use spinney_kernel::definition::HttpAddress;

use super::login_http::{LoginBody, send};
use super::offered::one_line;
use crate::network::Outbound;

const SHOWN: usize = 200;
const SCOPE_BYTES_MAX: usize = 1 << 10;

/// What a login needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Discovered {
    /// What the tokens are for.
    pub(super) resource: String,
    pub(super) scope: Option<String>,
    pub(super) issuer: String,
    pub(super) authorization_endpoint: String,
    pub(super) token_endpoint: String,
    pub(super) registration_endpoint: Option<String>,
    /// Whether the issuer names itself when it sends the person back.
    pub(super) names_itself: bool,
}

/// Asks a server, and then its authorization server.
pub(super) async fn discover(outbound: &Arc<dyn Outbound>, server: &str) -> Result<Discovered, String> {
    let url = Url::parse(server).map_err(|_| "this is not a URL".to_owned())?;
    let client = json!({ "name": "spinney", "version": env!("CARGO_PKG_VERSION") });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    let first = send(outbound, server, LoginBody::Json(hello)).await?;
    if (200..300).contains(&first.status) {
        return Err("it needs no login: it answered without one".to_owned());
    }
    let named = parameter(&first.authenticate, "resource_metadata").and_then(|place| Url::parse(&place).ok());
    let named = named.filter(|place| place.origin() == url.origin());
    let path = url.path().trim_end_matches('/');
    let usual = ["oauth-protected-resource"].into_iter().flat_map(|kind| well_known(&url, kind, path));
    let mut scope = parameter(&first.authenticate, "scope");
    let mut about = None;
    for place in named.into_iter().chain(usual) {
        let page = send(outbound, place.as_str(), LoginBody::None).await?;
        if page.status == 200 && page.body.is_object() {
            about = Some(page.body);
            break;
        }
    }
    let (resource, issuer) = match &about {
        // Servers of the first version with logins give their tokens themselves.
        None => (server.to_owned(), url.origin().ascii_serialization()),
        Some(about) => {
            let resource = about["resource"].as_str().unwrap_or_default();
            if !is_resource_of(resource, &url) {
                let shown = one_line(resource, SHOWN);
                return Err(format!("it says that it is `{shown}`, which is another server"));
            }
            let issuer = about["authorization_servers"][0].as_str();
            let issuer = issuer.ok_or("it does not say who gives its tokens")?;
            scope = scope.or_else(|| words(&about["scopes_supported"]));
            (resource.to_owned(), issuer.to_owned())
        }
    };
    let about = of_issuer(outbound, &issuer).await?;
    let endpoint = |name: &str| -> Result<String, String> {
        let place = about[name].as_str().ok_or_else(|| format!("its issuer has no `{name}`"))?;
        let address = HttpAddress { url: place.to_owned(), auth: None };
        address.check().map_err(|why| format!("`{name}` of its issuer: {why}"))?;
        Ok(place.to_owned())
    };
    if !about["code_challenge_methods_supported"]
        .as_array()
        .is_some_and(|all| all.iter().any(|it| it == "S256"))
    {
        return Err(
            "its issuer does not protect codes (PKCE with S256), so a login would not be safe".to_owned()
        );
    }
    Ok(Discovered {
        resource,
        scope: scope.filter(|scope| scope.len() <= SCOPE_BYTES_MAX),
        authorization_endpoint: endpoint("authorization_endpoint")?,
        token_endpoint: endpoint("token_endpoint")?,
        registration_endpoint: match &about["registration_endpoint"] {
            Value::Null => None,
            _ => Some(endpoint("registration_endpoint")?),
        },
        names_itself: about["authorization_response_iss_parameter_supported"] == true,
        issuer,
    })
}

async fn of_issuer(outbound: &Arc<dyn Outbound>, issuer: &str) -> Result<Value, String> {
    let shown = one_line(issuer, SHOWN);
    let url = Url::parse(issuer).map_err(|_| format!("its issuer `{shown}` is not a URL"))?;
    let path = url.path().trim_end_matches('/');
    let mut places: Vec<Url> = well_known(&url, "oauth-authorization-server", path).take(1).collect();
    places.extend(well_known(&url, "openid-configuration", path).take(1));
    places.extend(url.join(&format!("{path}/.well-known/openid-configuration")));
    for place in places {
        let page = send(outbound, place.as_str(), LoginBody::None).await?;
        if page.status != 200 || !page.body.is_object() {
            continue;
        }
        let named = page.body["issuer"].as_str().unwrap_or_default();
        if named.trim_end_matches('/') != issuer.trim_end_matches('/') {
            return Err(format!("its issuer `{shown}` says that it is `{}`", one_line(named, SHOWN)));
        }
        return Ok(page.body);
    }
    Err(format!("its issuer `{shown}` does not say how to log in"))
}

/// Where a kind of metadata is: with the path of what it is about, and without.
fn well_known(url: &Url, kind: &str, path: &str) -> impl Iterator<Item = Url> {
    let with_path = url.join(&format!("/.well-known/{kind}{path}"));
    let without = url.join(&format!("/.well-known/{kind}")).ok().filter(|_| !path.is_empty());
    with_path.ok().into_iter().chain(without)
}

/// Whether a server may call itself so: its own origin, and a beginning of its path.
fn is_resource_of(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    let path = resource.path().trim_end_matches('/');
    let rest = server.path().strip_prefix(path);
    resource.origin() == server.origin()
        && resource.fragment().is_none()
        && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A parameter of `WWW-Authenticate: Bearer`.
fn parameter(header: &str, name: &str) -> Option<String> {
    let begin = format!("{name}=\"");
    let at = header.find(&begin).filter(|at| *at == 0 || matches!(header.as_bytes()[at - 1], b' ' | b','))?;
    let rest = &header[at + begin.len()..];
    Some(rest[..rest.find('"')?].to_owned())
}

fn words(list: &Value) -> Option<String> {
    let words: Vec<&str> = list.as_array()?.iter().filter_map(Value::as_str).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G24: a server cannot get the tokens of another one.
    #[test]
    fn g24_a_server_names_only_itself() {
        let server = Url::parse("https://tools.example.org/team/mcp").unwrap();
        for resource in [
            "https://tools.example.org/team/mcp",
            "https://tools.example.org",
            "https://tools.example.org/team/",
        ] {
            assert!(is_resource_of(resource, &server), "{resource}");
        }
        for resource in [
            "",
            "https://other.example.org/team/mcp",
            "http://tools.example.org/team/mcp",
            "https://tools.example.org/te",
            "https://tools.example.org/team/mcp/more",
            "https://tools.example.org:8443/team/mcp",
        ] {
            assert!(!is_resource_of(resource, &server), "{resource}");
        }
    }

    #[test]
    fn parameters_of_a_challenge_are_read() {
        let header = r#"Bearer error="invalid_token", resource_metadata="https://a/b", scope="read write""#;
        assert_eq!(parameter(header, "resource_metadata").as_deref(), Some("https://a/b"));
        assert_eq!(parameter(header, "scope").as_deref(), Some("read write"));
        assert_eq!(parameter(header, "metadata"), None);
        assert_eq!(parameter("Bearer", "scope"), None);
    }
}
