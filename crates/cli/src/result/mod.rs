//! The result of a run, as one JSON object or as text.

mod remedy;

use std::path::{Path, PathBuf};

use spinney::tree::{Diverged, OpenQuestion, Stopped, TreeSnapshot};
use spinney_host::home;
use spinney_host::home::ids::TreeInHome;
use spinney_host::{scripted_models, stored_result};
use spinney_journal::{ChainHash, Journal};
use spinney_kernel::primitives::{Body, Millis, TreeId};
use spinney_kernel::world::TreeState;
use spinney_store::OpenHomeError;
use spinney_terminal::out::{self, Unwritten};
use spinney_terminal::reflow::reflowed;
use spinney_view::approval::ApprovalExtent;
use spinney_view::remedy::Remedy;
use spinney_view::result::{self, FAILED, ResultError, StepResults, TreeResult};

use crate::error_text::{in_words, in_words_of};
use crate::events::screen::Style;
use crate::exit::{Exit, unopened_in};
use crate::hint::{ContinuedBy, YOUR_ANSWER, about, merging, next_verb};
use crate::question_lines;

/// What is before the lines of a labelled text.
pub(crate) const LABEL_WIDTH: usize = 10;

/// The result of a command that runs a tree, and the exit code that says the same.
pub(crate) struct Outcome {
    home: PathBuf,
    result: TreeResult,
    exit: Exit,
    continued_by: ContinuedBy,
}

impl Outcome {
    /// The result of a tree that is no longer run.
    pub(crate) async fn read(
        snapshot: &TreeSnapshot,
        hash: Option<ChainHash>,
        journal: &dyn Journal,
        place: TreeInHome<'_>,
    ) -> Self {
        let (result, faults) = stored_result(place.home, journal, place.tree, snapshot, hash).await;
        faults.iter().for_each(|fault| out::complain(&in_words_of(fault)));
        let exit = match result.state {
            TreeState::Halted => Exit::Halted,
            TreeState::Waiting => Exit::Waiting,
            TreeState::Ended(kind) => Exit::of_kind(kind),
            TreeState::New
            | TreeState::Running
            | TreeState::Paused
            | TreeState::Suspended
            | TreeState::Moved
            | TreeState::Copied => Exit::Interrupted,
        };
        let continued_by = ContinuedBy::find(place.home).await;
        Self { home: place.home.to_owned(), result, exit, continued_by }
    }

    /// The result if there is no tree, or it cannot be read.
    pub(crate) async fn without_a_look(home: &Path, tree: Option<TreeId>, failure: &Failure<'_>) -> Self {
        let mut result = TreeResult::none(tree);
        if let Some((tree, journal)) = tree.zip(home::open_unchanged(home).ok()) {
            result.scripted = scripted_models(home, &journal, tree).await;
        }
        let (home, continued_by) = (home.to_owned(), ContinuedBy::Resume);
        Self { home, result, exit: Exit::Failed, continued_by }.failed(failure)
    }

    /// Adds a failure that is not the tree's own: the tree may have got further, or continue later.
    pub(crate) fn failed(mut self, failure: &Failure<'_>) -> Self {
        self.exit = failure.exit();
        self.result.state = FAILED;
        self.result.error = Some(failure.error());
        self.result.questions.clear();
        self
    }

    /// From the first event to the last.
    pub(crate) const fn took(mut self, elapsed_ms: u64) -> Self {
        self.result.elapsed_ms = elapsed_ms;
        self
    }

    /// After an interrupt: a tree that has not ended is stopped, whatever it waits for. One that a person paused
    /// stays paused.
    pub(crate) fn interrupted(mut self) -> Self {
        match self.exit {
            Exit::Completed | Exit::Failed | Exit::Cancelled => {}
            Exit::Interrupted if self.result.state == TreeState::Paused => {}
            _ => {
                self.exit = Exit::Interrupted;
                (self.result.state, self.result.error) = (TreeState::Suspended, None);
            }
        }
        self
    }

    /// The command for its tree if it has not ended.
    fn next(&self, tree: TreeId) -> String {
        self.continued_by.command(&self.home, tree, self.result.state)
    }

    pub(crate) const fn exit(&self) -> Exit {
        self.exit
    }

    /// What helps, if it did not complete.
    pub(crate) fn remedy(&self) -> Option<String> {
        let error = self.result.error.as_ref()?;
        Some(remedy::words(&error.remedy, &self.home, self.result.tree))
    }

    /// Why it did not complete, with what helps.
    pub(crate) fn failure(&self) -> Option<String> {
        let error = self.result.error.as_ref()?;
        Some(format!("{}\n{}", error.message, self.remedy()?))
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        let remedy = self.remedy();
        let json = serde_json::to_value(self.result.json(remedy.as_deref()));
        json.unwrap_or_else(|_| unreachable!("a result can be written"))
    }

    pub(crate) fn write_json(&self) -> Result<(), Unwritten> {
        out::json(&self.json().to_string())
    }

    /// How it ended, and after how long.
    pub(crate) fn headline(&self) -> String {
        format!("{} after {:#}", self.result.state, Millis(self.result.elapsed_ms))
    }

    pub(crate) fn write_plain(&self) -> Result<(), Unwritten> {
        let looks = self.result.tree.map(|tree| about(&self.home, "events", tree, &[]));
        out::line(&self.headline())?;
        let room = spinney_terminal::width_of_output().map(|width| width.saturating_sub(LABEL_WIDTH));
        let blocks = self.blocks(Vec::new(), looks.as_slice());
        blocks.iter().try_for_each(|(label, text)| match room {
            // Its lines were broken by its author.
            Some(room) if *label == self::label(self.exit) => {
                block(label, &reflowed(&out::inert(text), room).join("\n"))
            }
            Some(_) | None => block(label, text),
        })
    }

    /// The result in labelled texts, with more of them in the middle, and commands that show more.
    pub(crate) fn blocks(
        &self,
        more: Vec<(&'static str, String)>,
        looks: &[String],
    ) -> Vec<(&'static str, String)> {
        let mut blocks = Vec::new();
        if !self.result.output.trim().is_empty() {
            blocks.push((label(self.exit), self.result.output.clone()));
        }
        let StepResults { succeeded, failed, skipped, cancelled, .. } = &self.result.steps;
        for (label, names) in [
            ("done", succeeded),
            ("failed", failed),
            ("skipped", skipped),
            ("stopped", cancelled),
            ("files", &self.result.files),
        ] {
            if !names.is_empty() {
                blocks.push((label, few(names)));
            }
        }
        if !self.result.branches.is_empty() {
            let lines: Vec<String> = self.result.branches.iter().map(merging).collect();
            blocks.push(("merge", lines.join("\n")));
        }
        if !self.result.weak_boxes.is_empty() {
            let lines: Vec<String> = self.result.weak_boxes.iter().map(ToString::to_string).collect();
            blocks.push(("box", lines.join("\n")));
        }
        if let Some(error) = &self.result.error {
            blocks.push(("why", error.why()));
            blocks.extend(self.remedy().map(|remedy| ("remedy", remedy)));
        }
        blocks.extend(more);
        if let Some((spent, agents)) = &self.result.usage {
            blocks.push(("spent", self.result.steps.spent_words(spent).join(" · ")));
            blocks.push(("agents", agents.to_string()));
        }
        let Some(tree) = self.result.tree else { return blocks };
        blocks.push(("tree", tree.to_string()));
        blocks.push(("look", looks.join("\n")));
        if self.exit == Exit::Interrupted {
            blocks.push(("next", self.next(tree)));
            if !self.result.state.is_sealed() {
                blocks.push(("give up", about(&self.home, "cancel", tree, &[])));
            }
        }
        blocks
    }
}

/// Why there is no result of a tree.
pub(crate) enum Failure<'a> {
    Error(&'a anyhow::Error),
    /// The journal failed verification.
    Diverged(&'a Diverged),
}

impl Failure<'_> {
    fn exit(&self) -> Exit {
        match self {
            Self::Error(error) => Exit::of_error(error),
            Self::Diverged(_) => Exit::Failed,
        }
    }

    pub(crate) fn error(&self) -> ResultError {
        let (code, remedy) = self.code_and_remedy();
        let message = match self {
            Self::Error(error) => in_words(error),
            Self::Diverged(diverged) => diverged.to_string(),
        };
        ResultError { code: code.to_owned(), message, remedy, numbers: None }
    }

    fn code_and_remedy(&self) -> (&'static str, Remedy) {
        let Self::Error(error) = self else {
            return ("diverged", Remedy::RestoreHome { or_accept_loss: false });
        };
        let unopened = unopened_in(error);
        if matches!(unopened, Some(OpenHomeError::Locked { .. })) {
            ("locked", Remedy::FreeHome)
        } else if matches!(error.downcast_ref(), Some(Stopped::Bug)) {
            ("bug", Remedy::ReportBug)
        } else if self.exit() == Exit::Usage {
            ("usage", Remedy::FixCause)
        } else if unopened.is_some_and(OpenHomeError::is_loss) {
            ("journal", Remedy::RestoreHome { or_accept_loss: true })
        } else {
            ("journal", Remedy::FixCause)
        }
    }
}

/// Ends the output of a failed command: with `--json` the last line is always a result. Returns the error, for
/// people.
pub(crate) async fn failed(
    style: Style,
    outcome: impl AsyncFnOnce(&Failure<'_>) -> Outcome,
    error: anyhow::Error,
) -> anyhow::Error {
    if style != Style::Json || error.is::<Unwritten>() {
        return error;
    }
    match outcome(&Failure::Error(&error)).await.write_json() {
        Ok(()) => error,
        Err(unwritten) => unwritten.into(),
    }
}

/// The same if there is no tree, or it cannot be read.
pub(crate) async fn failed_unseen(
    style: Style,
    home: &Path,
    tree: Option<TreeId>,
    error: anyhow::Error,
) -> anyhow::Error {
    failed(style, async |failure| Outcome::without_a_look(home, tree, failure).await, error).await
}

/// The label of a tree's text: only a completed tree has an answer.
pub(crate) fn label(exit: Exit) -> &'static str {
    if exit == Exit::Completed { "answer" } else { "so far" }
}

/// Names in a row, as many as people read.
fn few(names: &[String]) -> String {
    const SHOWN: usize = 20;
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() <= SHOWN { shown } else { format!("{shown} and {} more", names.len() - SHOWN) }
}

/// A label with its text; further lines are indented.
fn block(label: &str, text: &str) -> Result<(), Unwritten> {
    for (at, line) in text.trim_end().lines().enumerate() {
        let label = if at == 0 { label } else { "" };
        out::line(format!("  {label:<7} {line}").trim_end())?;
    }
    Ok(())
}

/// The whole text, from its blob if the event has only a preview.
pub(crate) async fn whole(body: &Body, journal: &dyn Journal) -> String {
    result::whole(body, journal).await.unwrap_or_else(|fault| {
        out::complain(&format!("only the start of the answer can be shown: {fault}"));
        body.text.clone()
    })
}

/// The questions that can be answered when the process of a tree has ended: those of its tool calls ended with it.
pub(crate) fn answerable(snapshot: &TreeSnapshot) -> Vec<&OpenQuestion> {
    snapshot.questions.iter().filter(|question| question.call.is_none()).collect()
}

/// What to do about open questions.
pub(crate) fn question_texts(
    outcome: &Outcome,
    snapshot: &TreeSnapshot,
    TreeInHome { home, tree }: TreeInHome<'_>,
) -> Vec<String> {
    let state = outcome.result.state;
    let questions = answerable(snapshot);
    let mut lines = vec![question_lines::heading(questions.len(), state)];
    let show_all = about(home, "questions", tree, &[]);
    for question in questions {
        let shown = question_lines::lines(question, ApprovalExtent::Brief, &show_all);
        let indent =
            |(at, line): (usize, String)| if at == 0 { format!("  {line}") } else { format!("    {line}") };
        lines.extend(shown.into_iter().enumerate().map(indent));
        if !state.is_sealed() {
            let number = question.question.0.to_string();
            let answer = about(home, "answer", tree, &[&number, YOUR_ANSWER]);
            lines.push(format!("    {answer}"));
            if question.is_after_answer {
                let [chat, end] = ["chat", "finish"].map(|command| about(home, command, tree, &[]));
                lines.push(format!("    or continue with `{chat}`, or end it with `{end}`"));
            }
        }
    }
    let then = if state.is_sealed() { next_verb(state) } else { "then" };
    lines.push(format!("{then}: {}", outcome.next(tree)));
    lines
}
