//! A run that has ended: a process that was killed after the end of its program has printed nothing, so the next one does.

use std::path::Path;

use anyhow::{Result, bail};
use spinney::tree::stored;
use spinney_host::home;
use spinney_host::home::ids::{LAST, TreeInHome};
use spinney_host::home::{ids, side_journals};
use spinney_journal::Blocking as _;
use spinney_server::exec::{ExecReport, RunExit};
use spinney_server::gateway::GatewayReport;
use spinney_view::RunLedger;
use spinney_view::costs::Costs;
use spinney_view::wording::short_id;

use super::report::ShownReport;
use crate::exit::Exit;
use crate::terminal::out;
use crate::{args, hint};

/// Reports a run that has ended; none if it can go on.
pub(crate) fn report_ended(path: &Path, args: &args::Exec) -> Result<Option<Exit>> {
    let journal = home::look(path)?;
    let head = ids::find(path, &journal, LAST)?;
    if !head.state.is_over() {
        return Ok(None);
    }
    let (home, tree) = (side_journals::above(path), head.tree);
    if args.wants_more_than_a_result() {
        let show = hint::command(home, &["exec", "--resume", &short_id(tree)]);
        bail!(
            "run {} has ended ({}): start a new one; `{show}` shows its result",
            short_id(tree),
            head.state
        );
    }
    let look = stored(&journal, tree).wait()?.look;
    let (ledger, costs) = (RunLedger::read(&journal, tree).wait()?, Costs::read(&journal, tree).wait()?);
    let exit = look.end.as_ref().map_or(RunExit::Failed, |end| RunExit::of_end(&end.exit));
    if !args.json {
        let name = ids::name(&journal, tree)?;
        out::note(&format!("spinney: {name} · tree {} · already ended", short_id(tree)));
    }
    let report = ExecReport {
        tree: Some(tree),
        state: look.state.word(),
        end: look.end.as_ref().map(|end| end.exit.to_string()),
        agents: look.agents,
        costs: Some(costs),
        budget: *ledger.budget(),
        requests: None,
        gateway: GatewayReport::default(),
        exit,
        elapsed_ms: ledger.elapsed_ms(),
        error: None,
    };
    ShownReport { place: TreeInHome { home, tree }, report: &report, given_up: None }.write(args.json)?;
    Ok(Some(Exit::of_run(exit)))
}
