//! Amounts as people write them. Several resources: `spend::usd("0.20")?.with(Resource::Tokens, 1_200)`.

use spinney_kernel::budget::{AmountError, Amounts, Resource, nanos_from_usd};

/// Dollars, as people write them: `"0.25"`, `"10"`, `"$1.50"`.
///
/// # Errors
/// For anything except a plain positive number with at most nine decimals.
pub fn usd(text: &str) -> Result<Amounts, AmountError> {
    nanos_from_usd(text).map(Amounts::cost)
}

/// Tokens.
#[must_use]
pub const fn tokens(tokens: u64) -> Amounts {
    Amounts::ZERO.with(Resource::Tokens, tokens)
}

/// Model turns.
#[must_use]
pub const fn steps(steps: u64) -> Amounts {
    Amounts::ZERO.with(Resource::Steps, steps)
}

/// Tool calls.
#[must_use]
pub const fn tool_calls(tool_calls: u64) -> Amounts {
    Amounts::ZERO.with(Resource::ToolCalls, tool_calls)
}
