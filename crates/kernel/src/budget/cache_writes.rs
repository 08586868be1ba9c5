//! Which cache writes a request can cause. Providers charge more for input that they write to a cache. A request that
//! does not ask for cache writes is not held at that rate.

use serde::{Deserialize, Serialize};

use super::{Price, Rates};

/// The most expensive cache write that a request can cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheWrites {
    /// No cache writes.
    None,
    /// Writes to a cache with a lifetime of minutes.
    Minutes,
    /// Writes to a cache with a lifetime of an hour.
    #[default]
    Hour,
}

impl CacheWrites {
    pub(crate) const fn is_hour(&self) -> bool {
        matches!(self, Self::Hour)
    }

    const fn limit(self, rates: &mut Rates) {
        match self {
            Self::Hour => {}
            Self::Minutes => rates.cache_write_1h_per_mtok = None,
            Self::None => (rates.cache_write_per_mtok, rates.cache_write_1h_per_mtok) = (None, None),
        }
    }
}

impl Price {
    /// This price without the rates of cache writes that the request cannot cause.
    #[must_use]
    pub fn with_writes(&self, writes: CacheWrites) -> Self {
        let mut price = self.clone();
        let mut rates = price.rates();
        writes.limit(&mut rates);
        price.cache_write_per_mtok = rates.cache_write_per_mtok;
        price.cache_write_1h_per_mtok = rates.cache_write_1h_per_mtok;
        let changed = price.changes.iter_mut().flat_map(|change| {
            std::iter::once(&mut change.rates).chain(change.tiers.iter_mut().map(|tier| &mut tier.rates))
        });
        price
            .tiers
            .iter_mut()
            .map(|tier| &mut tier.rates)
            .chain(changed)
            .for_each(|rates| writes.limit(rates));
        price
    }
}
