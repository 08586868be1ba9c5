//! The key of a run: random, known only to the program that was started with it.

use std::fmt;

use http::{HeaderMap, Uri, header};
use spinney::rng::secret;

use super::wire::query_keys;

/// The key of one run. It is never printed.
#[derive(Clone)]
pub struct RunKey {
    text: String,
    /// Compared instead of the text, in constant time.
    hash: blake3::Hash,
}

/// The headers of keys, beside `authorization`.
const KEY_HEADERS: [&str; 3] = ["x-api-key", "api-key", "x-goog-api-key"];

/// The key that a request shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShownKey {
    OfRun,
    /// Another one, from a file or a login of the program.
    Other,
    None,
}

impl RunKey {
    /// # Errors
    /// If the system has no randomness.
    pub fn draw() -> std::io::Result<Self> {
        let digits: String = secret()?.iter().map(|byte| format!("{byte:02x}")).collect();
        let text = format!("sk-spinney-{digits}");
        let hash = blake3::hash(text.as_bytes());
        Ok(Self { text, hash })
    }

    /// For the environment of the program.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What a request shows, in one of the headers that programs use, or in the query, where Gemini takes one.
    pub(super) fn shown_in(&self, uri: &Uri, headers: &HeaderMap) -> ShownKey {
        let bearer =
            |value: &str| value.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer "));
        let authorization = headers.get_all(header::AUTHORIZATION).iter();
        let tokens = authorization
            .filter_map(|value| value.to_str().ok())
            .filter(|value| bearer(value))
            .map(|value| value[7..].trim());
        let keys = KEY_HEADERS.into_iter().flat_map(|name| headers.get_all(name));
        let in_query = uri.query().into_iter().flat_map(query_keys);
        let given = tokens.chain(keys.filter_map(|value| value.to_str().ok()).map(str::trim)).chain(in_query);
        given.fold(ShownKey::None, |shown, given| match shown {
            _ if blake3::hash(given.as_bytes()) == self.hash => ShownKey::OfRun,
            ShownKey::None if !given.is_empty() => ShownKey::Other,
            shown => shown,
        })
    }
}

impl fmt::Debug for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RunKey(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &'static str, value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        headers
    }

    /// G12: a request without the run's key is not served.
    #[test]
    fn g12_only_the_key_of_the_run_opens() {
        let (key, other) = (RunKey::draw().unwrap(), RunKey::draw().unwrap());
        assert_ne!(key.text(), other.text());
        for right in [
            with("x-api-key", key.text()),
            with("api-key", key.text()),
            with("x-goog-api-key", key.text()),
            with("authorization", &format!("Bearer {}", key.text())),
            with("authorization", &format!("bearer {}", key.text())),
        ] {
            assert_eq!(key.shown_in(&Uri::default(), &right), ShownKey::OfRun, "{right:?}");
        }
        // Beside another key as well.
        let mut both = with("x-api-key", other.text());
        both.insert("authorization", format!("Bearer {}", key.text()).parse().unwrap());
        assert_eq!(key.shown_in(&Uri::default(), &both), ShownKey::OfRun);
        for (wrong, shown) in [
            (HeaderMap::new(), ShownKey::None),
            (with("x-api-key", other.text()), ShownKey::Other),
            (with("x-api-key", ""), ShownKey::None),
            (with("x-api-key", &key.text()[1..]), ShownKey::Other),
            (with("authorization", "Bearer sk-mine"), ShownKey::Other),
            (with("authorization", key.text()), ShownKey::None),
            (with("authorization", &format!("Basic {}", key.text())), ShownKey::None),
            (with("cookie", key.text()), ShownKey::None),
        ] {
            assert_eq!(key.shown_in(&Uri::default(), &wrong), shown, "{wrong:?}");
        }
        let asked = |query: &str| {
            let uri = format!("/v1beta/models/m:generateContent?{query}").parse().unwrap();
            key.shown_in(&uri, &HeaderMap::new())
        };
        assert_eq!(asked(&format!("alt=sse&key={}", key.text())), ShownKey::OfRun);
        assert_eq!(asked(&format!("key={}", other.text())), ShownKey::Other);
        assert_eq!(asked(&format!("akey={}&key", key.text())), ShownKey::None);
        assert_eq!(format!("{key:?}"), "RunKey(hidden)");
    }
}
