//! Seams: places at which both encodings always split a text, whatever is around them. A text that is cut at seams has
//! exactly as many tokens as its pieces together.
//!
//! Both encodings first split a text by a pattern, from left to right and without looking back, and merge bytes only
//! within what is between two splits. No part of either pattern takes a letter or digit and then a symbol, or a letter
//! next to a digit; and a piece that ends in a letter or digit shows the pattern all that it could look ahead to,
//! which is only whether white space continues. The apostrophe is not a seam, because `'s` goes with the word before it.

/// What a character surely is. Most scripts are left out: to be unsure makes a count larger and never too small.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Digit,
    Symbol,
    Unsure,
}

impl Class {
    const fn from_char(character: char) -> Self {
        match character {
            'a'..='z' | 'A'..='Z' => Self::Letter,
            '0'..='9' => Self::Digit,
            '\'' => Self::Unsure,
            '\0'..='\x7f' => Self::Symbol,
            // Dashes, quotes and dots; then those of Chinese and Japanese, also in full width.
            '\u{2010}'..='\u{2027}' | '、' | '。' | '「' | '」' | '！' | '，' | '：' | '；' | '？' => {
                Self::Symbol
            }
            '×' | '÷' => Self::Symbol,
            // Latin, Greek, Cyrillic, Hebrew, Arabic, Devanagari, Thai, Japanese, Chinese, Korean.
            'À'..='ɏ' | 'Α'..='Ρ' | 'Σ'..='ώ' | 'Ѐ'..='ҁ' | 'א'..='ת' | '\u{620}'..='\u{64a}' => {
                Self::Letter
            }
            '\u{904}'..='\u{939}' | '\u{e01}'..='\u{e30}' => Self::Letter,
            'ぁ'..='ゖ' | 'ァ'..='ヺ' | '\u{4e00}'..='\u{9fa5}' | '가'..='힣' => Self::Letter,
            _ => Self::Unsure,
        }
    }
}

/// Where a text may be cut.
pub(super) struct Seams;

impl Seams {
    /// A text in pieces of at most so many bytes, and longer ones where there is no seam.
    pub(super) fn pieces(text: &str, bytes_max: usize) -> impl Iterator<Item = &str> {
        let mut rest = text;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let (piece, after) = rest.split_at(end(rest, bytes_max));
            rest = after;
            Some(piece)
        })
    }

    /// A text in three: what a line break before it could reach into, what no line break changes, and what one after it
    /// could reach into.
    pub(super) fn edges(text: &str) -> (&str, &str, &str) {
        // After a line break the pattern continues only with white space or, in one encoding, with slashes.
        let is_open = |first: char| first.is_whitespace() || first == '/';
        let from = if text.starts_with(is_open) { next(text, 0).unwrap_or(text.len()) } else { 0 };
        let (head, rest) = text.split_at(from);
        let is_shut = |last| matches!(Class::from_char(last), Class::Letter | Class::Digit);
        let to = if rest.ends_with(is_shut) { rest.len() } else { last(rest).unwrap_or(0) };
        let (middle, tail) = rest.split_at(to);
        (head, middle, tail)
    }
}

/// Where the next piece of a text ends.
fn end(text: &str, bytes_max: usize) -> usize {
    if text.len() <= bytes_max {
        return text.len();
    }
    let most = text.floor_char_boundary(bytes_max);
    last(&text[..most]).or_else(|| next(text, most.saturating_sub(4))).unwrap_or(text.len())
}

/// The first seam of a text after `from` bytes.
fn next(text: &str, from: usize) -> Option<usize> {
    let from = text.floor_char_boundary(from);
    let characters = text[from..].char_indices();
    let mut pairs = characters.clone().zip(characters.skip(1));
    pairs.find(|((_, before), (_, after))| is_seam(*before, *after)).map(|(_, (at, _))| from + at)
}

/// The last seam of a text.
fn last(text: &str) -> Option<usize> {
    let characters = text.char_indices().rev();
    let mut pairs = characters.clone().skip(1).zip(characters);
    pairs.find(|((_, before), (_, after))| is_seam(*before, *after)).map(|(_, (at, _))| at)
}

fn is_seam(before: char, after: char) -> bool {
    match (Class::from_char(before), Class::from_char(after)) {
        (Class::Letter, Class::Symbol | Class::Digit) | (Class::Digit, Class::Symbol | Class::Letter) => true,
        (Class::Letter | Class::Digit | Class::Symbol | Class::Unsure, _) => false,
    }
}
