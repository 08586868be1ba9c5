//! Requests a summary of what leaves an agent's window from its own model: a call like any other, but not a turn. At
//! most one per cut; the cut follows whatever its result.

use crate::budget::Fit;
use crate::context::summary_tokens;
use crate::definition::Compact;
use crate::primitives::limit;
use crate::record::{Cut, ModelCall, NoSummary, Summary, Work};
use crate::rules::{Draft, call};
use crate::window;
use crate::world::AgentIx;

/// What replaces a cut.
pub(super) enum Telling {
    /// Known now; `None` if the role wants no summary.
    Now(Option<Summary>),
    /// The result of this call.
    After(Work),
}

pub(super) fn telling(draft: &Draft<'_>, ix: AgentIx, cut: &Cut, compact: Compact) -> Telling {
    match compact {
        Compact::Lines | Compact::Count => return Telling::Now(None),
        Compact::Summary if cut.drop.is_empty() => return Telling::Now(None),
        Compact::Summary => {}
    }
    if let Some(summary) = draft.agent(ix).progress.window.summary(cut) {
        return Telling::Now(Some(summary));
    }
    match work(draft, ix, cut) {
        Ok(work) => Telling::After(work),
        Err(why) => Telling::Now(Some(Summary::Not(why))),
    }
}

/// The call for a summary of what is dropped, if it fits and the turn can still be paid for.
fn work(draft: &Draft<'_>, ix: AgentIx, cut: &Cut) -> Result<Work, NoSummary> {
    let agent = draft.agent(ix);
    let (window, model) = (&agent.progress.window, &agent.terms.model);
    let size = window.room().unwrap_or(u64::MAX);
    let (covers, tokens) = window::covers(window, cut, size, summary_tokens()).ok_or(NoSummary::NoRoom)?;
    let mut left = window.clone();
    left.cut(cut);
    let turn = call::turn_work(draft, ix, model, left.tokens()).map_err(|_| NoSummary::Refused)?;
    let summary_cap = turn.output_cap.min(covers.room());
    let summary =
        call::model_work(draft, ix, model, tokens.bound(), summary_cap).map_err(|_| NoSummary::Refused)?;
    let estimate = window.is_estimated().then(|| window.corrected(tokens.estimate()));
    if summary.output_cap < limit::SUMMARY_TOKENS_MIN {
        return Err(NoSummary::NoRoom);
    }
    let summary = Work::Model(ModelCall { summary: Some(Box::new(covers)), estimate, ..summary });
    let [turn, ask] =
        [&Work::Model(turn), &summary].map(|work| call::first_attempt(draft.definition(), work, draft.now()));
    match draft.ledger().fit(agent.account, &turn.plus(&ask)) {
        Fit::Yes | Fit::Wait(..) => Ok(summary),
        Fit::Never(..) | Fit::Shut(_) => Err(NoSummary::Budget),
    }
}
