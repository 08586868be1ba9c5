//! How many trees write at the same time. Nobody says so; it shows in how many batches of any tree come between two of
//! the same one. A tree alone has none between, and of a hundred that take turns each has ninety-nine.

/// Most that one batch counts: a tree that slept for a day says nothing about now.
const DISTANCE_MAX: u64 = 64;

/// What the last two transactions show.
#[derive(Default)]
pub(super) struct Crowd {
    /// The distances in the transaction that is being written, added up, and how many they are.
    distance: u64,
    count: u64,
    before: u64,
    now: u64,
}

impl Crowd {
    /// A tree's batch was given this number and the one before it has that.
    pub(super) fn meet(&mut self, batch: i64, before: i64) {
        self.distance += batch.abs_diff(before).min(DISTANCE_MAX);
        self.count += 1;
    }

    /// A transaction was written.
    pub(super) fn look(&mut self) {
        if let Some(distance) = self.distance.checked_div(self.count) {
            (self.before, self.now) = (self.now, distance);
            (self.distance, self.count) = (0, 0);
        }
    }

    /// How many trees write, at the least: one that seldom writes is not taken for many.
    pub(super) fn trees(&self) -> usize {
        self.before.min(self.now) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(transactions: &[&[(i64, i64)]]) -> usize {
        let mut crowd = Crowd::default();
        for batches in transactions {
            batches.iter().for_each(|(batch, before)| crowd.meet(*batch, *before));
            crowd.look();
        }
        crowd.trees()
    }

    #[test]
    fn a_tree_alone_is_one() {
        assert_eq!(after(&[&[(2, 1)], &[(3, 2)], &[(4, 3)]]), 1);
    }

    #[test]
    fn trees_that_take_turns_are_counted() {
        assert_eq!(after(&[&[(9, 1), (10, 2)], &[(11, 3)], &[(12, 4), (13, 5)]]), 8);
    }

    #[test]
    fn one_that_seldom_writes_is_not_taken_for_many() {
        assert_eq!(after(&[&[(1_001, 1_000)], &[(1_002, 3)], &[(1_003, 1_001)]]), 2);
        assert_eq!(after(&[&[(1_001, 1_000)], &[(1_002, 3)]]), 1);
    }
}
