//! One turn of a scripted model: plans it and performs it.

use std::future::pending;
use std::time::Duration;

use spinney_kernel::budget::{Usage, Used};
use spinney_kernel::port::model::{AttemptError, DeltaKind, Deltas, ModelAnswer};
use spinney_kernel::primitives::{Fault, FaultKind, TokenCount};
use spinney_kernel::record::{StopReason, ToolAsk};

/// Bytes of one streamed chunk: about a word or two.
const CHUNK_BYTES: usize = 16;
/// Bytes of one token: what this model's tokenizer is.
const TOKEN_BYTES: usize = 4;

/// What a rule does at one attempt.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) think_ms: u64,
    pub(super) chunk_ms: u64,
    /// What is streamed before the end.
    pub(super) text: String,
    pub(super) end: End,
}

/// How a turn ends.
#[derive(Debug)]
pub(super) enum End {
    Answers { asks: Vec<ToolAsk>, reasoning: String, used: Used, stop: StopReason },
    Misses(AttemptError),
    Hangs,
}

impl Turn {
    /// The script cannot answer this attempt, and no retry will help.
    pub(super) fn invalid(message: String) -> Self {
        let fault = Fault { message, ..Fault::new(FaultKind::Invalid) };
        let missed = AttemptError { fault, used: Used::Tokens(Usage::default()) };
        Self { think_ms: 0, chunk_ms: 0, text: String::new(), end: End::Misses(missed) }
    }

    /// Thinks, streams, ends.
    pub(super) async fn perform(self, deltas: Deltas) -> Result<ModelAnswer, AttemptError> {
        pause(self.think_ms).await;
        if let End::Answers { reasoning, .. } = &self.end {
            chunks(reasoning).for_each(|chunk| deltas(DeltaKind::Reasoning, chunk));
        }
        for (at, chunk) in chunks(&self.text).enumerate() {
            if at > 0 {
                pause(self.chunk_ms).await;
            }
            deltas(DeltaKind::Text, chunk);
        }
        match self.end {
            End::Answers { asks, reasoning, used, stop } => {
                // As a provider that signs its thoughts and wants them back.
                let continuation =
                    (!reasoning.is_empty()).then(|| format!("signed: {reasoning}").into_bytes());
                let answer = ModelAnswer::text(self.text);
                Ok(answer
                    .with_reasoning(reasoning)
                    .with_continuation(continuation)
                    .with_asks(asks)
                    .with_used(used)
                    .with_stop(stop))
            }
            End::Misses(missed) => Err(missed),
            End::Hangs => pending().await,
        }
    }
}

/// How many tokens a text has: a quarter of its bytes, rounded up.
pub(super) const fn tokens(text: &str) -> u64 {
    text.len().div_ceil(TOKEN_BYTES) as u64
}

/// Cuts what is said at the output cap, as a provider does: first the text, then the arguments of the call that
/// passes the cap; calls for which nothing is left are not made. Says whether anything was cut.
pub(super) fn capped(
    mut text: String,
    asks: Vec<ToolAsk>,
    output_cap: u64,
) -> (String, Vec<ToolAsk>, StopReason) {
    let said = tokens(&text) + asks.iter().map(|ask| tokens(&ask.args)).sum::<u64>();
    let stop = if said > output_cap { StopReason::OutputCap } else { StopReason::End };
    let mut room = output_cap;
    cut(&mut text, &mut room);
    let mut made = Vec::with_capacity(asks.len());
    for mut ask in asks {
        if room == 0 {
            break;
        }
        let before = tokens(&ask.args);
        cut(&mut ask.args, &mut room);
        let gone = TokenCount::exact(before - tokens(&ask.args));
        ask.tokens = ask.tokens.map(|counted| counted.minus(gone));
        made.push(ask);
    }
    (text, made, stop)
}

/// Cuts a text to the tokens there is room for, and takes what is left of it out of the room.
fn cut(text: &mut String, room: &mut u64) {
    let bytes_max = usize::try_from(*room).unwrap_or(usize::MAX).saturating_mul(TOKEN_BYTES);
    text.truncate(text.floor_char_boundary(bytes_max));
    *room = room.saturating_sub(tokens(text));
}

/// Waits, if there is anything to wait for: without latencies no timer is needed.
pub(super) async fn pause(ms: u64) {
    if ms > 0 {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}

/// The text in pieces that end where a character ends.
fn chunks(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (chunk, rest) = text.split_at(text.floor_char_boundary(CHUNK_BYTES));
        text = rest;
        (!chunk.is_empty()).then_some(chunk)
    })
}
