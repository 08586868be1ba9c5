//! The key of a run: random, known to the program that was started with it and to nobody else on the machine.

use std::fmt;

use http::{HeaderMap, header};
use spinney::draw::secret;

/// The key of one run. It is never printed.
#[derive(Clone)]
pub struct RunKey {
    text: String,
    /// Compared instead of the text, in constant time.
    hash: blake3::Hash,
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

    /// Whether a request has the key, in one of the headers that programs use.
    pub(super) fn opens(&self, headers: &HeaderMap) -> bool {
        let bearer =
            |value: &str| value.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer "));
        let authorization = headers.get_all(header::AUTHORIZATION).iter();
        let tokens = authorization
            .filter_map(|value| value.to_str().ok())
            .filter(|value| bearer(value))
            .map(|value| value[7..].trim());
        let keys = ["x-api-key", "api-key"].into_iter().flat_map(|name| headers.get_all(name));
        let mut given = tokens.chain(keys.filter_map(|value| value.to_str().ok()).map(str::trim));
        given.any(|given| blake3::hash(given.as_bytes()) == self.hash)
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

    /// G12: nobody without the run's key is served.
    #[test]
    fn g12_only_the_key_of_the_run_opens() {
        let (key, other) = (RunKey::draw().unwrap(), RunKey::draw().unwrap());
        assert_ne!(key.text(), other.text());
        assert!(key.opens(&with("x-api-key", key.text())));
        assert!(key.opens(&with("authorization", &format!("Bearer {}", key.text()))));
        assert!(key.opens(&with("authorization", &format!("bearer {}", key.text()))));
        for wrong in [
            HeaderMap::new(),
            with("x-api-key", other.text()),
            with("x-api-key", ""),
            with("x-api-key", &key.text()[1..]),
            with("authorization", key.text()),
            with("authorization", &format!("Basic {}", key.text())),
            with("cookie", key.text()),
        ] {
            assert!(!key.opens(&wrong), "{wrong:?}");
        }
        assert_eq!(format!("{key:?}"), "RunKey(hidden)");
    }
}
