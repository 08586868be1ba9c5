//! The version of the rules, which every journal names.

/// The version of the rules for new trees. A journal names its version, and its tree continues under that version.
pub const RULES: u32 = 8;

/// Whether this kernel implements a version of the rules. Journals of other versions can be read and continued, but
/// their decisions cannot be replayed.
#[must_use]
pub const fn are_decided(rules: u32) -> bool {
    matches!(rules, 2..=RULES)
}
