//! Suggests what a misspelled word may have meant.

use strsim::osa_distance;

/// Most words that a message lists.
const LISTED_MAX: usize = 16;
/// Longest word that is compared: no known name is longer.
const COMPARED_MAX: usize = 128;

/// The nearest known word if one is near, otherwise a list: "did you mean `budget`?", "known keys: a, b".
pub fn help<'a>(written: &str, known: impl IntoIterator<Item = &'a str>, what: &str) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    if known.is_empty() {
        return format!("there are no {what}");
    }
    if let Some(word) = nearest(written, &known) {
        return format!("did you mean `{word}`?");
    }
    format!("known {what}: {}", listed(known))
}

/// The words in a row, as many as a message can hold.
pub fn listed<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let mut words: Vec<&str> = words.into_iter().take(LISTED_MAX + 1).collect();
    if let Some(beyond) = words.get_mut(LISTED_MAX) {
        *beyond = "…";
    }
    words.join(", ")
}

/// The known word with the fewest edits, if they are few for its length.
pub fn nearest<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    let written = written.to_lowercase();
    // In a word of one or two letters, an edit leaves nothing to recognize.
    let edits_max = match written.chars().take(COMPARED_MAX + 1).count() {
        0..=2 => 0,
        letters @ 3..=COMPARED_MAX => letters / 3,
        _ => return None,
    };
    // Insertions, deletions, replacements and swaps of neighbors.
    let judged = known.iter().map(|word| (osa_distance(&written, &word.to_lowercase()), *word));
    judged.filter(|(edits, _)| *edits <= edits_max).min_by_key(|(edits, _)| *edits).map(|(_, word)| word)
}
