//! What `spinney exec` tells a person while a program runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use spinney_kernel::budget::Shortfall;
use spinney_kernel::words::{AgentId, Millis, TreeId};
use spinney_server::gateway::{Notice, OnLimit, OnNotice};

use crate::hint;
use crate::live::{shows_command, view_width};
use crate::terminal::wording::counted;
use crate::terminal::{Terminal, out};

/// The root of every run.
const ROOT: &str = "main";

pub(crate) fn raise_command(home: &Path, tree: TreeId, account: &AgentId, short: &Shortfall) -> String {
    hint::raise(home, tree, Some(account).filter(|account| account.as_str() != ROOT), short)
}

/// With a live view on this terminal, a halt is in the view.
pub(crate) fn notices(
    home: PathBuf,
    tree: TreeId,
    on_limit: OnLimit,
    view_on: Option<Terminal>,
    given_up: Arc<AtomicBool>,
) -> OnNotice {
    let (waits, halt_wait) = match on_limit {
        OnLimit::Wait(most) => (true, Millis(most.as_millis() as u64)),
        OnLimit::Stop => (false, Millis(0)),
    };
    Arc::new(move |notice| match notice {
        Notice::Halted { agent, account, short, large_cap } if waits => {
            let command = raise_command(&home, tree, &account, &short);
            let waits = format!(
                "spinney: everything waits: a call of `{agent}` needs more than the {} (for at most {halt_wait:#}).",
                short.describe(&account)
            );
            let cap = large_cap.map(|cap| {
                let cap = counted(cap, "token");
                format!("spinney: the program lets it have {cap} of output; in a run with --on-low shrink it gets what fits.")
            });
            let go_on = format!("spinney: go on with: {command}");
            // The view has the rest.
            let is_shown = view_on.is_some_and(|terminal| shows_command(&command, view_width(terminal)));
            let (waits, go_on) = if is_shown { (None, None) } else { (Some(waits), Some(go_on)) };
            for line in [waits, cap, go_on].into_iter().flatten() {
                out::note(&line);
            }
        }
        Notice::Continued if waits && view_on.is_none() => out::note("spinney: the run goes on"),
        Notice::Halted { .. } | Notice::Continued => {}
        Notice::GivenUp { agent } => {
            given_up.store(true, Ordering::Relaxed);
            out::note(&format!("spinney: a call of `{agent}` was refused at the limit"));
        }
    })
}
