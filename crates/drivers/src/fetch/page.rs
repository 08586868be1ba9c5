//! What a model reads of an answer: text as it is, HTML as readable text, and of anything else its type and size.

use super::get::Fetched;
use super::readable::readable;

/// What an answer holds, as text; or why it is not shown.
pub(super) fn page(fetched: &Fetched) -> Result<String, String> {
    let (kind, charset) = content_type(&fetched.content_type);
    let is_html = matches!(kind.as_str(), "text/html" | "application/xhtml+xml")
        || (kind.is_empty() && looks_like_html(&fetched.body));
    if !is_html && !is_text(&kind, &fetched.body) {
        let more = if fetched.is_cut { "more than " } else { "" };
        let kind = if kind.is_empty() { "unknown" } else { &kind };
        return Err(format!(
            "it is not text: its type is {kind}, and it has {more}{} bytes, of which none are kept",
            fetched.body.len()
        ));
    }
    let text = decoded(&fetched.body, charset.as_deref(), fetched.is_cut)?;
    Ok(if is_html { readable(&text, &fetched.url) } else { text })
}

/// The type in lower case, and its charset.
fn content_type(header: &str) -> (String, Option<String>) {
    let mut parts = header.split(';');
    let kind = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    let charset = parts.find_map(|part| {
        let (name, value) = part.trim().split_once('=')?;
        name.eq_ignore_ascii_case("charset").then(|| value.trim_matches(['"', '\'']).to_ascii_lowercase())
    });
    (kind, charset)
}

fn is_text(kind: &str, body: &[u8]) -> bool {
    let named = kind.starts_with("text/")
        || ["json", "xml", "yaml", "toml", "javascript", "ecmascript", "x-sh", "x-ndjson", "sql"].iter().any(
            |text| {
                kind.strip_prefix("application/").is_some_and(|kind| {
                    kind == *text || kind.ends_with(&format!("+{text}")) || kind == format!("x-{text}")
                })
            },
        );
    let unnamed = matches!(kind, "" | "application/octet-stream" | "binary/octet-stream");
    named || (unnamed && !body.contains(&0) && std::str::from_utf8(body).is_ok())
}

fn looks_like_html(body: &[u8]) -> bool {
    let start = body.trim_ascii_start();
    [&b"<!doctype html"[..], b"<html"]
        .iter()
        .any(|begin| start.get(..begin.len()).is_some_and(|start| start.eq_ignore_ascii_case(begin)))
}

fn decoded(body: &[u8], charset: Option<&str>, is_cut: bool) -> Result<String, String> {
    match charset {
        None | Some("utf-8" | "utf8" | "us-ascii" | "ascii") => {}
        Some("iso-8859-1" | "latin1" | "iso8859-1" | "windows-1252" | "cp1252" | "iso-8859-15") => {
            return Ok(latin(body));
        }
        Some(other) => {
            return Err(format!("its charset {other} is not read here: only UTF-8 and Latin-1 are"));
        }
    }
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    match std::str::from_utf8(body) {
        Ok(text) => Ok(text.to_owned()),
        // The last character may be cut.
        Err(error) if is_cut && error.error_len().is_none() => {
            Ok(String::from_utf8_lossy(&body[..error.valid_up_to()]).into_owned())
        }
        // Without a name most of what is not UTF-8 is Latin-1.
        Err(_) if charset.is_none() => Ok(latin(body)),
        Err(_) => Ok(String::from_utf8_lossy(body).into_owned()),
    }
}

/// Windows-1252, which is what is meant by Latin-1 on the web.
fn latin(body: &[u8]) -> String {
    const HIGH: [char; 32] = [
        '\u{20ac}', '\u{fffd}', '\u{201a}', '\u{192}', '\u{201e}', '\u{2026}', '\u{2020}', '\u{2021}',
        '\u{2c6}', '\u{2030}', '\u{160}', '\u{2039}', '\u{152}', '\u{fffd}', '\u{17d}', '\u{fffd}',
        '\u{fffd}', '\u{2018}', '\u{2019}', '\u{201c}', '\u{201d}', '\u{2022}', '\u{2013}', '\u{2014}',
        '\u{2dc}', '\u{2122}', '\u{161}', '\u{203a}', '\u{153}', '\u{fffd}', '\u{17e}', '\u{178}',
    ];
    let character = |byte: &u8| match byte {
        0x80..=0x9f => HIGH[usize::from(byte - 0x80)],
        byte => char::from(*byte),
    };
    body.iter().map(character).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetched(content_type: &str, body: &[u8]) -> Fetched {
        Fetched {
            url: "https://a.org/".parse().unwrap(),
            status: reqwest::StatusCode::OK,
            content_type: content_type.to_owned(),
            body: body.to_vec(),
            is_cut: false,
        }
    }

    #[test]
    fn text_is_decoded_and_everything_else_is_named() {
        for (content_type, body, text) in [
            ("text/plain", &b"a\xc3\xa9"[..], "a\u{e9}"),
            ("text/plain; charset=\"ISO-8859-1\"", b"a\xe9\x80", "a\u{e9}\u{20ac}"),
            ("text/plain", b"a\xe9", "a\u{e9}"),
            ("application/json", b"{}", "{}"),
            ("application/ld+json; charset=utf-8", b"{}", "{}"),
            ("", b"plain", "plain"),
            ("text/html", b"<p>a&amp;b</p>", "a&b"),
            ("", b" <!DOCTYPE html><p>a", "a"),
        ] {
            assert_eq!(page(&fetched(content_type, body)).unwrap(), text, "{content_type}");
        }
        let image = page(&fetched("image/png", b"\x89PNG")).unwrap_err();
        assert_eq!(
            image,
            "it is not text: its type is image/png, and it has 4 bytes, of which none are kept"
        );
        assert!(page(&fetched("application/octet-stream", b"a\0b")).is_err());
        assert!(page(&fetched("text/plain; charset=utf-16", b"a")).unwrap_err().contains("utf-16"));
    }
}
