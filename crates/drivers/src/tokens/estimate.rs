//! What a text probably has in tokens where the tokenizer is not public: a sum over its runs of letters, digits,
//! symbols and spaces. The weights were measured on cl100k and o200k, which agree on English, code and records and
//! differ by up to a factor of three elsewhere; there they are in between. What a provider reports of an agent's calls
//! corrects the rest (`spinney_kernel::window`).

/// Thousandths of a token.
const UNIT: u64 = 1_000;

/// What the first letter of a word adds if it is a capital.
const CAPITAL: u64 = 200;

/// What a run of characters consists of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Run {
    Lower,
    Upper,
    Digit,
    Symbol,
    Space,
    Break,
    /// A letter with an accent, inside a word.
    Accent,
    /// A letter of another script, with what one of them weighs.
    Script(u64),
}

impl Run {
    const fn from_char(c: char) -> Self {
        match c {
            'a'..='z' => Self::Lower,
            'A'..='Z' => Self::Upper,
            '0'..='9' => Self::Digit,
            ' ' | '\t' => Self::Space,
            '\n' | '\r' => Self::Break,
            '\u{21}'..='\u{7e}' => Self::Symbol,
            '\u{c0}'..='\u{24f}' | '\u{300}'..='\u{36f}' => Self::Accent,
            // Greek, Cyrillic.
            '\u{370}'..='\u{52f}' => Self::Script(440),
            // Armenian, Hebrew, Arabic.
            '\u{530}'..='\u{6ff}' => Self::Script(600),
            // The scripts of India and Southeast Asia.
            '\u{900}'..='\u{10ff}' => Self::Script(930),
            // Kana.
            '\u{3000}'..='\u{30ff}' => Self::Script(900),
            // Ideographs, Hangul.
            '\u{3400}'..='\u{9fff}' => Self::Script(1_150),
            '\u{ac00}'..='\u{d7af}' => Self::Script(1_130),
            // Emoji and everything else outside the basic plane.
            '\u{10000}'.. => Self::Script(2_500),
            _ => Self::Script(1_000),
        }
    }

    /// What `count` such characters in a row weigh.
    fn weight(self, count: u64) -> u64 {
        match self {
            // Most words are one token; long ones, and those that are no English, are several.
            Self::Lower => UNIT + count.saturating_sub(4) * 140,
            Self::Upper => UNIT.max(count * 450),
            Self::Digit => count.div_ceil(3) * UNIT,
            Self::Symbol => match count {
                0..=8 => UNIT + (count - 1) * 250,
                _ => UNIT * 3 + count * 80,
            },
            // One space belongs to the word after it.
            Self::Space => {
                if count > 1 {
                    UNIT + count / 16 * UNIT
                } else {
                    0
                }
            }
            Self::Break => 200 + count * 200,
            Self::Accent => count * 600,
            Self::Script(weight) => count * weight,
        }
    }
}

/// An estimate of a text's tokens. It takes linear time and no memory.
pub(super) fn estimate(text: &str) -> u64 {
    let mut runs = text.chars().map(Run::from_char).peekable();
    let mut total = 0_u64;
    while let Some(run) = runs.next() {
        let mut count = 1;
        while runs.next_if_eq(&run).is_some() {
            count += 1;
        }
        // A capital begins the word that follows it, which is less often one token.
        let begins = run == Run::Upper && count == 1 && runs.peek() == Some(&Run::Lower);
        total = total.saturating_add(if begins { CAPITAL } else { run.weight(count) });
    }
    total.div_ceil(UNIT).min(text.len() as u64)
}
