//! One rate limit: what went out in the last minute, and who is next.
//!
//! Calls that do not fit yet get a place in a queue that is fair between trees: each tree's next call starts where its
//! last one ended in virtual time (start-time fair queueing), so a tree with many waiting calls gets no more than a
//! tree with one. No call is woken: it learns how long to wait and then asks again, and its place is kept for a
//! short while.

use std::collections::{BTreeMap, VecDeque};

use spinney_kernel::definition::RateLimit;
use spinney_kernel::primitives::{CallId, TreeId};

pub(super) const WINDOW_MS: u64 = 60_000;
/// Calls are counted in slices of this length, and a slice counts until its last call is a minute old. So memory is
/// bounded, and no minute ever has more than its limit.
const SLICE_MS: u64 = 100;
/// How long a place in the queue is kept for a call that could have asked again.
const GRACE_MS: u64 = 5_000;
/// Places are searched for abandoned ones when there are this many.
const PLACES_MAX: usize = 4_096;
/// The virtual time of one minute at the full rate.
const MINUTE: u64 = 1 << 40;

/// Whose call it is, and what it may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asking {
    pub(super) tree: TreeId,
    pub(super) call: CallId,
    pub(super) tokens: u64,
}

#[derive(Debug, Default)]
pub(super) struct Limiter {
    /// Oldest first.
    slices: VecDeque<Slice>,
    sum: Used,
    queue: BTreeMap<QueuePlace, Waiting>,
    places: BTreeMap<(TreeId, CallId), QueuePlace>,
    /// Where each tree's last call ends in virtual time, if that is in the future.
    ends: BTreeMap<TreeId, u64>,
    virtual_now: u64,
    arrivals: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Used {
    requests: u64,
    tokens: u64,
}

#[derive(Debug)]
struct Slice {
    start_ms: u64,
    used: Used,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct QueuePlace {
    virtual_start: u64,
    arrival: u64,
}

#[derive(Debug)]
struct Waiting {
    asking: Asking,
    due_ms: u64,
}

/// What a call took, to correct it when its usage is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    slice_ms: u64,
    tokens: u64,
}

impl Limiter {
    /// Whether a call may go out now. If not, it gets or keeps a place in the queue, and the time to wait.
    pub(super) fn ask(&mut self, asking: Asking, rate: RateLimit, now_ms: u64) -> Result<(), u64> {
        self.forget_old(now_ms);
        let id = (asking.tree, asking.call);
        let asking = Asking { tokens: bounded(asking.tokens, rate), ..asking };
        let known = self.places.get(&id).copied();
        let place = known.unwrap_or_else(|| self.place_of(asking.tree));
        let ahead = self.ahead_of(place, now_ms);
        let wait_ms = self.wait_ms(
            Used { requests: ahead.requests + 1, tokens: ahead.tokens + asking.tokens },
            rate,
            now_ms,
        );
        if wait_ms == 0 {
            return Ok(());
        }
        if known.is_none() {
            self.book(asking, place, rate);
            self.places.insert(id, place);
        }
        self.queue.insert(place, Waiting { asking, due_ms: now_ms + wait_ms });
        Err(wait_ms)
    }

    /// Counts a call that may go out.
    pub(super) fn take(&mut self, asking: Asking, rate: RateLimit, now_ms: u64) -> Taken {
        let asking = Asking { tokens: bounded(asking.tokens, rate), ..asking };
        let place = match self.places.remove(&(asking.tree, asking.call)) {
            Some(place) => {
                self.queue.remove(&place);
                place
            }
            None => {
                let place = self.place_of(asking.tree);
                self.book(asking, place, rate);
                place
            }
        };
        self.virtual_now = self.virtual_now.max(place.virtual_start);
        let start_ms = now_ms - now_ms % SLICE_MS;
        if self.slices.back().is_none_or(|last| last.start_ms < start_ms) {
            self.slices.push_back(Slice { start_ms, used: Used::default() });
        }
        if let Some(last) = self.slices.back_mut() {
            add(&mut last.used, 1, asking.tokens);
            add(&mut self.sum, 1, asking.tokens);
        }
        Taken { slice_ms: start_ms, tokens: asking.tokens }
    }

    /// Corrects what a call took to what it used, if it still counts.
    pub(super) fn settle(&mut self, taken: Taken, tokens: u64) {
        let at = self.slices.binary_search_by_key(&taken.slice_ms, |slice| slice.start_ms);
        if let Some(slice) = at.ok().and_then(|at| self.slices.get_mut(at)) {
            slice.used.tokens = (slice.used.tokens - taken.tokens).saturating_add(tokens);
            self.sum.tokens = (self.sum.tokens - taken.tokens).saturating_add(tokens);
        }
    }

    /// Removes what waits for a tree that is gone.
    pub(super) fn forget(&mut self, tree: TreeId) {
        self.ends.remove(&tree);
        self.queue.retain(|_, waiting| waiting.asking.tree != tree);
        self.places.retain(|(of, _), _| *of != tree);
    }

    fn forget_old(&mut self, now_ms: u64) {
        while let Some(first) = self.slices.front()
            && first.start_ms + SLICE_MS + WINDOW_MS <= now_ms
        {
            self.sum.requests -= first.used.requests;
            self.sum.tokens -= first.used.tokens;
            self.slices.pop_front();
        }
        if self.places.len() >= PLACES_MAX || self.ends.len() >= PLACES_MAX {
            let virtual_now = self.virtual_now;
            self.queue.retain(|_, waiting| is_kept(waiting, now_ms));
            self.places.retain(|_, place| self.queue.contains_key(place));
            self.ends.retain(|_, end| *end > virtual_now);
        }
    }

    fn place_of(&mut self, tree: TreeId) -> QueuePlace {
        self.arrivals += 1;
        let virtual_start = self.ends.get(&tree).copied().unwrap_or(0).max(self.virtual_now);
        QueuePlace { virtual_start, arrival: self.arrivals }
    }

    /// Moves the tree's end in virtual time behind this call: by its share of a minute, of requests or of tokens,
    /// whichever is larger.
    fn book(&mut self, asking: Asking, place: QueuePlace, rate: RateLimit) {
        let share = |amount: u64, limit: Option<u64>| {
            limit.map_or(0, |limit| u128::from(amount) * u128::from(MINUTE) / u128::from(limit.max(1)))
        };
        let length = share(1, rate.requests_per_min).max(share(asking.tokens, rate.tokens_per_min)).max(1);
        let length = u64::try_from(length).unwrap_or(MINUTE);
        self.ends.insert(asking.tree, place.virtual_start.saturating_add(length));
    }

    /// What the calls before a place will take.
    fn ahead_of(&self, place: QueuePlace, now_ms: u64) -> Used {
        let mut ahead = Used::default();
        for (_, waiting) in self.queue.range(..place).filter(|(_, waiting)| is_kept(waiting, now_ms)) {
            add(&mut ahead, 1, waiting.asking.tokens);
        }
        ahead
    }

    /// How long until there is room for as much.
    fn wait_ms(&self, need: Used, rate: RateLimit, now_ms: u64) -> u64 {
        let wait = |need: u64, used: u64, limit: Option<u64>, of: fn(&Used) -> u64| {
            let Some(limit) = limit else { return 0 };
            // What does not fit into one minute comes in a later one.
            let minutes = need.saturating_sub(1) / limit.max(1);
            let excess = (used + need - minutes * limit).saturating_sub(limit);
            let mut freed = 0;
            let slice = self.slices.iter().find(|slice| {
                freed += of(&slice.used);
                freed >= excess
            });
            let free_ms =
                slice.filter(|_| excess > 0).map_or(now_ms, |slice| slice.start_ms + SLICE_MS + WINDOW_MS);
            free_ms.saturating_sub(now_ms) + minutes * WINDOW_MS
        };
        let requests = wait(need.requests, self.sum.requests, rate.requests_per_min, |used| used.requests);
        requests.max(wait(need.tokens, self.sum.tokens, rate.tokens_per_min, |used| used.tokens))
    }
}

fn is_kept(waiting: &Waiting, now_ms: u64) -> bool {
    now_ms < waiting.due_ms + GRACE_MS
}

/// A call that is larger than a whole minute takes a whole minute.
fn bounded(tokens: u64, rate: RateLimit) -> u64 {
    tokens.min(rate.tokens_per_min.unwrap_or(u64::MAX))
}

const fn add(used: &mut Used, requests: u64, tokens: u64) {
    used.requests += requests;
    used.tokens = used.tokens.saturating_add(tokens);
}
