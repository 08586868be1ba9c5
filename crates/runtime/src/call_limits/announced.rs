//! The limits that a provider announced: how much it takes before it says no. What is left is refilled evenly until
//! the announced reset, whatever period the provider counts in.

use spinney_kernel::port::model::{Allowance, Announced};

/// What a provider said is left, and what was taken since.
#[derive(Debug, Default)]
pub(super) struct Left {
    requests: Option<Bucket>,
    tokens: Option<Bucket>,
    input_tokens: Option<Bucket>,
    output_tokens: Option<Bucket>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) requests: u64,
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
}

impl Sent {
    pub(super) const fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_add(other.requests),
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
        }
    }

    pub(super) const fn minus(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(other.requests),
            input_tokens: self.input_tokens.saturating_sub(other.input_tokens),
            output_tokens: self.output_tokens.saturating_sub(other.output_tokens),
        }
    }

    const fn tokens(self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    allowance: Allowance,
    at_ms: u64,
    taken: u64,
}

impl Left {
    /// A provider answered a call, and `since` is what was sent after that call: it may not be counted yet.
    pub(super) fn learn(&mut self, announced: Announced, since: Sent, now_ms: u64) {
        let learn = |old: &mut Option<Bucket>, new: Option<Allowance>, taken: u64| {
            if let Some(allowance) = new {
                *old = Some(Bucket { allowance, at_ms: now_ms, taken });
            }
        };
        learn(&mut self.requests, announced.requests, since.requests);
        learn(&mut self.tokens, announced.tokens, since.tokens());
        learn(&mut self.input_tokens, announced.input_tokens, since.input_tokens);
        learn(&mut self.output_tokens, announced.output_tokens, since.output_tokens);
    }

    /// How long until there is room for a call.
    pub(super) fn wait_ms(&self, sending: Sent, now_ms: u64) -> u64 {
        let each = [
            (self.requests, sending.requests),
            (self.tokens, sending.tokens()),
            (self.input_tokens, sending.input_tokens),
            (self.output_tokens, sending.output_tokens),
        ];
        let waits = each.into_iter().filter_map(|(bucket, need)| Some(bucket?.wait_ms(need, now_ms)));
        waits.max().unwrap_or(0)
    }

    pub(super) fn take(&mut self, sending: Sent) {
        let each = [
            (&mut self.requests, sending.requests),
            (&mut self.tokens, sending.tokens()),
            (&mut self.input_tokens, sending.input_tokens),
            (&mut self.output_tokens, sending.output_tokens),
        ];
        for (bucket, taken) in each {
            if let Some(bucket) = bucket {
                bucket.taken = bucket.taken.saturating_add(taken);
            }
        }
    }
}

impl Bucket {
    fn wait_ms(&self, need: u64, now_ms: u64) -> u64 {
        let Allowance { limit, remaining, reset_ms } = self.allowance;
        // A call that is larger than the whole limit goes when everything is there.
        let need = u128::from(need.min(limit)) + u128::from(self.taken);
        let missing = need.saturating_sub(u128::from(remaining));
        let refill = u128::from(limit.saturating_sub(remaining)).max(1);
        let after_ms = (missing * u128::from(reset_ms)).div_ceil(refill).min(u128::from(reset_ms));
        // From the reset on, the announcement says nothing.
        (self.at_ms + u64::try_from(after_ms).unwrap_or(reset_ms)).saturating_sub(now_ms)
    }
}
