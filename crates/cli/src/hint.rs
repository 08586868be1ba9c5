//! Commands that we tell people to type: they work as they are copied, also in a home that is not the default one.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::out::is_hostile;

/// The home that is meant where none is named.
pub(crate) const HOME: &str = ".spinney";

/// A command of ours, with the home it is about unless that is the default one.
pub(crate) fn command(home: &Path, words: &str) -> String {
    if home == Path::new(HOME) {
        return format!("spinney {words}");
    }
    format!("spinney --home {} {words}", quoted(home))
}

/// A path as one word of a shell, whatever is in it. One that cannot be shown as it is, is spelled out in octal: it
/// passes a terminal unchanged, and any shell reads it back.
fn quoted(path: &Path) -> String {
    match path.to_str().filter(|text| !text.contains(is_hostile)) {
        Some(text) => format!("'{}'", text.replace('\'', r"'\''")),
        None => {
            let bytes = path.as_os_str().as_bytes().iter();
            let spelled: String = bytes.map(|byte| spelled(*byte)).collect();
            format!(r#""$(printf '{spelled}')""#)
        }
    }
}

fn spelled(byte: u8) -> String {
    let is_plain = byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    if is_plain { char::from(byte).to_string() } else { format!(r"\{byte:03o}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_named_only_if_it_is_not_the_default_one() {
        let resume = |home: &str| command(Path::new(home), "resume 1");
        assert_eq!(resume(".spinney"), "spinney resume 1");
        assert_eq!(resume("./.spinney"), "spinney --home './.spinney' resume 1");
        assert_eq!(resume("it's $HOME"), r"spinney --home 'it'\''s $HOME' resume 1");
        assert_eq!(resume("a \u{1b}b"), r#"spinney --home "$(printf 'a\040\033b')" resume 1"#);
    }
}
