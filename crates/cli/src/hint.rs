//! Commands that we tell people to type: they work as they are copied, also in a home that is not the default one.

use std::path::Path;

/// The home that is meant where none is named.
pub(crate) const HOME: &str = ".spinney";

/// A command of ours, with the home it is about unless that is the default one.
pub(crate) fn command(home: &Path, words: &str) -> String {
    if home == Path::new(HOME) {
        return format!("spinney {words}");
    }
    format!("spinney --home {} {words}", quoted(&home.display().to_string()))
}

/// A text as one word of a shell, whatever is in it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
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
    }
}
