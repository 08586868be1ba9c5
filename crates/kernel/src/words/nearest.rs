//! Suggests what a misspelled word may have meant.

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
fn nearest<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    let letters: Vec<char> = written.to_lowercase().chars().take(COMPARED_MAX + 1).collect();
    // In a word of one or two letters, an edit leaves nothing to recognize.
    let edits_max = match letters.len() {
        0..=2 => 0,
        3..=COMPARED_MAX => letters.len() / 3,
        _ => return None,
    };
    let judged = known.iter().map(|word| (edits(&letters, word), *word));
    judged.filter(|(edits, _)| *edits <= edits_max).min_by_key(|(edits, _)| *edits).map(|(_, word)| word)
}

/// Edit distance with insertions, deletions, replacements and swaps of neighbors.
fn edits(from: &[char], to: &str) -> usize {
    let to: Vec<char> = to.to_lowercase().chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=to.len()).collect();
    for (row, letter) in from.iter().enumerate() {
        let mut line = vec![row + 1];
        for (column, wanted) in to.iter().enumerate() {
            let replaced = above[column] + usize::from(letter != wanted);
            let mut fewest = replaced.min(above[column + 1] + 1).min(line[column] + 1);
            let swapped = row > 0 && column > 0 && from[row - 1] == *wanted && to[column - 1] == *letter;
            if swapped {
                fewest = fewest.min(before[column - 1] + 1);
            }
            line.push(fewest);
        }
        before = above;
        above = line;
    }
    above.last().copied().unwrap_or_default()
}
