//! The lines of a text that a regular expression matches.

use memchr::{memchr, memchr_iter, memrchr};
use regex::bytes::{Regex, RegexBuilder};

/// How large a compiled expression may be, and what it may keep while it searches: an expression of an agent is hostile.
const COMPILED_BYTES_MAX: usize = 1 << 20;
const CACHE_BYTES_MAX: usize = 2 << 20;
const NESTED_MAX: u32 = 64;

/// Bytes of a line that are shown.
const LINE_BYTES_MAX: usize = 240;
/// How much of a line before a match is shown, if it is long.
const BEFORE_BYTES: usize = 80;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Case {
    #[default]
    Sensitive,
    Ignored,
}

/// A line that matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// The first is 1.
    pub(super) number: u64,
    /// As it is shown.
    pub(super) text: String,
}

/// Compiles an expression. Its time is linear in the text, whatever it says.
pub(super) fn compiled(pattern: &str, case: Case) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern)
        .multi_line(true)
        .crlf(true)
        .case_insensitive(case == Case::Ignored)
        .size_limit(COMPILED_BYTES_MAX)
        .dfa_size_limit(CACHE_BYTES_MAX)
        .nest_limit(NESTED_MAX)
        .build()
}

/// The lines that match, at most so many. A match is within one line.
pub(super) fn lines(regex: &Regex, text: &[u8], most: usize) -> Vec<Line> {
    let (mut found, mut at) = (Vec::new(), 0);
    let (mut number, mut counted) = (1, 0);
    while found.len() < most && at < text.len() {
        let Some(one) = regex.find_at(text, at) else { break };
        let start = memrchr(b'\n', &text[..one.start()]).map_or(0, |end| end + 1);
        // There is no line after the last line break.
        if start == text.len() {
            break;
        }
        let end = memchr(b'\n', &text[one.start()..]).map_or(text.len(), |end| one.start() + end);
        let line = &text[start..end];
        // A match that leaves its line may still have one inside it.
        let inside = if one.end() <= end {
            Some(one.start() - start)
        } else {
            regex.find(line).map(|inside| inside.start())
        };
        if let Some(inside) = inside {
            number += memchr_iter(b'\n', &text[counted..start]).count() as u64;
            counted = start;
            found.push(Line { number, text: shown(line, inside) });
        }
        at = end + 1;
    }
    found
}

/// A line around its match.
fn shown(line: &[u8], inside: usize) -> String {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= LINE_BYTES_MAX {
        return String::from_utf8_lossy(line).into_owned();
    }
    let from = inside.saturating_sub(BEFORE_BYTES).min(line.len() - LINE_BYTES_MAX);
    let part = &line[from..from + LINE_BYTES_MAX];
    let (before, after) =
        (if from > 0 { "…" } else { "" }, if from + LINE_BYTES_MAX < line.len() { "…" } else { "" });
    format!("{before}{}{after}", String::from_utf8_lossy(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str, text: &str) -> Vec<(u64, String)> {
        let regex = compiled(pattern, Case::Sensitive).unwrap();
        lines(&regex, text.as_bytes(), 100).into_iter().map(|line| (line.number, line.text)).collect()
    }

    #[test]
    fn lines_are_numbered_and_each_comes_once() {
        let text = "one two\nthree\none one\r\n\nlast one";
        let all = [(1, "one two".to_owned()), (3, "one one".to_owned()), (5, "last one".to_owned())];
        assert_eq!(found("one", text), all);
        assert_eq!(found("one$", text), all[1..]);
        assert_eq!(found("^$", text), [(4, String::new())]);
        assert_eq!(found("nothing", text), []);
        assert_eq!(found("x*", "a\nb\n").len(), 2);
    }

    #[test]
    fn a_match_does_not_cross_lines() {
        assert_eq!(found(r"a\s+b", "a\nb\na b\n"), [(3, "a b".to_owned())]);
        assert_eq!(found(r"a[^x]*b|c", "a c\nb\n"), [(1, "a c".to_owned())]);
        assert_eq!(found(r"\n", "a\n\n"), []);
    }

    #[test]
    fn a_long_line_is_shown_around_its_match() {
        let text = format!("{}needle{}", "a".repeat(10_000), "ü".repeat(10_000));
        let shown = &found("needle", &text)[0].1;
        assert!(shown.starts_with("…aaa") && shown.contains("needle") && shown.len() < 700, "{shown}");
    }

    #[test]
    fn an_expression_that_is_too_large_is_refused() {
        assert!(compiled("(a{1,1000}){1,1000}", Case::Sensitive).is_err());
        assert!(compiled(&"(".repeat(500), Case::Sensitive).is_err());
        assert!(compiled("[", Case::Sensitive).is_err());
    }
}
