//! What `spinney exec` tells a person while a program runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use spinney_kernel::budget::{Resource, Shortfall};
use spinney_kernel::words::{AgentId, Millis, TreeId};
use spinney_server::gateway::{Notice, OnNotice};

use crate::args::{self, LimitPolicy};
use crate::hint::about;
use crate::out;

/// The command that raises a ceiling: by as much as the call lacks, rounded up to what a person would type.
pub(crate) fn raise_command(home: &Path, tree: TreeId, account: &AgentId, short: &Shortfall) -> String {
    const DOLLAR: u64 = 1_000_000_000;
    let lacks = short.asked.saturating_sub(short.left()).max(1);
    let (option, amount) = match short.resource {
        Resource::Cost => ("--add-usd", lacks.div_ceil(DOLLAR)),
        Resource::Tokens => ("--add-tokens", lacks.next_multiple_of(1_000)),
        Resource::Steps => ("--add-steps", lacks),
        Resource::ToolCalls => ("--add-tool-calls", lacks),
        Resource::Retries => ("--add-retries", lacks),
    };
    let amount = amount.to_string();
    let more: &[&str] = match account.as_str() {
        "main" => &[option, &amount],
        agent => &[agent, option, &amount],
    };
    about(home, "budget", tree, more)
}

pub(crate) fn notices(home: PathBuf, tree: TreeId, args: &args::Exec, given_up: Arc<AtomicBool>) -> OnNotice {
    let waits = args.on_limit == LimitPolicy::Wait;
    let halt_wait = Millis(args.halt_wait.ms());
    Arc::new(move |notice| match notice {
        Notice::Halted { agent, account, short } if waits => {
            let command = raise_command(&home, tree, &account, &short);
            out::note(&format!(
                "spinney: everything waits: a call of `{agent}` needs more than the {} (for at most {halt_wait:#}).\nspinney: go on with: {command}",
                short.describe(&account)
            ));
        }
        Notice::Continued if waits => out::note("spinney: the run goes on"),
        Notice::Halted { .. } | Notice::Continued => {}
        Notice::GivenUp { agent } => {
            given_up.store(true, Ordering::Relaxed);
            out::note(&format!("spinney: a call of `{agent}` was refused at the limit"));
        }
    })
}
