//! Repairs: an agent whose answer does not match its schema gets another turn, and fails after a few of them.

use crate::definition::{Mismatch, MismatchKind};
use crate::primitives::{ALL_ALLOWED, Reworded, limit};
use crate::record::{Exit, FailureCode};
use crate::rules::{Draft, agent};
use crate::world::AgentIx;

const SAY_MORE: Reworded =
    Reworded::new("describe the expected answer in the goal", "say in the goal what is wanted");

/// Ends an agent whose answer can no longer be repaired. Otherwise nothing is decided here: its context has the
/// mismatch, and without open calls it takes another turn.
///
/// An answer that was cut at its output cap rarely matches. It may be shorter next time; in the end the cap is the
/// reason of the failure.
pub(super) fn repair(draft: &mut Draft<'_>, ix: AgentIx, mismatch: &Mismatch, cut_at: Option<u64>) {
    let progress = &draft.agent(ix).progress;
    let (repairs, turns) = (progress.repairs().saturating_sub(1), progress.turns);
    let turns_max = draft.turns_of(ix).map(|turns| turns.turns_max).unwrap_or(turns);
    let wrong = mismatch.describe();
    let exit = if mismatch.kind == MismatchKind::Schema {
        let message = format!("the schema itself is wrong: {wrong}: no answer can fit it; give a valid one");
        Exit::failed(FailureCode::BadOutputSchema, message)
    } else if let (true, Some(output_cap)) = (repairs >= limit::REPAIRS_MAX, cut_at) {
        super::truncated(output_cap)
    } else if repairs >= limit::REPAIRS_MAX {
        let message = format!(
            "{wrong}: the answer still does not fit `output_schema` after {repairs} repairs; {}, or ask for less in the schema",
            SAY_MORE.under(draft.rules())
        );
        Exit::failed(FailureCode::OutputMismatch, message)
    } else if turns >= turns_max {
        let message = format!(
            "{wrong}: no answer fits `output_schema` after {}, {}: raise `limits.max_steps`, or ask for less",
            super::turns_text(turns_max),
            ALL_ALLOWED.under(draft.rules())
        );
        Exit::failed(FailureCode::MaxSteps, message)
    } else {
        return;
    };
    agent::end(draft, ix, exit, None);
}
