//! What helps a tree that did not complete, as options and commands.

use std::path::Path;

use spinney_host::home::ids::TreeInHome;
use spinney_kernel::primitives::TreeId;
use spinney_view::remedy::Remedy;

use crate::hint::{self, YOUR_FILE, about, command};

/// A remedy in the words of the command line. There may be no tree.
pub(super) fn words(remedy: &Remedy, home: &Path, tree: Option<TreeId>) -> String {
    let again = || match tree {
        Some(tree) => format!("then: {}", about(home, "resume", tree, &[])),
        None => "then run it again".to_owned(),
    };
    let events = || tree.map(|tree| about(home, "events", tree, &[])).unwrap_or_default();
    match remedy {
        Remedy::Raise { raises, root, can_shrink } => {
            let Some(tree) = tree else { return "raise it".to_owned() };
            let budget = hint::raise(TreeInHome { home, tree }, root.as_ref(), raises);
            let resume = about(home, "resume", tree, &[]);
            let less = match can_shrink {
                true => "lower output caps to what fits (`on_low: shrink` in the file), or ",
                false => "",
            };
            format!("{less}raise the ceiling by at least this: {budget} && {resume}")
        }
        Remedy::LargerBudget => "give the tree a larger budget and run it again".to_owned(),
        Remedy::MoreTime => {
            "give it more time with `budget.timeout` or `limits.timeout` and run it again; while a tree runs, `budget --add-time` adds time".to_owned()
        }
        Remedy::RunAgain(first) => format!("{first}, and run it again"),
        Remedy::TryLater => "try again later, or give the model a `fallback`".to_owned(),
        Remedy::TryServer => {
            let doctor = command(home, &["doctor", YOUR_FILE]);
            format!("try again later, or give the model a `fallback`; check whether its server answers: {doctor}")
        }
        Remedy::CheckModel => format!(
            "check the model's `base_url`, `model` and `params`, and run it again; see what led to it: {}",
            events()
        ),
        Remedy::SeeEvents => format!("see what led to it: {}", events()),
        Remedy::RestoreHome { or_accept_loss: true } => {
            let accept = hint::accepting_loss(home);
            format!("restore the home from a copy, or continue with what is left: {accept}")
        }
        Remedy::RestoreHome { or_accept_loss: false } => "restore the home from a copy".to_owned(),
        Remedy::FreeHome => {
            "stop that process, use another --home, or use a read-only command".to_owned()
        }
        Remedy::FixCause => format!("fix what the message names, {}", again()),
        Remedy::ReportBug => format!("please report it; {}", again()),
    }
}
