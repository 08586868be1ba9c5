//! Budgets: what an agent may use, counted at its own account and at every ancestor's.
//!
//! The rule: before an effect starts, one decision holds its worst case at every account up the chain; when it ends,
//! the hold is settled at the actual usage and the rest returns. So spent + held + lent never exceeds a ceiling,
//! whatever runs in parallel. Nothing here knows agents or calls, and only prices know time.

mod account;
mod amount;
mod cache_writes;
mod fit;
mod ledger;
mod line;
mod price;
mod rates;
mod sparse_amounts;
mod usage;
mod used;

pub use account::{Account, Terms};
pub use amount::{
    AMOUNT_MAX, Amount, AmountError, Amounts, Ceilings, Resource, ResourceSet, nanos_from_usd, usd,
};
pub use cache_writes::CacheWrites;
pub use fit::{Fit, Shortfall};
pub use ledger::{AccountIx, Ledger};
pub use line::{Line, Scan, Waiter};
pub use price::{Price, PriceActive, PriceChange, PriceTier};
pub use rates::Rates;
pub use sparse_amounts::SparseAmounts;
pub use usage::Usage;
pub use used::Used;
