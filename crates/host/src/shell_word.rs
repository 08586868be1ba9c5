//! Paths and words as a shell reads them back, safe to show on a terminal.

use std::path::Path;

use spinney_view::wording::is_hostile;

/// A path as one word. A path that cannot be shown safely is written in octal: it passes a terminal unchanged, and any shell
/// reads it back.
#[must_use]
pub fn of_path(path: &Path) -> String {
    let bytes = path.as_os_str().as_encoded_bytes();
    // A leading dash would be taken for an option.
    quoted(bytes, if bytes.starts_with(b"-") { "./" } else { "" })
}

/// A word, in quotes if a shell would take it apart.
#[must_use]
pub fn of_word(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-=:,".contains(&byte);
    let is_plain = !word.is_empty() && word.bytes().all(is_plain);
    if is_plain { word.to_owned() } else { quoted(word.as_bytes(), "") }
}

fn quoted(bytes: &[u8], here: &str) -> String {
    match str::from_utf8(bytes).ok().filter(|text| !text.contains(is_hostile) && !text.contains('\n')) {
        Some(text) => format!("'{here}{}'", text.replace('\'', r"'\''")),
        None => {
            let spelled: String = bytes.iter().map(|byte| spelled(*byte)).collect();
            // A shell drops trailing line breaks of a command's output; a final character keeps them.
            if bytes.ends_with(b"\n") {
                return format!(r#""$(printf '{here}{spelled}/.')""#);
            }
            format!(r#""$(printf '{here}{spelled}')""#)
        }
    }
}

fn spelled(byte: u8) -> String {
    let is_plain = byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    if is_plain { char::from(byte).to_string() } else { format!(r"\{byte:03o}") }
}
