//! What `spinney exec` prints for a person while a program runs.

use std::path::PathBuf;
use std::str::FromStr as _;
use std::sync::Arc;

use spinney::clock::{Clock as _, SystemClock};
use spinney_host::home::ids::TreeInHome;
use spinney_kernel::budget::Shortfall;
use spinney_kernel::primitives::{AgentId, Millis, Time, TreeId, grouped};
use spinney_server::exec::GivenUpCalls;
use spinney_server::gateway::{Notice, OnLimit, OnNotice};
use spinney_terminal::{Terminal, out};
use spinney_view::remedy::SuggestedRaise;
use spinney_view::wording::{counted, until_words};

use crate::error_text::of_gateway;
use crate::hint;
use crate::live::{shows_command, view_width};

/// The root of every run.
const ROOT: &str = "main";

/// The command that raises every ceiling that a call lacks.
pub(crate) fn raise_command<'h>(
    place: TreeInHome<'_>,
    lacks: impl Iterator<Item = (&'h AgentId, &'h Shortfall)>,
) -> String {
    let root = AgentId::from_str(ROOT).ok();
    hint::raise(place, root.as_ref(), &SuggestedRaise::all(lacks))
}

/// With a live view on this terminal, a halt is in the view.
pub(crate) fn notices(
    home: PathBuf,
    tree: TreeId,
    on_limit: OnLimit,
    view_on: Option<Terminal>,
    given_up: GivenUpCalls,
) -> OnNotice {
    let (waits, halt_wait) = match on_limit {
        OnLimit::Wait(most) => (true, Millis(most.as_millis() as u64)),
        OnLimit::Stop => (false, Millis(0)),
    };
    Arc::new(move |notice| match notice {
        Notice::Halted { large_cap, .. } if !waits => {
            large_cap.map(too_large).iter().for_each(|line| out::note(line));
        }
        Notice::Halted { agent, account, short, also, large_cap } => {
            let also = also.iter().map(|other| (&other.account, &other.short));
            let lacks = std::iter::once((&account, &short)).chain(also);
            let command = raise_command(TreeInHome { home: &home, tree }, lacks);
            let waits = format!(
                "spinney: everything waits: a call of `{agent}` needs more than the {} (waiting at most {halt_wait:#}).",
                short.describe(&account)
            );
            let cap = large_cap.map(too_large);
            let next = format!("spinney: continue with: {command}");
            // The view has the rest.
            let is_shown = view_on.is_some_and(|terminal| shows_command(&command, view_width(terminal)));
            let (waits, next) = if is_shown { (None, None) } else { (Some(waits), Some(next)) };
            for line in [waits, cap, next].into_iter().flatten() {
                out::note(&line);
            }
        }
        Notice::Continued if waits && view_on.is_none() => out::note("spinney: the run continues"),
        Notice::Continued => {}
        Notice::Capped { agent, asked, granted } => {
            let (asked, granted) = (counted(asked, "token"), grouped(granted));
            out::note(&format!(
                "spinney: `{agent}` asked for {asked} of output and gets {granted}, which fits and leaves room for other calls; later calls are capped the same way"
            ));
        }
        Notice::CountedTooLow { model, counted, used } => out::note(&format!(
            "spinney: the provider counted at most {} tokens of input for a call of {model} but billed {}; from now on, the size of the input is the bound for this model",
            grouped(counted),
            grouped(used),
        )),
        Notice::Unpriced { error } | Notice::OtherKey { error } => {
            out::note(&format!("spinney: refused: {}", of_gateway(&error)));
        }
        Notice::UsageWindow { model, until } => out::note(&format!(
            "spinney: the provider takes no calls of {model} {}: its calls wait, and continue then",
            until_words(until, Time(SystemClock::new().now_ms()))
        )),
        Notice::OtherAnswer { message } => out::note(&format!(
            "spinney: {message}; such a call costs nothing. Check the address that ANTHROPIC_BASE_URL, OPENAI_BASE_URL or GOOGLE_GEMINI_BASE_URL names"
        )),
        Notice::OutsideBound { name } => {
            out::note(&format!(
                "spinney: `{name}` passes because you allowed it; the budget does not bound its cost"
            ));
        }
        Notice::GivenUp { agent, halt } => {
            let place = TreeInHome { home: &home, tree };
            let raise = halt.as_ref().map(|halt| raise_command(place, halt.shortfalls()));
            let raise = raise.map(|command| format!("; raise it with: {command}")).unwrap_or_default();
            given_up.add(halt);
            out::note(&format!("spinney: a call of `{agent}` was refused at the limit{raise}"));
        }
    })
}

/// Says what would lower an output cap.
fn too_large(cap: u64) -> String {
    let cap = counted(cap, "token");
    format!(
        "spinney: the call asks for up to {cap} of output. Without --on-low halt, that is lowered to what fits."
    )
}
