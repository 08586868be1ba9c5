//! `spinney ps`: lists every tree of a home, and whether a process runs it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::json;
use spinney::clock::{Clock, SystemClock};
use spinney_journal::{Blocking, CatalogKind, Head, Journal};
use spinney_kernel::record::ExitKind;
use spinney_kernel::words::TreeId;
use spinney_kernel::world::TreeState;

use crate::control::{Running, running};
use crate::exec::homes;
use crate::exit::Exit;
use crate::hint::{YOUR_FILE, command, go_on};
use crate::ids::short;
use crate::paint::{Ink, Row};
use crate::table::{Column, Table};
use crate::terminal::Terminal;
use crate::wording::{ago, one_line};
use crate::{args, open_home, out};

const NAME_CHARS_MAX: usize = 28;

/// A tree, and who runs its home.
struct Listed {
    head: Head,
    name: String,
    state: ListedState,
    /// The home that has it.
    home: PathBuf,
}

pub(super) async fn ps(home: &Path, args: &args::Ps, terminal: Terminal) -> Result<Exit> {
    let runs = homes::trees(home);
    let mut listed = match open_home::look(home) {
        Ok(journal) => list(home, &journal).await?,
        // A home that only `exec` has used has no journal of its own.
        Err(_) if !runs.is_empty() && !homes::has_journal(home) => Vec::new(),
        Err(error) => return Err(error),
    };
    for run in runs {
        let home = homes::home_of(home, run);
        match open_home::look(&home) {
            Ok(journal) => listed.extend(list(&home, &journal).await?),
            // Its process died before it began.
            Err(_) if !homes::has_journal(&home) => {}
            Err(error) => out::complain(&format!("{error:#}")),
        }
    }
    listed.sort_by_key(|listed| (listed.head.started, listed.head.tree));
    if args.json {
        for listed in &listed {
            out::json(&line(listed))?;
        }
        return Ok(Exit::Completed);
    }
    if listed.is_empty() {
        out::line(&format!("no trees yet: `{}` starts one", command(home, &["run", YOUR_FILE])))?;
        return Ok(Exit::Completed);
    }
    let now = SystemClock::new().now_ms();
    let since = |then: u64| ago(now.saturating_sub(then));
    let mut table = Table::new(vec![
        Column::left("TREE"),
        Column::left("STATE"),
        Column::left("NAME").shrinking(),
        Column::right("EVENTS").expendable(3),
        Column::left("STARTED").expendable(1),
        Column::left("LAST CHANGE").expendable(4),
        Column::left("").expendable(2),
    ]);
    for Listed { head, name, state, .. } in &listed {
        let base = head.base.map(|base| format!("branch of {} at {}", short(base.tree), base.at.0));
        table.add(vec![
            Row::of(Ink::Name, &short(head.tree)),
            Row::of(state.ink(), state.word()),
            Row::plain(&one_line(name, NAME_CHARS_MAX)),
            Row::plain(&head.seq.0.to_string()),
            Row::plain(&since(head.started.0)),
            Row::plain(&since(head.changed.0)),
            Row::of(Ink::Dim, &base.unwrap_or_default()),
        ]);
    }
    table.write(terminal)?;
    let interrupted: Vec<&Listed> =
        listed.iter().filter(|listed| listed.state == ListedState::Interrupted).collect();
    for Listed { head, home, .. } in interrupted.iter().rev().take(RESUMES_MAX) {
        let (id, resume) = (short(head.tree), go_on(home, head.tree, head.state));
        out::note(&format!("{id} was interrupted, its process is gone; continue with: {resume}"));
    }
    if interrupted.len() > RESUMES_MAX {
        out::note(&format!("{} more were interrupted", interrupted.len() - RESUMES_MAX));
    }
    Ok(Exit::Completed)
}

/// The trees of one home.
async fn list(home: &Path, journal: &dyn Journal) -> Result<Vec<Listed>> {
    let (heads, names, running) = (journal.heads(&[]).wait()?, names(journal)?, running(home).await);
    if let Running::Silent(pid) = running {
        out::note(&format!(
            "process {pid} has this home open and does not answer: trees shown as running may be interrupted"
        ));
    }
    if let Running::Unknown = running {
        out::note("this is another user's home: trees shown as running may be interrupted");
    }
    let listed = |head: Head| Listed {
        name: names.get(&head.tree).cloned().unwrap_or_default(),
        state: state(&head, &running),
        home: home.to_owned(),
        head,
    };
    Ok(heads.into_iter().map(listed).collect())
}

/// Most interrupted trees whose resume command is printed, newest first.
const RESUMES_MAX: usize = 8;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ListedState {
    Stored(TreeState),
    /// Its journal says that it runs, but no process runs it.
    Interrupted,
}

impl ListedState {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Stored(state) => state.word(),
            Self::Interrupted => "interrupted",
        }
    }

    pub(super) const fn ink(self) -> Ink {
        match self {
            Self::Interrupted | Self::Stored(TreeState::Halted) => Ink::Bad,
            Self::Stored(TreeState::New | TreeState::Running) => Ink::Good,
            Self::Stored(TreeState::Waiting | TreeState::Paused | TreeState::Suspended) => Ink::Warn,
            Self::Stored(TreeState::Ended(ExitKind::Failed | ExitKind::Exhausted)) => Ink::Bad,
            Self::Stored(TreeState::Ended(ExitKind::Completed | ExitKind::Cancelled)) => Ink::Dim,
        }
    }
}

/// If the process that has the home open does not answer, the stored state is shown.
pub(super) fn state(head: &Head, running: &Running) -> ListedState {
    let is_run = match running {
        Running::Trees(trees) => trees.contains(&head.tree),
        Running::Silent(_) | Running::Unknown => true,
        Running::Nobody => false,
    };
    match head.state {
        TreeState::Running if !is_run => ListedState::Interrupted,
        state => ListedState::Stored(state),
    }
}

fn line(Listed { head, name, state, .. }: &Listed) -> String {
    let base = head.base.map(|base| json!({ "tree": base.tree, "seq": base.at }));
    let mut line = json!({
        "tree": head.tree,
        "state": state.word(),
        "name": name,
        "events": head.seq,
        "started": head.started,
        "changed": head.changed,
        "event_hash": head.hash.to_string(),
    });
    if let (Some(base), Some(fields)) = (base, line.as_object_mut()) {
        fields.insert("branch_of".to_owned(), base);
    }
    line.to_string()
}

/// The names of trees in the catalog.
pub(super) fn names(journal: &dyn Journal) -> Result<BTreeMap<TreeId, String>> {
    let facts = journal.catalog(CatalogKind::Tree, "").wait()?;
    Ok(facts.into_iter().map(|fact| (fact.tree, fact.value)).collect())
}
