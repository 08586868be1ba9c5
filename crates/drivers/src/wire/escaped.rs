//! Letters that are escaped as in URLs (`%73`), in JSON (`\u0073`, `\/`) and in programs (`\x73`), also several times over
//! (`%2573`, `\\u0073`).

use std::iter::from_fn;

use memchr::memchr2;

/// Longest escape of a letter, unless it is escaped again.
pub(super) const ESCAPE_BYTES_MAX: usize = 6;

/// How a word compares with the beginning of some bytes, in which any of its letters may be escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beginning {
    /// It takes so many bytes.
    Whole(usize),
    /// The bytes end after so many of its letters.
    Cut(usize),
    Differs,
}

/// Compares a word with the beginning of `bytes`.
pub(super) fn beginning(bytes: &[u8], word: &[u8]) -> Beginning {
    let mut at = 0;
    for (letters, wanted) in word.iter().enumerate() {
        let rest = &bytes[at..];
        match (rest.first(), escaped(rest)) {
            (None, _) => return Beginning::Cut(letters),
            (Some(_), Some(found)) if found.letter == *wanted => at += found.bytes,
            (Some(first), _) if first == wanted => at += 1,
            (Some(b'%' | b'\\'), _) if rest.len() < ESCAPE_BYTES_MAX => return Beginning::Cut(letters),
            (Some(_), _) => return Beginning::Differs,
        }
    }
    Beginning::Whole(at)
}

/// Where escaped letters are, in order.
pub(super) fn places(bytes: &[u8]) -> impl Iterator<Item = (usize, u8)> {
    let mut from = 0;
    from_fn(move || {
        loop {
            let at = from + memchr2(b'%', b'\\', bytes.get(from..)?)?;
            let found = escaped(&bytes[at..]);
            // The others of several backslashes begin nothing.
            let signs = bytes[at..].iter().take_while(|byte| **byte == b'\\').count();
            from = at + found.map_or(1, |found| found.bytes).max(signs);
            if let Some(found) = found {
                return Some((at, found.letter));
            }
        }
    })
}

/// A letter that is escaped, and how many bytes it takes.
#[derive(Clone, Copy)]
struct EscapedLetter {
    letter: u8,
    bytes: usize,
}

fn escaped(bytes: &[u8]) -> Option<EscapedLetter> {
    match bytes.first()? {
        b'%' => percent(bytes),
        b'\\' => backslash(bytes),
        _ => None,
    }
}

fn percent(bytes: &[u8]) -> Option<EscapedLetter> {
    let mut end = 3;
    let mut letter = hex(bytes.get(1..end)?)?;
    // The sign itself may be escaped.
    while letter == b'%'
        && let Some(next) = bytes.get(end..end + 2).and_then(hex)
    {
        (letter, end) = (next, end + 2);
    }
    Some(EscapedLetter { letter, bytes: end })
}

fn backslash(bytes: &[u8]) -> Option<EscapedLetter> {
    let at = bytes.iter().take_while(|byte| **byte == b'\\').count();
    let number = |zeros: &[u8]| {
        let digits = bytes[at + 1..].strip_prefix(zeros)?.get(..2)?;
        Some(EscapedLetter { letter: hex(digits)?, bytes: at + 1 + zeros.len() + 2 })
    };
    match *bytes.get(at)? {
        b'u' => number(b"00"),
        b'x' => number(b""),
        // Another letter after a backslash is not itself: `\n` is a line break.
        other if other.is_ascii_alphanumeric() => None,
        other => Some(EscapedLetter { letter: other, bytes: at + 1 }),
    }
}

fn hex(digits: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let [high, low] = digits else { return None };
    u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_found_however_its_letters_are_escaped() {
        let word = br"a/b+c";
        for text in [
            r"a/b+c",
            r"a\/b+c",
            r"a\\\/b+c",
            r"a%2Fb%2bc",
            r"a%252Fb%25252bc",
            r"%61%2F%62%2B%63",
            r"\u0061\u002f\u0062\u002B\u0063",
            r"\\u0061\\/b\\\\u002bc",
            r"\x61/\x62+c",
        ] {
            assert_eq!(beginning(text.as_bytes(), word), Beginning::Whole(text.len()), "{text}");
            let more = format!("{text}rest");
            assert_eq!(beginning(more.as_bytes(), word), Beginning::Whole(text.len()), "{text}");
        }
        for other in [
            r"a/b+d",
            r"A/b+c",
            r"a%2Gb+cdefgh",
            r"a%3Fb+cdefgh",
            r"\u0161/b+c",
            r"\a/b+cdef",
            " a/b+c",
            "%+1/b+c",
        ] {
            assert_eq!(beginning(other.as_bytes(), word), Beginning::Differs, "{other}");
        }
        assert_eq!(beginning(b"50%25-x", b"50%-x"), Beginning::Whole(7));
    }

    #[test]
    fn a_cut_is_found_with_the_letters_before_it() {
        let word = b"a/b+c";
        for (text, letters) in [("", 0), ("a", 1), ("a/b", 3), ("a%2", 1), (r"a/\u00", 2), (r"a/b\", 3)] {
            assert_eq!(beginning(text.as_bytes(), word), Beginning::Cut(letters), "{text}");
        }
    }

    #[test]
    fn escaped_letters_are_found_where_they_are() {
        let found = |text: &str| places(text.as_bytes()).collect::<Vec<_>>();
        assert_eq!(
            found(r"100% of a\nb \u0041%42\\\/%2543."),
            [(13, b'A'), (19, b'B'), (22, b'/'), (26, b'C')]
        );
        assert_eq!(found(r"\\n \\\\ % \u0141 \"), [(4, b' ')]);
        assert_eq!(found(""), []);
    }
}
