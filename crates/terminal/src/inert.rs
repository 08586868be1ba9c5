//! The one filter of everything that is shown: no text moves the cursor, changes a title or a clipboard, or looks like
//! other output.

use std::borrow::Cow;
use std::fmt::Write as _;

use spinney_view::wording::is_hostile;

/// Whether each character takes one byte and one column. Nearly every text is like that, and this is quick to find out.
pub(crate) fn is_printable_ascii(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Escapes every hostile character, as `\u{202e}`: visible, and without effect.
pub fn inert(text: &str) -> Cow<'_, str> {
    if is_printable_ascii(text) {
        return Cow::Borrowed(text);
    }
    escaped(text, |inert, c| {
        let _ = write!(inert, "\\u{{{:x}}}", u32::from(c));
    })
}

/// Writes every hostile character in another way.
pub(crate) fn escaped(text: &str, write: impl Fn(&mut String, char)) -> Cow<'_, str> {
    let Some(first) = text.find(is_hostile) else { return Cow::Borrowed(text) };
    let (before, rest) = text.split_at(first);
    let mut all = before.to_owned();
    for c in rest.chars() {
        if is_hostile(c) {
            write(&mut all, c);
        } else {
            all.push(c);
        }
    }
    Cow::Owned(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_terminal_acts_on_is_written_out() {
        assert_eq!(inert("plain, ünïcode and 木\n\t"), "plain, ünïcode and 木\n\t");
        assert_eq!(inert("a\u{1b}[2J\r\u{9b}\u{7f}b"), "a\\u{1b}[2J\\u{d}\\u{9b}\\u{7f}b");
        let unseen = ['\u{202e}', '\u{2066}', '\u{200e}', '\u{61c}', '\u{2028}', '\u{200b}', '\u{feff}'];
        for c in unseen.into_iter().chain(['\u{200d}', '\u{2060}', '\u{e0041}']) {
            assert_eq!(inert(&format!("<{c}>")), format!("<\\u{{{:x}}}>", u32::from(c)));
        }
    }
}
