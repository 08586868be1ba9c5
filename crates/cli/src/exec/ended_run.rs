//! A run that has ended: a process that was killed after the end of its program has printed nothing, so the next one does.

use std::path::Path;

use anyhow::{Result, bail};
use spinney_host::home;
use spinney_host::home::ids::{LAST, TreeInHome};
use spinney_host::home::{ids, side_journals};
use spinney_server::exec::ExecReport;
use spinney_terminal::out;
use spinney_view::wording::short_id;

use super::report::ShownReport;
use crate::exit::Exit;
use crate::{args, hint};

/// Reports a run that has ended; none if it can continue.
pub(crate) async fn report_ended(path: &Path, args: &args::Exec) -> Result<Option<Exit>> {
    let journal = home::open_read_only(path)?;
    let head = ids::find(path, &journal, LAST).await?;
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
    let report = ExecReport::of_ended(&journal, tree).await?;
    if !args.json {
        let name = ids::name(&journal, tree).await?;
        out::note(&format!("spinney: {name} · tree {} · already ended", short_id(tree)));
    }
    ShownReport { place: TreeInHome { home, tree }, report: &report, given_up: None }.write(args.json)?;
    Ok(Some(Exit::of_run(report.exit)))
}
