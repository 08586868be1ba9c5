//! Fits a text with line breaks of its own to another width. Breaks within a paragraph or an item of a list move if a line is
//! too wide; everything that is not clearly prose keeps its lines: code, tables, headings, verses, records. Code and
//! tables are not broken at all, because they are there to be copied.

use super::paint::{width_of, wrapped};

/// Lines of at most `width` columns, but for code and tables. A text that fits is not changed.
pub fn reflowed(text: &str, width: usize) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut reflowed = Vec::new();
    let mut fence = None;
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let line = line.trim_end();
        let marks = fence_of(line);
        match (fence, marks) {
            (None, Some(marks)) => fence = Some(marks),
            (Some(open), Some(marks)) if marks.starts_with(open) => fence = None,
            (None, None) => {
                let (kind, hanging) = kind_of(line);
                let mut end = at + 1;
                match kind {
                    Kind::Fixed => reflowed.push(line.to_owned()),
                    Kind::Other => reflowed.extend(wrapped(line, width)),
                    Kind::Prose | Kind::Item => {
                        while lines.get(end).is_some_and(|next| continues(kind, hanging, next)) {
                            end += 1;
                        }
                        paragraph(&lines[at..end], hanging, width, &mut reflowed);
                    }
                }
                at = end;
                continue;
            }
            (Some(_), _) => {}
        }
        reflowed.push(line.to_owned());
        at += 1;
    }
    reflowed
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Prose,
    /// The first line of an item of a list.
    Item,
    /// Stays in one piece.
    Fixed,
    /// Keeps its line break.
    Other,
}

/// The marks that begin and end a block of code.
fn fence_of(line: &str) -> Option<&str> {
    let line = line.trim_start_matches(' ');
    ['`', '~'].into_iter().find_map(|mark| {
        let marks = line.len() - line.trim_start_matches(mark).len();
        (marks >= 3).then(|| &line[..marks])
    })
}

/// What a line is, and the column at which its text begins.
fn kind_of(line: &str) -> (Kind, usize) {
    let text = line.trim_start_matches(' ');
    let indent = line.len() - text.len();
    if let Some(marker) = marker(text) {
        return (Kind::Item, indent + marker);
    }
    let kind = if indent >= 4 || text.starts_with('|') || text.matches('|').count() > 1 || text.contains('\t')
    {
        Kind::Fixed
    } else if is_prose(text) {
        Kind::Prose
    } else {
        Kind::Other
    };
    (kind, indent)
}

/// The bytes of a list's marker with the space after it.
fn marker(text: &str) -> Option<usize> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let mark = match digits {
        0 => text.starts_with(['-', '*', '+']),
        1..=3 => text[digits..].starts_with(['.', ')']),
        _ => false,
    };
    (mark && text[digits + 1..].starts_with(' ')).then_some(digits + 2)
}

/// Words, and nothing that code, records or aligned columns have.
fn is_prose(text: &str) -> bool {
    let begins = text.starts_with(|c: char| c.is_alphabetic() || "\"'`(*_[“‘„«".contains(c));
    let text = text.trim_end();
    // Prose has semicolons within a line, statements at its end.
    begins && !text.contains("  ") && !text.contains(['{', '}', '=', '\\', '\t']) && !text.ends_with(';')
}

/// Whether a line belongs to the paragraph or the item before it.
fn continues(kind: Kind, hanging: usize, next: &str) -> bool {
    let text = next.trim_start_matches(' ');
    let indent = next.len() - text.len();
    // The text of an item is aligned with its beginning; deeper, it is something else.
    indent == hanging && fence_of(text).is_none() && marker(text).is_none() && {
        let is_table = text.matches('|').count() > 1;
        is_prose(text) && !is_table && (kind == Kind::Item || indent < 4)
    }
}

fn paragraph(lines: &[&str], hanging: usize, width: usize, reflowed: &mut Vec<String>) {
    if lines.iter().all(|line| width_of(line.trim_end()) <= width) {
        reflowed.extend(lines.iter().map(|line| line.trim_end().to_owned()));
        return;
    }
    let (head, first) = lines[0].split_at(hanging);
    let texts: Vec<&str> =
        std::iter::once(first).chain(lines[1..].iter().map(|line| &line[hanging..])).collect();
    let widest = texts.iter().map(|text| width_of(text.trim_end())).max().unwrap_or(0);
    let mut joined: Vec<String> = Vec::new();
    let mut is_joined = false;
    for (at, text) in texts.iter().enumerate() {
        match joined.last_mut().filter(|_| is_joined) {
            Some(last) => {
                last.push(' ');
                last.push_str(text.trim());
            }
            None => joined.push(text.trim_end().to_owned()),
        }
        // Where the next word would have fit, the break was intended; two spaces at the end say so.
        let next = texts.get(at + 1).and_then(|next| next.split_whitespace().next()).unwrap_or_default();
        let has_room = width_of(text.trim_end()) + 1 + width_of(next) <= widest;
        is_joined = !has_room && !text.ends_with("  ");
    }
    let room = width.saturating_sub(hanging).max(1);
    for (at, text) in joined.iter().enumerate() {
        for (row, line) in wrapped(text, room).iter().enumerate() {
            let before = if at == 0 && row == 0 { head.to_owned() } else { " ".repeat(hanging) };
            reflowed.push(before + line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paragraph_is_filled_again_and_wanted_breaks_stay() {
        let text = "The quick brown fox jumps over the lazy dog and then\nruns into the wood where nobody has ever seen it\nagain.\n\nShort.";
        let narrow = [
            "The quick brown fox jumps over",
            "the lazy dog and then runs",
            "into the wood where nobody has",
            "ever seen it again.",
            "",
            "Short.",
        ];
        assert_eq!(reflowed(text, 30), narrow);
        assert_eq!(reflowed(text, 60).join("\n"), text);
        let wanted = "Dear reader,\nthis is a letter that is much too wide for the terminal here.";
        assert_eq!(reflowed(wanted, 40)[0], "Dear reader,");
        let hard = "This line is as wide as the next one is.  \nThis line is as wide as the one before.";
        assert_eq!(reflowed(hard, 30)[2], "This line is as wide as the");
        // Issue 34: a semicolon in a sentence made its line one of code.
        let semicolon =
            "The findings on the others are incomplete if time is what\nhurts; the report says so as well.";
        assert_eq!(
            reflowed(semicolon, 40),
            [
                "The findings on the others are",
                "incomplete if time is what hurts; the",
                "report says so as well."
            ]
        );
    }

    #[test]
    fn code_tables_and_records_keep_their_lines() {
        let code = "```sh\nfind . -name '*.rs' -print0 | xargs -0 wc -l\nand another one that is long\n```";
        assert_eq!(reflowed(code, 20).join("\n"), code);
        let nested = "````\n```\nprose that is longer than the width\n````";
        assert_eq!(reflowed(nested, 20).join("\n"), nested);
        let indented = "    let x be a line that is much longer than that\n    and one more";
        assert_eq!(reflowed(indented, 20).join("\n"), indented);
        let table = "| name | what it is good for |\n|------|----------------------|\n| one  | everything else       |";
        assert_eq!(reflowed(table, 20).join("\n"), table);
        let records = "2026-01-01 one thing happened\n2026-01-02 another thing happened";
        assert_eq!(reflowed(records, 20).len(), 4);
        let statements = "let one = two + three;\nlet four = five + six;";
        assert_eq!(reflowed(statements, 15), ["let one = two +", "three;", "let four = five", "+ six;"]);
    }

    #[test]
    fn an_item_of_a_list_keeps_its_place_and_its_text_hangs() {
        let list = "Two things:\n- the first one is long enough to be\n  broken at this width\n- second\n  1. nested and also too long for it\n# Heading";
        let narrow = [
            "Two things:",
            "- the first one is long",
            "  enough to be broken at",
            "  this width",
            "- second",
            "  1. nested and also too",
            "     long for it",
            "# Heading",
        ];
        assert_eq!(reflowed(list, 24), narrow);
        assert_eq!(reflowed(list, 80).join("\n"), list);
    }

    /// Whatever a model writes: every word stays, in its order, and text that fits is not changed.
    #[test]
    fn no_text_loses_a_word() {
        let parts = [
            "- a b",
            "```",
            "| x | y |",
            "word and more words here",
            "",
            "    code  x",
            "é 木木木 ü",
            "1) z",
            "\tq",
            "# h  ",
        ];
        let mut draw = 0x9E37_79B9_7F4A_7C15_u64;
        for _ in 0..2_000 {
            let mut text = String::new();
            for _ in 0..8 {
                draw ^= draw << 13;
                draw ^= draw >> 7;
                draw ^= draw << 17;
                text += parts[usize::try_from(draw % 10).unwrap()];
                text.push('\n');
            }
            for width in [1, 7, 20] {
                let words = |text: &str| text.split_whitespace().collect::<String>();
                assert_eq!(words(&reflowed(&text, width).join("\n")), words(&text), "{width}: {text}");
            }
            let same: Vec<&str> = text.lines().map(str::trim_end).collect();
            assert_eq!(reflowed(&text, 200), same);
        }
    }
}
