//! The login of a person at a server elsewhere: OAuth 2.1 with PKCE, in a browser of the person. Its tokens are secrets of
//! the user: the caller keeps them, and nothing here prints them.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Url;
use rustls::SupportedCipherSuite;
use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use spinney_kernel::port::Pending;

use super::login_http::{LoginBody, LoginPage, form, send};
use super::login_metadata::{Discovered, discover};
use super::offered::one_line;
use crate::network::Outbound;
use crate::wire::Secrets;

/// The longest token or id.
const TOKEN_BYTES_MAX: usize = 64 << 10;
/// What an error shows of what a server says.
const SHOWN: usize = 300;
/// How long before its end a token is not used any more.
const MARGIN_MS: u64 = 60_000;

/// Where the tokens of logins are.
pub trait ServerLogins: Send + Sync {
    /// The token for the server at this URL, renewed if it is time; none without a login.
    fn token(&self, url: String) -> Pending<Result<Option<String>, String>>;
}

/// What a login came to. Its values are secrets.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoginTokens {
    /// The server that the login was for.
    pub url: String,
    resource: String,
    token_endpoint: String,
    client_id: String,
    client_secret: Option<String>,
    access_token: String,
    refresh_token: Option<String>,
    expires_ms: Option<u64>,
}

/// A person is asked to log in, in a browser.
pub struct LoginRequest {
    outbound: Arc<dyn Outbound>,
    url: String,
    discovered: Discovered,
    client: Client,
    redirect: String,
    state: String,
    verifier: String,
}

/// What the browser brought back.
#[derive(Clone, PartialEq, Eq)]
pub struct LoginAnswer {
    pub code: String,
    /// Who sent it.
    pub issuer: Option<String>,
}

#[derive(Clone)]
struct Client {
    id: String,
    secret: Option<String>,
}

impl LoginRequest {
    /// Finds out how to log in at a server, and introduces us there unless the person has a client id. `redirect` is where
    /// the browser comes back to, on this machine.
    ///
    /// # Errors
    /// Why there is no login.
    pub async fn begin(
        outbound: Arc<dyn Outbound>,
        (url, redirect): (&str, &str),
        client_id: Option<String>,
        [state, verifier]: [[u8; 32]; 2],
    ) -> Result<Self, String> {
        let discovered = discover(&outbound, url).await?;
        let client = match client_id {
            Some(id) => Client { id, secret: None },
            None => register(&outbound, &discovered, redirect).await?,
        };
        let [state, verifier] = [state, verifier].map(|bytes| URL_SAFE_NO_PAD.encode(bytes));
        let (url, redirect) = (url.to_owned(), redirect.to_owned());
        Ok(Self { outbound, url, discovered, client, redirect, state, verifier })
    }

    /// Who gives the tokens.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.discovered.issuer
    }

    /// What the browser has to bring back.
    #[must_use]
    pub fn state(&self) -> &str {
        &self.state
    }

    /// Where the person logs in.
    #[must_use]
    pub fn address(&self) -> String {
        let mut fields = vec![
            ("response_type", "code"),
            ("client_id", &self.client.id),
            ("redirect_uri", &self.redirect),
            ("state", &self.state),
            ("code_challenge_method", "S256"),
            ("resource", &self.discovered.resource),
        ];
        let challenge = challenge(&self.verifier);
        fields.push(("code_challenge", &challenge));
        if let Some(scope) = &self.discovered.scope {
            fields.push(("scope", scope));
        }
        let place = &self.discovered.authorization_endpoint;
        let mark = if place.contains('?') { '&' } else { '?' };
        format!("{place}{mark}{}", form(&fields))
    }

    /// Exchanges what the browser brought for tokens.
    ///
    /// # Errors
    /// Why there are none.
    pub async fn finish(self, answer: LoginAnswer, now_ms: u64) -> Result<LoginTokens, String> {
        let issuer = answer.issuer.as_deref();
        let is_issuer = issuer == Some(self.discovered.issuer.as_str());
        if (self.discovered.names_itself || issuer.is_some()) && !is_issuer {
            return Err("the answer came from another issuer".to_owned());
        }
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", &answer.code),
            ("redirect_uri", &self.redirect),
            ("code_verifier", &self.verifier),
            ("resource", &self.discovered.resource),
        ];
        let endpoint = self.discovered.token_endpoint.clone();
        let secrets = [answer.code.clone(), self.verifier.clone()];
        let said = ask(&self.outbound, (&endpoint, &self.client), &fields, secrets).await?;
        let before = LoginTokens {
            url: self.url,
            resource: self.discovered.resource,
            token_endpoint: endpoint,
            client_id: self.client.id,
            client_secret: self.client.secret,
            access_token: String::new(),
            refresh_token: None,
            expires_ms: None,
        };
        before.with(&said, now_ms)
    }
}

impl LoginTokens {
    /// Sent to the server.
    #[must_use]
    pub fn access_token(&self) -> &str {
        &self.access_token
    }

    /// Whether it is time to renew it.
    #[must_use]
    pub fn is_expired(&self, now_ms: u64) -> bool {
        self.expires_ms.is_some_and(|end| now_ms.saturating_add(MARGIN_MS) >= end)
    }

    /// Newer ones.
    ///
    /// # Errors
    /// If there are none any more: the person has to log in again.
    pub async fn renewed(&self, outbound: &Arc<dyn Outbound>, now_ms: u64) -> Result<Self, String> {
        let token = self.refresh_token.as_ref().ok_or("its login has ended")?;
        let fields = [
            ("grant_type", "refresh_token"),
            ("refresh_token", token.as_str()),
            ("resource", &self.resource),
        ];
        let client = Client { id: self.client_id.clone(), secret: self.client_secret.clone() };
        let said = ask(
            outbound,
            (&self.token_endpoint, &client),
            &fields,
            [token.clone(), self.access_token.clone()],
        );
        self.clone().with(&said.await?, now_ms)
    }

    fn with(self, said: &Value, now_ms: u64) -> Result<Self, String> {
        let text = |name: &str| said[name].as_str().filter(|token| is_token(token)).map(str::to_owned);
        let kind = said["token_type"].as_str().unwrap_or("bearer");
        if !kind.eq_ignore_ascii_case("bearer") {
            return Err("its tokens are of a kind that cannot be sent".to_owned());
        }
        let access_token = text("access_token").ok_or("the answer has no token that can be sent")?;
        let seconds = said["expires_in"].as_u64();
        Ok(Self {
            access_token,
            refresh_token: text("refresh_token").or(self.refresh_token),
            expires_ms: seconds.map(|seconds| now_ms.saturating_add(seconds.saturating_mul(1_000))),
            ..self
        })
    }
}

impl fmt::Debug for LoginTokens {
    /// Without the values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginTokens").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Introduces us (RFC 7591).
async fn register(outbound: &Arc<dyn Outbound>, at: &Discovered, redirect: &str) -> Result<Client, String> {
    let place = at.registration_endpoint.as_ref();
    let place =
        place.ok_or("its issuer knows only clients that were registered before: name the id of one")?;
    let about = json!({
        "client_name": "Spinney", "redirect_uris": [redirect], "response_types": ["code"],
        "grant_types": ["authorization_code", "refresh_token"], "token_endpoint_auth_method": "none",
    });
    let LoginPage { status, body, .. } = send(outbound, place, LoginBody::Json(about)).await?;
    let text =
        |name: &str| body[name].as_str().filter(|text| text.len() <= TOKEN_BYTES_MAX).map(str::to_owned);
    match text("client_id") {
        Some(id) if (200..300).contains(&status) => Ok(Client { id, secret: text("client_secret") }),
        _ => Err(format!(
            "its issuer does not take us as a client: {}",
            refusal(status, &body, &Secrets::default())
        )),
    }
}

/// Asks for tokens.
async fn ask<const N: usize>(
    outbound: &Arc<dyn Outbound>,
    (endpoint, client): (&str, &Client),
    fields: &[(&str, &str)],
    secrets: [String; N],
) -> Result<Value, String> {
    let mut fields = fields.to_vec();
    fields.push(("client_id", &client.id));
    if let Some(secret) = &client.secret {
        fields.push(("client_secret", secret));
    }
    let page = send(outbound, endpoint, LoginBody::Form(form(&fields))).await?;
    if page.status == 200 && page.body.is_object() {
        return Ok(page.body);
    }
    let secrets = Secrets::new(secrets.into_iter().chain(client.secret.clone()));
    Err(format!("its issuer gives no token: {}", refusal(page.status, &page.body, &secrets)))
}

fn refusal(status: u16, body: &Value, secrets: &Secrets) -> String {
    let said: Vec<&str> =
        ["error", "error_description"].into_iter().filter_map(|name| body[name].as_str()).collect();
    let said = said.join(": ");
    let said = String::from_utf8_lossy(&secrets.hide(said.as_bytes())).into_owned();
    format!("HTTP {status} {}", one_line(&said, SHOWN)).trim_end().to_owned()
}

fn is_token(token: &str) -> bool {
    !token.is_empty()
        && token.len() <= TOKEN_BYTES_MAX
        && token.bytes().all(|byte| (b'!'..=b'~').contains(&byte))
}

/// Of a verifier, as PKCE has it (RFC 7636).
fn challenge(verifier: &str) -> String {
    let SupportedCipherSuite::Tls13(suite) = TLS13_AES_128_GCM_SHA256 else {
        unreachable!("it is a suite of TLS 1.3");
    };
    URL_SAFE_NO_PAD.encode(suite.common.hash_provider.hash(verifier.as_bytes()).as_ref())
}

/// The code and the issuer that a browser brings back to this path, if they belong to this login.
///
/// # Errors
/// What the issuer says instead of a code.
pub fn login_answer(path: &str, state: &str) -> Option<Result<LoginAnswer, String>> {
    let url = Url::parse("http://127.0.0.1/").ok()?.join(path).ok()?;
    let field =
        |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
    let is_it = blake3::hash(field("state")?.as_bytes()) == blake3::hash(state.as_bytes());
    if url.path() != LOGIN_PATH || !is_it {
        return None;
    }
    if let Some(code) = field("code") {
        return Some(Ok(LoginAnswer { code, issuer: field("iss") }));
    }
    let said =
        [field("error"), field("error_description")].into_iter().flatten().collect::<Vec<_>>().join(": ");
    Some(Err(format!("there is no login: {}", one_line(&said, SHOWN))))
}

/// Where browsers come back to.
pub const LOGIN_PATH: &str = "/callback";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_the_one_of_the_standard() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(challenge(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    /// G24: only the browser that was sent out brings something back.
    #[test]
    fn g24_an_answer_of_another_login_is_not_taken() {
        let code = |path: &str| login_answer(path, "s-1").map(|answer| answer.map(|answer| answer.code));
        assert_eq!(code("/callback?state=s-1&code=a%2Fb"), Some(Ok("a/b".to_owned())));
        assert_eq!(code("/callback?state=s-2&code=a"), None);
        assert_eq!(code("/callback?code=a"), None);
        assert_eq!(code("/other?state=s-1&code=a"), None);
        let refused = code("/callback?state=s-1&error=access_denied&error_description=you%0Asaid%20no");
        assert_eq!(refused, Some(Err("there is no login: access_denied: you said no".to_owned())));
    }
}
