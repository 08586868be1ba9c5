//! Texts that newer rules word better. Trees keep the words of the rules they were started with.

/// A text since rules 7, and before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reworded {
    text: &'static str,
    rules_6: &'static str,
}

impl Reworded {
    pub(crate) const fn new(text: &'static str, rules_6: &'static str) -> Self {
        Self { text, rules_6 }
    }

    pub(crate) const fn under(self, rules: u32) -> &'static str {
        if rules >= 7 { self.text } else { self.rules_6 }
    }
}

/// A question without an answer.
pub(crate) const UNANSWERED: Reworded = Reworded::new("no answer in time", "nobody answered in time");
/// After a number that is the limit.
pub(crate) const ALL_ALLOWED: Reworded = Reworded::new("the most allowed", "which is all that it may take");
