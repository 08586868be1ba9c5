//! Lines of text with colours and a known width. Text that enters one is made inert and stays on its line, so a row
//! can be cut, padded and written without looking at its content again.

use std::borrow::{Borrow, Cow};
use std::fmt::Write as _;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::inert::{inert, is_printable_ascii};

/// Whether lines get their colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    Coloured,
    /// Without them, and without spaces at the end.
    Plain,
}

/// What a piece of text means; its colour follows from that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ink {
    #[default]
    Plain,
    /// Less important.
    Dim,
    Strong,
    /// An agent, a model or another name.
    Name,
    Good,
    /// Needs attention.
    Warn,
    Bad,
}

impl Ink {
    const fn code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Dim => Some("2"),
            Self::Strong => Some("1"),
            Self::Name => Some("36"),
            Self::Good => Some("32"),
            Self::Warn => Some("33"),
            Self::Bad => Some("31"),
        }
    }
}

/// More than what is between two columns of most lines.
const SPACES: &str = "                                ";

/// One line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    spans: Vec<(Ink, String)>,
    width: usize,
}

impl Row {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn inked(ink: Ink, text: &str) -> Self {
        Self::new().with(ink, text)
    }

    pub fn plain(text: &str) -> Self {
        Self::inked(Ink::Plain, text)
    }

    pub fn with(mut self, ink: Ink, text: &str) -> Self {
        self.push(ink, text);
        self
    }

    pub fn push(&mut self, ink: Ink, text: &str) {
        // Nearly every text: lists have thousands, and one look at each is enough.
        if is_printable_ascii(text) {
            self.width += text.len();
            return self.add(ink, text);
        }
        let text = on_one_line(text);
        self.width += width_of(&text);
        self.add(ink, &text);
    }

    /// Adds text that is inert, and whose width is counted already.
    fn add(&mut self, ink: Ink, text: &str) {
        if text.is_empty() {
            return;
        }
        match self.spans.last_mut() {
            Some((last, span)) if *last == ink => span.push_str(text),
            Some(_) => self.spans.push((ink, text.to_owned())),
            // Most rows are cells of a table, with one span.
            None => self.spans = vec![(ink, text.to_owned())],
        }
    }

    pub fn joined(mut self, other: impl Borrow<Self>) -> Self {
        self.append(other);
        self
    }

    pub fn append(&mut self, other: impl Borrow<Self>) {
        let other = other.borrow();
        self.width += other.width;
        for (ink, text) in &other.spans {
            self.add(*ink, text);
        }
    }

    /// Columns that it takes on a terminal.
    pub const fn width(&self) -> usize {
        self.width
    }

    /// Adds spaces up to a width.
    pub fn padded(mut self, width: usize) -> Self {
        let mut missing = width.saturating_sub(self.width);
        self.width += missing;
        while missing > 0 {
            let some = missing.min(SPACES.len());
            self.add(Ink::Plain, &SPACES[..some]);
            missing -= some;
        }
        self
    }

    /// At most this wide; an ellipsis marks a cut.
    pub fn cut(self, width: usize) -> Self {
        if self.width <= width {
            return self;
        }
        let mut cut = Self::new();
        for (ink, text) in self.spans {
            let room = width.saturating_sub(cut.width);
            if width_of(&text) < room {
                cut.push(ink, &text);
            } else {
                cut.push(ink, &shortened(&text, room));
                break;
            }
        }
        cut
    }

    /// Without colours.
    pub fn text(&self) -> String {
        self.spans.iter().map(|(_, text)| text.as_str()).collect()
    }

    pub fn painted(&self, paint: Paint) -> String {
        let mut painted = String::new();
        self.paint(paint, &mut painted);
        painted
    }

    /// Adds it to a text.
    pub fn paint(&self, paint: Paint, painted: &mut String) {
        let start = painted.len();
        for (ink, text) in &self.spans {
            match ink.code().filter(|_| paint == Paint::Coloured) {
                Some(code) => {
                    let _ = write!(painted, "\u{1b}[{code}m{text}\u{1b}[0m");
                }
                None => painted.push_str(text),
            }
        }
        if paint == Paint::Plain {
            painted.truncate(start + painted[start..].trim_end().len());
        }
    }
}

/// A text without anything that a terminal acts on, line breaks and tabs included.
fn on_one_line(text: &str) -> Cow<'_, str> {
    let text = inert(text);
    if text.contains(['\n', '\t']) { text.replace(['\n', '\t'], " ").into() } else { text }
}

pub fn width_of(text: &str) -> usize {
    if is_printable_ascii(text) { text.len() } else { UnicodeWidthStr::width(text) }
}

/// The beginning of a text that fits, with an ellipsis in the last column if something is missing.
pub fn shortened(text: &str, width: usize) -> String {
    if width_of(text) <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(1);
    let mut kept = String::new();
    let mut taken = 0;
    for c in text.chars() {
        taken += c.width().unwrap_or(0);
        if taken > room {
            break;
        }
        kept.push(c);
    }
    if width == 0 { String::new() } else { kept + "…" }
}

/// The end of a text that fits, with an ellipsis in the first column if something is missing.
pub fn tail(text: &str, width: usize) -> String {
    if width_of(text) <= width {
        return text.to_owned();
    }
    let (mut taken, mut from) = (1, text.len());
    for (at, c) in text.char_indices().rev() {
        taken += c.width().unwrap_or(0);
        if taken > width {
            break;
        }
        from = at;
    }
    if width == 0 { String::new() } else { format!("…{}", &text[from..]) }
}

/// Lines of at most `width` columns, broken between words; a longer word is broken where it must be. A line break of
/// the text stays one. Further lines begin where the first one does, after its label if it has one. A command of ours
/// is one word and never broken, and neither is a path: they are there to be copied.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    text.split('\n').flat_map(|line| wrapped_line(line, width.max(1))).collect()
}

/// A label is at most this wide, with the indentation before it and the space after it.
const LABEL_MAX: usize = 20;

fn wrapped_line(line: &str, width: usize) -> Vec<String> {
    if width_of(line) <= width {
        return vec![line.to_owned()];
    }
    let (head, rest) = line.split_at(label(line, width));
    let indent = " ".repeat(width_of(head));
    let (mut lines, mut current, mut is_empty) = (Vec::new(), head.to_owned(), true);
    for word in words(rest) {
        let space = usize::from(!is_empty);
        if !is_empty && width_of(&current) + space + width_of(word) > width {
            lines.push(std::mem::replace(&mut current, indent.clone()));
            is_empty = true;
        }
        if !is_empty {
            current.push(' ');
        }
        is_empty = false;
        if is_command(word) || is_path(word) || width_of(&current) + width_of(word) <= width {
            current.push_str(word);
            continue;
        }
        for c in word.chars() {
            if width_of(&current) + c.width().unwrap_or(0) > width {
                lines.push(std::mem::replace(&mut current, indent.clone()));
            }
            current.push(c);
        }
    }
    lines.push(current);
    lines
}

/// The bytes before the text of a line: its indentation, and a label with two spaces or more after it.
fn label(line: &str, width: usize) -> usize {
    let spaces = |text: &str| text.len() - text.trim_start_matches(' ').len();
    let indent = spaces(line);
    let gap = line[indent..].find("  ").map(|gap| indent + gap);
    let label = gap.map(|gap| gap + spaces(&line[gap..])).filter(|end| *end < line.len());
    let fits = |bytes: &usize| width_of(&line[..*bytes]) <= LABEL_MAX.min(width / 2);
    label.filter(fits).or(Some(indent).filter(fits)).unwrap_or(0)
}

/// The words of a text. A command extends to its closing backtick, or to the end.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text.trim_matches(' ');
    while !rest.is_empty() {
        let end = if is_command(rest) {
            let quoted = rest.strip_prefix('`').and_then(|inner| inner.find('`')).map(|end| end + 2);
            quoted.map_or(rest.len(), |end| rest[end..].find(' ').map_or(rest.len(), |more| end + more))
        } else {
            rest.find(' ').unwrap_or(rest.len())
        };
        let (word, after) = rest.split_at(end);
        words.push(word);
        rest = after.trim_start_matches(' ');
    }
    words
}

fn is_path(word: &str) -> bool {
    word.contains('/') && !word.contains(['"', '{', '\\'])
}

fn is_command(text: &str) -> bool {
    text.trim_start_matches('`').starts_with("spinney ")
}

/// A cell of a bar that is not full, by eighths.
const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// How much of a whole is used, as a bar of `width` columns. The part that is only held is lighter.
pub fn bar(spent: u64, held: u64, limit: u64, width: usize) -> Row {
    let limit = limit.max(1);
    let eighths = |amount: u64| {
        let eighths = u128::from(amount.min(limit)) * 8 * width as u128 / u128::from(limit);
        usize::try_from(eighths).unwrap_or(8 * width)
    };
    // Whatever is used can be seen.
    let used = eighths(spent).max(usize::from(spent > 0));
    let (full, part) = (used / 8, PARTS[used % 8]);
    let begun = full + usize::from(!part.is_empty());
    let to_come = (eighths(spent.saturating_add(held)) / 8).max(begun) - begun;
    let ink = if spent >= limit {
        Ink::Bad
    } else if u128::from(spent) * 10 >= u128::from(limit) * 8 {
        Ink::Warn
    } else {
        Ink::Good
    };
    Row::new()
        .with(ink, &"█".repeat(full))
        .with(ink, part)
        .with(Ink::Dim, &"▒".repeat(to_come))
        .with(Ink::Dim, &"░".repeat(width.saturating_sub(begun + to_come)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_between_words_and_long_words_where_they_must_be() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("  one two three", 8), ["  one", "  two", "  three"]);
        assert_eq!(wrapped("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrapped("short\n\nlines", 10), ["short", "", "lines"]);
        assert_eq!(wrapped("木木木", 4), ["木木", "木"]);
        assert_eq!(
            wrapped("  why     it has spent it all", 22),
            ["  why     it has spent", "          it all"]
        );
    }

    #[test]
    fn a_command_is_never_broken() {
        let text = "it stopped: continue with `spinney 01a1e5b00b7f --option`, or not";
        let lines = ["it stopped: continue", "with", "`spinney 01a1e5b00b7f --option`,", "or not"];
        assert_eq!(wrapped(text, 20), lines);
        assert_eq!(
            wrapped("go on: spinney 01a1 --reason 'no more'", 20)[1],
            "spinney 01a1 --reason 'no more'"
        );
        assert_eq!(wrapped("in /a/very/long/path/to.md", 10), ["in", "/a/very/long/path/to.md"]);
    }

    #[test]
    fn a_row_is_as_wide_as_a_terminal_shows_it_and_is_cut_to_fit() {
        let row = Row::inked(Ink::Name, "木").with(Ink::Dim, " and\nmore");
        assert_eq!((row.width(), row.text()), (11, "木 and more".to_owned()));
        assert_eq!(row.clone().cut(6).text(), "木 an…");
        assert_eq!(row.painted(Paint::Coloured), "\u{1b}[36m木\u{1b}[0m\u{1b}[2m and more\u{1b}[0m");
        assert_eq!(tail("one two", 4), "…two");
    }

    /// G16 (terminal rows): nothing that a terminal acts on gets into a row.
    #[test]
    fn g16_a_row_is_inert() {
        let row = Row::plain("a\u{1b}[2J\u{202e}\r\nb");
        assert_eq!(row.text(), "a\\u{1b}[2J\\u{202e}\\u{d} b");
    }

    #[test]
    fn a_bar_shows_what_is_spent_and_what_is_held() {
        let shown = |spent, held| bar(spent, held, 100, 10).text();
        assert_eq!([shown(0, 0), shown(1, 0), shown(50, 20)], ["░░░░░░░░░░", "▏░░░░░░░░░", "█████▒▒░░░"]);
        assert_eq!([shown(8, 20), shown(57, 0), shown(99, 1)], ["▊▒░░░░░░░░", "█████▋░░░░", "█████████▉"]);
        assert_eq!([shown(100, 0), shown(150, 90)], ["██████████", "██████████"]);
        assert_eq!(bar(1, 1, 0, 4).text(), "████");
        // Issue 34: a full cell at 0.2 %.
        assert_eq!(bar(2, 0, 1_000, 8).text(), "▏░░░░░░░");
    }
}
