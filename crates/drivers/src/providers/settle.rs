//! The outcome of an attempt, in the kernel's words: its answer or its fault, and what it used. Where a provider may bill
//! and does not say how much, that is unknown, and the full hold is spent.

use spinney_kernel::budget::{Usage, Used};
use spinney_kernel::port::model::{AttemptError, ModelAnswer, StopReason};
use spinney_kernel::primitives::{Fault, FaultKind};
use spinney_kernel::record::ToolAsk;

use crate::http::{Reached, WireAttemptError};
use crate::wire::{ServedFrom, WireAnswer, WireFault, WireFaultKind, WireStop, WireToolCall, WireUsage};

/// A whole answer.
///
/// # Errors
/// If it has more continuation data than can be kept.
pub fn answered(answer: WireAnswer) -> Result<ModelAnswer, AttemptError> {
    let used = used(&answer.usage);
    let continuation = answer.continuation.map(|data| data.to_bytes()).transpose();
    let continuation = continuation.map_err(|error| {
        let fault = Fault { message: error.to_string(), ..Fault::new(FaultKind::Invalid) };
        AttemptError { fault, used }
    })?;
    let stop = stop(answer.stop.as_ref());
    Ok(ModelAnswer::text(answer.text)
        .with_reasoning(answer.reasoning)
        .with_continuation(continuation)
        .with_asks(asks(answer.calls, stop))
        .with_used(used)
        .with_stop(stop))
}

/// An attempt without a whole answer.
#[must_use]
pub fn missed(missed: WireAttemptError, from: ServedFrom) -> AttemptError {
    let used = match (missed.reached, from) {
        (Reached::NotSent, _) => Used::NOTHING,
        // A provider does not bill an error that it sends instead of an answer.
        (Reached::Refused, ServedFrom::Provider) if !is_of_relay(missed.fault.status) => Used::NOTHING,
        (Reached::Refused, ServedFrom::Elsewhere) if !may_work_on(missed.fault.status) => Used::NOTHING,
        (Reached::Refused | Reached::Sent, _) => used(&missed.answer.usage),
    };
    AttemptError { fault: fault(missed.fault), used }
}

/// Whether this is a status with which a proxy gives up while the model may keep working.
const fn may_work_on(status: Option<u16>) -> bool {
    matches!(status, None | Some(408 | 502 | 504 | 520..=527 | 530))
}

/// Whether a relay in front of a provider answers, which no provider does with these: the model may keep working.
const fn is_of_relay(status: Option<u16>) -> bool {
    matches!(status, Some(520..=527 | 530))
}

/// What a call used, if the provider reported all of it and the prices are known. Servers that do not count report
/// zeros.
pub(super) fn used(usage: &WireUsage) -> Used {
    if usage.has_unknown_price {
        return Used::Unknown;
    }
    let (Some(input), Some(output)) = (usage.input, usage.output) else { return Used::Unknown };
    let reasoning = usage.reasoning.unwrap_or(0).min(output);
    let usage = Usage {
        input,
        cached_input: usage.cache_read.unwrap_or(0),
        cache_write: usage.cache_written_5m.unwrap_or(0),
        cache_write_1h: usage.cache_written_1h.unwrap_or(0),
        output: output - reasoning,
        reasoning,
        reported_nanos: usage.reported_nanos.unwrap_or(0),
        apart_nanos: usage.apart_nanos,
    };
    if usage.input_tokens() == 0 {
        return Used::Unknown;
    }
    Used::Tokens(usage).checked().unwrap_or(Used::Unknown)
}

fn stop(stop: Option<&WireStop>) -> StopReason {
    match stop {
        Some(WireStop::End) | None => StopReason::End,
        Some(WireStop::ToolCalls) => StopReason::ToolCalls,
        Some(WireStop::OutputCap) => StopReason::OutputCap,
        Some(WireStop::ContentFilter) => StopReason::ContentFilter,
        Some(WireStop::Refusal) => StopReason::Refusal,
        Some(WireStop::Other(_)) => StopReason::Other,
    }
}

/// The calls to make. One that was cut is dropped; one that the model ended and wrote badly is not, because the model is
/// told what is wrong with it.
fn asks(calls: Vec<WireToolCall>, stop: StopReason) -> Vec<ToolAsk> {
    let has_ended = matches!(stop, StopReason::End | StopReason::ToolCalls);
    let whole = calls.into_iter().filter(|call| call.is_whole || has_ended);
    whole.map(|call| ToolAsk::new(call.id, call.name, call.arguments)).collect()
}

pub(super) fn fault(fault: WireFault) -> Fault {
    let (kind, remedy) = match fault.kind {
        WireFaultKind::RateLimit => (FaultKind::RateLimit, None),
        WireFaultKind::Overload => (FaultKind::Overloaded, None),
        WireFaultKind::Server | WireFaultKind::Unreachable | WireFaultKind::Malformed => {
            (FaultKind::Server, None)
        }
        WireFaultKind::Timeout => (FaultKind::Timeout, None),
        WireFaultKind::Cut => (FaultKind::Cut, None),
        WireFaultKind::Auth => (FaultKind::Auth, None),
        WireFaultKind::OutOfCredit => (FaultKind::OutOfCredit, None),
        WireFaultKind::ContentFilter => (FaultKind::ContentFilter, None),
        WireFaultKind::ContextTooLong => (FaultKind::ContextTooLong, None),
        WireFaultKind::TooLarge => {
            (FaultKind::Invalid, Some("lower `max_tokens_per_step`, or use another model"))
        }
        WireFaultKind::BadRequest => {
            (FaultKind::Invalid, Some("check the model's `params` and its `base_url`"))
        }
        WireFaultKind::Insecure => (
            FaultKind::Invalid,
            Some(
                "check `base_url`; a certificate authority of your own goes into a file that SSL_CERT_FILE names",
            ),
        ),
        WireFaultKind::NotFound => (FaultKind::Invalid, Some("check the names in `model` and `base_url`")),
    };
    let message = match remedy {
        None => fault.message,
        Some(remedy) => format!("{}: {remedy}", fault.message),
    };
    Fault { kind, message, retry_after_ms: fault.retry_after_ms }
}
