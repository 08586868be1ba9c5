//! Which share of a total each part has, in whole percentages.

use spinney_kernel::budget::Resource;

use super::Sums;

impl Sums {
    /// The shares of the parts of this total: of its cost, or of its tokens if it cost nothing. They add up to 100, or to
    /// nothing.
    pub fn shares<'s>(&self, parts: impl IntoIterator<Item = &'s Self>) -> Vec<u64> {
        let by = if self.spent.get(Resource::Cost) > 0 { Resource::Cost } else { Resource::Tokens };
        shares(parts.into_iter().map(|sums| sums.spent.get(by)), self.spent.get(by))
    }
}

/// Whole percentages that add up to 100: those that lose most by cutting are rounded up.
fn shares(amounts: impl Iterator<Item = u64>, total: u64) -> Vec<u64> {
    let total = u128::from(total).max(1);
    let mut shares: Vec<(u64, u128)> = amounts
        .map(|amount| {
            let hundredfold = u128::from(amount) * 100;
            (u64::try_from(hundredfold / total).unwrap_or(100), hundredfold % total)
        })
        .collect();
    let missing = shares.iter().map(|(_, lost)| lost).sum::<u128>() / total;
    let mut by_loss: Vec<usize> = (0..shares.len()).collect();
    by_loss.sort_by_key(|at| std::cmp::Reverse(shares[*at].1));
    for at in by_loss.into_iter().take(usize::try_from(missing).unwrap_or_default()) {
        shares[at].0 += 1;
    }
    shares.into_iter().map(|(share, _)| share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_a_hundred() {
        let of = |amounts: &[u64]| shares(amounts.iter().copied(), amounts.iter().sum());
        assert_eq!(of(&[1, 1, 1]), [34, 33, 33]);
        assert_eq!(of(&[2_797_750, 649_000, 646_500, 577_250, 390_250, 333_250]), [52, 12, 12, 11, 7, 6]);
        assert_eq!(of(&[1_000, 1]), [100, 0]);
        assert_eq!(of(&[u64::MAX / 3; 3]).iter().sum::<u64>(), 100);
        assert_eq!(of(&[0, 0]), [0, 0]);
        let mut draw = 0x9E37_79B9_7F4A_7C15_u64;
        for count in 1..200 {
            let amounts: Vec<u64> = (0..count)
                .map(|_| {
                    draw ^= draw << 13;
                    draw ^= draw >> 7;
                    draw ^= draw << 17;
                    draw % 1_000_000 + 1
                })
                .collect();
            assert_eq!(of(&amounts).iter().sum::<u64>(), 100, "{amounts:?}");
        }
    }
}
