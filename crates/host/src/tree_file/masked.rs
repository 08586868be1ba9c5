//! A line of a file as it is shown: what looks like a key or a password in it is covered, character by character, so that
//! columns stay what they are.

/// How keys of providers and forges begin.
const KEY_BEGINS: [&str; 9] = ["sk-", "sk_", "xai-", "gsk_", "AIza", "ghp_", "github_pat_", "hf_", "glpat-"];
/// Shorter words with such a beginning are names.
const KEY_CHARS_MIN: usize = 16;

const COVER: char = '*';

/// The line with its keys and passwords covered.
#[must_use]
pub fn masked(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !is_of_key(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let is_key =
            KEY_BEGINS.iter().any(|begin| word.starts_with(begin)) && word.chars().count() >= KEY_CHARS_MIN;
        shown.extend(word.chars().map(|c| if is_key { COVER } else { c }));
        rest = match after.strip_prefix("://") {
            Some(after) => {
                shown += "://";
                let host = after.find(['/', '?', '#', '"', '\'', ' ']).unwrap_or(after.len());
                let user = after[..host].rfind('@').unwrap_or(0);
                shown.extend(after[..user].chars().map(|_| COVER));
                &after[user..]
            }
            None => {
                let mut chars = after.chars();
                shown.extend(chars.next());
                chars.as_str()
            }
        };
    }
    shown
}

/// Whether a letter can be part of a key.
const fn is_of_key(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_passwords_are_covered_and_nothing_else() {
        for (line, shown) in [
            ("key_env: sk-oai-SECRETKEY-literal1", "key_env: *************************"),
            ("base_url: 'https://u:pass@h.example/v1@2'", "base_url: 'https://******@h.example/v1@2'"),
            ("x: { a: [AIzaSyA1234567890, sk-short] }", "x: { a: [*****************, sk-short] }"),
            (
                "base_url: https://h.example/v1  # mail me@h.example",
                "base_url: https://h.example/v1  # mail me@h.example",
            ),
            ("prompt: Grüße, sk- und so", "prompt: Grüße, sk- und so"),
            ("", ""),
        ] {
            assert_eq!(masked(line), shown);
            assert_eq!(masked(line).chars().count(), line.chars().count());
        }
    }
}
