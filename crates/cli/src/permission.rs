//! Asks the person at the terminal whether a home or a file may do what it would do.

use anyhow::{Result, bail};
use spinney_drivers::http::HostName;
use spinney_drivers::mcp::ToolServers;
use spinney_host::shell_word;
use spinney_host::tree_file::source::Text;
use spinney_host::trust::allowed_hosts::AllowedHosts;
use spinney_host::trust::boxes::{AllowedBoxes, BoxNeeds, BoxQuestion};
use spinney_host::trust::egress::{Egress, EgressQuestion};
use spinney_host::trust::foreign_home::HomeQuestion;
use spinney_host::trust::tree_marks::TreeMark;
use spinney_host::user::box_allowance::BoxAllowance;
use spinney_terminal::out;
use spinney_terminal::question::{self, YesOrNo};

use crate::args::HomeTrust;
use crate::hint;

/// Shows what a home would do, and asks. Returns what is recorded of its tree.
pub(crate) fn trust_home(question: HomeQuestion, trust: HomeTrust) -> Result<Option<TreeMark>> {
    if trust == HomeTrust::Given {
        out::note(&format!("{question}\nTrusted because of --trust-home."));
        return Ok(question.accept()?);
    }
    let home = question.home();
    if question.is_too_long() {
        bail!(
            "{question}\nIt is too long to show: look at it in {}, then add --trust-home if you trust it",
            home.display()
        );
    }
    match question::ask(&format!("{question}\nDo you trust it?")) {
        YesOrNo::Yes => Ok(question.accept()?),
        YesOrNo::No => bail!("nothing was started: you said no"),
        YesOrNo::NotAsked => {
            let look = hint::command(home, &["ps"]);
            bail!("{question}\nLook at it with `{look}`, and add --trust-home if you trust it")
        }
    }
}

/// Asks about everything that is not allowed, in one question. Returns what stays refused.
pub(crate) fn ask_egress<'e>(
    text: &'e Text,
    all: &'e [Egress],
    allowed: &AllowedHosts,
) -> Result<Option<EgressQuestion<'e>>> {
    let Some(question) = EgressQuestion::about(text, all, allowed)? else { return Ok(None) };
    match question::ask(&format!("{question}\nAllow this for this file?")) {
        YesOrNo::Yes => {
            question.accept();
            Ok(None)
        }
        YesOrNo::No | YesOrNo::NotAsked => Ok(Some(question)),
    }
}

/// Asks for everything that a tree needs: without it, the tree does not start.
pub(crate) fn agree_to_egress(text: &Text, all: &[Egress], allowed: &AllowedHosts) -> Result<()> {
    match ask_egress(text, all, allowed)? {
        None => Ok(()),
        Some(refused) => {
            let options = host_options(refused.hosts());
            bail!("{refused}\nNothing was sent. If you trust this file and these hosts, add {options}")
        }
    }
}

/// Asks for what the boxes of a tree's commands are without: without it, the tree does not start.
pub(crate) fn agree_to_boxes(text: &Text, needs: &BoxNeeds, allowed: &AllowedBoxes) -> Result<()> {
    let Some(question) = BoxQuestion::about(text, needs, allowed)? else { return Ok(()) };
    match question::ask(&format!("{question}\nAllow this for this file?")) {
        YesOrNo::Yes => {
            question.accept();
            Ok(())
        }
        YesOrNo::No | YesOrNo::NotAsked => {
            let options: Vec<String> = question.refused().map(box_option).collect();
            bail!("{question}\nNothing was started. If you trust this file, add {}", options.join(" "))
        }
    }
}

/// Asks at the terminal when tools of servers say something else than before.
pub(crate) fn ask_about_changes(servers: &ToolServers) {
    servers.ask_about_changes(|changes| {
        question::ask(&format!("{changes}\nUse it from now on?")) == YesOrNo::Yes
    });
}

/// The option that would allow something beyond a whole box.
pub(crate) fn box_option(what: &BoxAllowance) -> String {
    match what {
        BoxAllowance::Folder { access, path } => {
            format!("--{} {}", access.as_str(), shell_word::of_word(path.as_str()))
        }
        BoxAllowance::Host(rule) => format!("--allow-host {}", shell_word::of_word(&rule.to_string())),
        BoxAllowance::Server(_) | BoxAllowance::Program(_) => {
            format!("--allow-box {}", shell_word::of_word(&what.to_string()))
        }
        what => format!("--allow-box {what}"),
    }
}

/// The options that would allow these hosts.
pub(crate) fn host_options<'h>(hosts: impl IntoIterator<Item = &'h HostName>) -> String {
    hosts.into_iter().map(|host| format!("--allow-host {host}")).collect::<Vec<_>>().join(" ")
}
