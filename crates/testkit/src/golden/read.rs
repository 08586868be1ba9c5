//! Reads golden journals: decodes, chains, applies and decides every batch again.

use spinney_journal::{Batch, ChainHash};
use spinney_kernel::primitives::Seq;
use spinney_kernel::record::are_decided;
use spinney_kernel::rules::decide;
use spinney_kernel::world::World;

use super::Ending;

/// How a golden journal differs from what was recorded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GoldenMismatch {
    /// A line cannot be read.
    #[error("line {line} cannot be read any more: {reason}")]
    Unreadable {
        /// Which line; the first is 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// The same input now decides something else.
    #[error("the batch after event {after} is decided otherwise now: {decided}")]
    Decided {
        /// The last event before it.
        after: u64,
        /// What is decided now.
        decided: String,
    },
    /// It leads to another state.
    #[error("it leads to {found:?}, not {expected:?}")]
    Leads {
        /// What was recorded.
        expected: Box<Ending>,
        /// The state now.
        found: Box<Ending>,
    },
}

/// Replays a golden journal and compares its state with the recorded one.
///
/// # Errors
/// The first difference.
pub fn check(lines: &str, ending: &str) -> Result<Ending, GoldenMismatch> {
    let unreadable = |line: usize| {
        move |error: serde_json::Error| GoldenMismatch::Unreadable { line, reason: error.to_string() }
    };
    let expected: Ending = serde_json::from_str(ending).map_err(unreadable(0))?;
    let tree = expected.seed.unwrap_or(expected.tree);
    let (mut world, mut decided) = (World::new(tree), World::under(expected.rules, tree));
    let mut events = Vec::new();
    let mut hash = ChainHash::start(tree);
    for (number, line) in lines.lines().enumerate() {
        let mut batch: Batch = serde_json::from_str(line).map_err(unreadable(number + 1))?;
        batch.unfold();
        let after: Seq = world.seq();
        hash = hash.then(after, line.as_bytes());
        if are_decided(expected.rules) {
            let again = decide(&mut decided, &batch.input).map(|decision| decision.events);
            if again.as_ref() != Ok(&batch.events) {
                return Err(GoldenMismatch::Decided { after: after.0, decided: format!("{again:?}") });
            }
        }
        batch.events.iter().for_each(|event| world.apply(event));
        events.extend(batch.events);
    }
    let contexts = crate::contexts_of(tree, events.iter());
    let found = Ending::at(tree, &world, &contexts, expected.rules, hash);
    if found == expected && (!are_decided(expected.rules) || decided == world) {
        Ok(found)
    } else {
        Err(GoldenMismatch::Leads { expected: Box::new(expected), found: Box::new(found) })
    }
}
