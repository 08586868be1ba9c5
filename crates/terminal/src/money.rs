//! Dollars in columns: every amount of a column has the same decimals, so they can be compared at a glance.

use spinney_kernel::budget::usd;

const NANOS_PER_USD: u64 = 1_000_000_000;
const DECIMALS_MIN: usize = 2;
const DECIMALS_MAX: usize = 9;
/// Decimals of amounts below [`LARGE_USD`] where they are rounded.
const ROUNDED_DECIMALS: usize = 4;
const LARGE_USD: u64 = 100;
/// Digits of the largest amount that are shown, however small it is.
const DIGITS_MIN: usize = 2;

/// A column of amounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoneyColumn {
    decimals: usize,
}

impl MoneyColumn {
    /// Shows each of these amounts exactly.
    pub fn exact(nanos: impl IntoIterator<Item = u64>) -> Self {
        let decimals = nanos.into_iter().map(decimals_of).max();
        Self { decimals: decimals.unwrap_or(DECIMALS_MIN) }
    }

    /// Rounds amounts of which this is the largest.
    pub fn rounded(largest_nanos: u64) -> Self {
        if largest_nanos >= LARGE_USD * NANOS_PER_USD {
            return Self { decimals: DECIMALS_MIN };
        }
        let decimals = match largest_nanos.checked_ilog10() {
            Some(log) => (DECIMALS_MAX + DIGITS_MIN - 1).saturating_sub(log as usize),
            None => 0,
        };
        Self { decimals: decimals.clamp(ROUNDED_DECIMALS, DECIMALS_MAX) }
    }

    /// An amount in this column. One that would be rounded to nothing is said to be less than the smallest that is shown.
    pub fn show(self, nanos: u64) -> String {
        let unit = self.unit();
        let rounded = nanos / unit + u64::from(nanos % unit >= unit - unit / 2);
        if rounded == 0 && nanos > 0 {
            return format!("<{}", self.written(1));
        }
        self.written(rounded)
    }

    /// The nano-dollars of its last decimal.
    const fn unit(self) -> u64 {
        10_u64.pow((DECIMALS_MAX - self.decimals) as u32)
    }

    fn written(self, units: u64) -> String {
        let per_usd = NANOS_PER_USD / self.unit();
        format!("${}.{:0width$}", units / per_usd, units % per_usd, width = self.decimals)
    }
}

/// The decimals of an exact amount, at least two.
fn decimals_of(nanos: u64) -> usize {
    usd(nanos).rsplit_once('.').map_or(0, |(_, decimals)| decimals.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Issue 34: money was cut, with different digits in one column.
    #[test]
    fn amounts_of_a_column_are_rounded_to_the_same_decimals() {
        let shown = |largest, nanos: &[u64]| {
            nanos.iter().map(|nanos| MoneyColumn::rounded(largest).show(*nanos)).collect::<Vec<_>>()
        };
        assert_eq!(
            shown(5_394_000, &[5_394_000, 984_000, 333_250, 49_999, 50_000, 1, 0]),
            ["$0.0054", "$0.0010", "$0.0003", "<$0.0001", "$0.0001", "<$0.0001", "$0.0000"]
        );
        // However small they are, the largest has two digits.
        assert_eq!(shown(849_000, &[849_000, 31_200, 4_999]), ["$0.00085", "$0.00003", "<$0.00001"]);
        assert_eq!(shown(53, &[53, 2]), ["$0.000000053", "$0.000000002"]);
        assert_eq!(shown(0, &[0]), ["$0.0000"]);
        assert_eq!(shown(99_999_999_999, &[99_999_999_999, 12_345_678_901]), ["$100.0000", "$12.3457"]);
        assert_eq!(
            shown(100_000_000_000, &[100_000_000_000, 1_005_000_000, 4_000_000, 0]),
            ["$100.00", "$1.01", "<$0.01", "$0.00"]
        );
        assert_eq!(shown(u64::MAX, &[u64::MAX]), ["$18446744073.71"]);
    }

    #[test]
    fn exact_amounts_have_the_decimals_of_the_longest() {
        let amounts = [2_797_750, 649_000, 1_000_000_000, 0];
        let column = MoneyColumn::exact(amounts);
        let shown = amounts.map(|nanos| column.show(nanos));
        assert_eq!(shown, ["$0.00279775", "$0.00064900", "$1.00000000", "$0.00000000"]);
        assert_eq!(MoneyColumn::exact([500_000_000]).show(500_000_000), "$0.50");
        assert_eq!(MoneyColumn::exact([1]).show(1), "$0.000000001");
    }
}
