//! `TRACEPARENT`: the trace of the process that started us, as tools that follow W3C Trace Context pass it on.

use spinney_kernel::primitives::TraceParent;

const VARIABLE: &str = "TRACEPARENT";

/// `None` if there is none, or none that can be read: a trace is never a reason not to run.
#[expect(clippy::disallowed_methods, reason = "of the process that started this one, and not a setting")]
#[must_use]
pub fn caller_trace() -> Option<TraceParent> {
    let text = std::env::var_os(VARIABLE).filter(|text| !text.is_empty())?;
    match text.to_string_lossy().parse() {
        Ok(trace) => Some(trace),
        Err(error) => {
            tracing::warn!(target: "spinney::trace", %error, "{VARIABLE} is ignored");
            None
        }
    }
}
