//! The outcome of a run of `spinney exec`, for people and for programs, and how to look at it.

use std::cmp::Reverse;
use std::path::Path;

use spinney_host::home::ids::TreeInHome;
use spinney_kernel::budget::{Resource, usd};
use spinney_kernel::primitives::{Millis, TreeId};
use spinney_kernel::world::Halt;
use spinney_server::exec::{ExecReport, OwnSpending};
use spinney_terminal::out::{self, Unwritten};
use spinney_view::costs::{CostsBy, Sums};
use spinney_view::wording::{counted, short_id};

use crate::error_text::of_gateway;
use crate::exec::notices::raise_command;
use crate::exit::Exit;
use crate::hint::{about, command};
use crate::result::{Failure, Outcome};

/// Most agents that are listed, the most expensive first.
const LISTED_MAX: usize = 20;

/// A report of a tree in a home.
pub(crate) struct ShownReport<'r> {
    pub(crate) place: TreeInHome<'r>,
    pub(crate) report: &'r ExecReport,
    /// What the last call that was given up at a ceiling lacked.
    pub(crate) given_up: Option<Halt>,
}

impl ShownReport<'_> {
    pub(crate) fn write(&self, is_json: bool) -> Result<(), Unwritten> {
        if is_json {
            return self.write_json();
        }
        self.write_plain();
        Ok(())
    }

    /// For people, beside the output of the program.
    fn write_plain(&self) {
        let Self { place: TreeInHome { home, tree }, report, .. } = self;
        let spent = report.spent();
        let limit = report.budget.get(Resource::Cost);
        let of = limit.map(|limit| format!(" of {}", usd(limit))).unwrap_or_default();
        let costs = report.costs.as_ref();
        let calls = costs.map(|costs| format!(" · {}", call_count(&costs.total))).unwrap_or_default();
        let (cost, tokens) = (spent.amount(Resource::Cost), spent.amount(Resource::Tokens));
        let end = report.end.as_deref().unwrap_or(report.state);
        out::note(&format!(
            "spinney: {end} after {:#} · spent {cost}{of}{calls} · {tokens}",
            Millis(report.elapsed_ms),
        ));
        if let Some(hint) = report.hint() {
            out::note(&format!("spinney: {hint}"));
        }
        self.write_gateway();
        self.write_agents();
        if let Some(error) = &report.error {
            out::complain(&error.message);
            out::note(&format!("spinney: {}", remedy(home, *tree)));
            return;
        }
        out::note(&format!("spinney: look at it with: {}", about(home, "events", *tree, &[])));
        let resume = resume(home, *tree);
        match (Exit::of_run(report.exit), &self.given_up) {
            (Exit::Halted, Some(halt)) => {
                let raise = raise_command(self.place, halt.shortfalls());
                out::note(&format!("spinney: raise the ceiling with: {raise}"));
                out::note(&format!("spinney: then continue with: {resume}"));
            }
            (Exit::Halted | Exit::Interrupted, _) => {
                out::note(&format!("spinney: to continue with the same budget: {resume}"));
            }
            _ => {}
        }
    }

    /// What the gateway refused, and what it let through beyond the budget.
    fn write_gateway(&self) {
        let ExecReport { gateway, costs, .. } = self.report;
        let refused = gateway.refused.unexplained(costs.as_ref().map_or(0, |costs| costs.total.count));
        if let Some(last) = refused.last() {
            let requests = counted(refused.count(), "request");
            let which = if refused.count() == 1 { "" } else { ", the last" };
            let message = of_gateway(last);
            out::note(&format!("spinney: the gateway refused {requests}{which}: {message}"));
        }
        if gateway.capped > 0 {
            let calls = counted(gateway.capped, "call");
            out::note(&format!("spinney: {calls} got a smaller output cap to fit the budget"));
        }
        for (name, calls) in &gateway.outside_bound {
            let calls = counted(*calls, "call");
            out::note(&format!(
                "spinney: not bounded by the budget: `{name}`, which you allowed, in {calls}"
            ));
        }
    }

    fn write_agents(&self) {
        let mut agents = self.report.own_spending();
        agents.sort_by_key(|agent| Reverse(agent.own.get(Resource::Cost)));
        if agents.len() < 2 {
            return;
        }
        for OwnSpending { agent, own } in agents.iter().take(LISTED_MAX) {
            let (name, cost) = (agent.agent.as_str(), own.amount(Resource::Cost));
            let costs = self.report.costs.as_ref();
            let calls = costs.map(|costs| format!(" · {}", call_count(&costs.by(CostsBy::Agent).get(name))));
            out::note(&format!("spinney:   {name:<28} {cost}{}", calls.unwrap_or_default()));
        }
        if agents.len() > LISTED_MAX {
            out::note(&format!("spinney:   … and {} more", agents.len() - LISTED_MAX));
        }
    }

    fn write_json(&self) -> Result<(), Unwritten> {
        let TreeInHome { home, tree } = self.place;
        let remedy = remedy(home, tree);
        let result = line(self.report, Exit::of_run(self.report.exit), Some(&remedy));
        if let Some(error) = &self.report.error {
            out::complain(&error.message);
        }
        match self.report.requests {
            Some(_) => out::json_below(&result),
            // No program wrote anything.
            None => out::json(&result),
        }
    }
}

fn line(report: &ExecReport, exit: Exit, remedy: Option<&str>) -> String {
    let line = serde_json::to_string(&report.json(exit.code(), remedy));
    line.unwrap_or_else(|_| unreachable!("a report can be written"))
}

fn resume(home: &Path, tree: TreeId) -> String {
    command(home, &["exec", "--resume", &short_id(tree)])
}

/// What to do after a failure.
fn remedy(home: &Path, tree: TreeId) -> String {
    format!("fix what the message names, then continue with: {}", resume(home, tree))
}

/// The result of a run that has none, because its program was not started.
pub(crate) async fn write_not_started(home: &Path, error: &anyhow::Error) -> Result<(), Unwritten> {
    let failure = Failure::Error(error);
    let outcome = Outcome::without_a_look(home, None, &failure).await;
    out::json(&line(&ExecReport::not_started(failure.error()), outcome.exit(), outcome.remedy().as_deref()))
}

/// How many calls there were, and how many of them got no answer: one that was cut off may have been billed, and is booked
/// at its hold.
fn call_count(Sums { count, cut_off, failed, .. }: &Sums) -> String {
    let mut calls = counted(*count, "call");
    for (part, what) in [(cut_off, "cut off"), (failed, "failed")] {
        match *part {
            0 => {}
            part if part == *count => calls += &format!(", {what}"),
            part => calls += &format!(", {part} {what}"),
        }
    }
    calls
}
