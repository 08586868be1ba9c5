//! Asks a person at the terminal: one question at a time, the oldest first, while other agents continue. With a live view the
//! answer is typed in its last line; with lines, the question is asked when it is there, and again when everything else rests.

use std::collections::BTreeSet;
use std::future::pending;
use std::io::{self, IsTerminal as _};

use anyhow::Result;
use spinney::Tree;
use spinney::tree::{OpenQuestion, RequestError};
use spinney_kernel::primitives::{Actor, AgentId, CallId};
use spinney_kernel::record::Event;
use spinney_kernel::rules::request::Conclude;
use spinney_terminal::keyboard::{Keyboard, Pressed};
use spinney_terminal::question::discard_typed;
use spinney_terminal::{Stream, out};
use spinney_view::approval::ApprovalExtent;
use spinney_view::typed_answer::typed_answer;
use tokio::task::JoinHandle;

use crate::display::Shown;
use crate::events::screen::Style;
use crate::question_lines;

/// What a person types instead of a message to end an agent that waits for one.
const FINISH: &str = "/finish";

pub(crate) struct Asking {
    person: Person,
    current: Option<OpenPrompt>,
    /// Questions that are open, as far as the events tell that were seen; waits after an answer come last.
    open: BTreeSet<(bool, CallId)>,
}

/// How a person is reached.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Person {
    Absent,
    /// By lines.
    Lines,
    /// By the live view.
    View,
}

/// A question at the terminal.
struct OpenPrompt {
    question: CallId,
    /// The same, whole.
    open: OpenQuestion,
    /// Whether what is being typed was begun for another question.
    is_stale: bool,
    input: Input,
}

enum Input {
    Line {
        line: JoinHandle<io::Result<String>>,
        /// Whether the cursor is still after the question.
        on_line: bool,
    },
    /// `None` while this process is in the background.
    Keys(Option<Keyboard>),
}

/// What a person did.
pub(crate) enum Typed {
    /// More or less of a line.
    Part,
    Line(String),
    /// There will be no more.
    Ended,
}

impl Asking {
    pub(crate) fn new(shown: &Shown) -> Self {
        let is_attended = shown.screen.style() == Style::Lines && io::stdin().is_terminal();
        let person = match (is_attended, &shown.live) {
            (false, _) => Person::Absent,
            (true, None) => Person::Lines,
            (true, Some(_)) => Person::View,
        };
        Self { person, current: None, open: BTreeSet::new() }
    }

    pub(crate) fn is_attended(&self) -> bool {
        self.person != Person::Absent
    }

    /// Whether the cursor is where an answer is typed: drawing would move it.
    pub(crate) fn is_on_line(&self) -> bool {
        matches!(&self.current, Some(OpenPrompt { input: Input::Line { on_line: true, .. }, .. }))
    }

    /// Ends the prompt's line before other output.
    pub(crate) fn leave_line(&mut self) {
        if let Some(OpenPrompt { input: Input::Line { on_line: on_line @ true, .. }, .. }) = &mut self.current
        {
            *on_line = false;
            out::note("");
        }
    }

    /// Takes in an event: which questions are open.
    pub(crate) fn see(&mut self, event: &Event) {
        match event {
            Event::QuestionAsked { call, question, .. } => {
                self.open.insert((question.is_after_answer, *call));
            }
            Event::CallEnded { call, .. } => self.open.retain(|(_, open)| open != call),
            _ => {}
        }
    }

    /// Asks the oldest question by lines, whatever else is running.
    pub(crate) async fn ask_in_lines(&mut self, tree: &Tree, shown: &mut Shown) -> Result<()> {
        let Some((_, oldest)) = self.open.first().copied().filter(|_| self.person == Person::Lines) else {
            return Ok(());
        };
        if self.current.as_ref().is_some_and(|asked| asked.question == oldest) {
            return Ok(());
        }
        // A tree that is no longer run is reported by its follower.
        let snapshot = tree.snapshot().await.ok();
        let open = snapshot.map(|snapshot| snapshot.questions).unwrap_or_default();
        match open.iter().find(|open| open.question == oldest) {
            Some(question) => self.turn_to(question, shown),
            // It was closed meanwhile, and its event is on the way.
            None => Ok(()),
        }
    }

    /// Shows the oldest question again when nothing else is running, if other lines came after it.
    pub(crate) fn ask_at_rest(&mut self, questions: &[OpenQuestion], shown: &mut Shown) -> Result<()> {
        let Some(first) = questions.first().filter(|_| self.person == Person::Lines) else { return Ok(()) };
        match &mut self.current {
            Some(OpenPrompt { question, input: Input::Line { on_line: on_line @ false, .. }, .. })
                if *question == first.question =>
            {
                *on_line = true;
                out::prompt(&format!("\n{}", prompt_text(&shown.redacted(first))));
                Ok(())
            }
            Some(_) | None => self.turn_to(first, shown),
        }
    }

    /// Asks the oldest question that the live view knows, whatever else is running.
    pub(crate) async fn ask_in_view(&mut self, tree: &Tree, shown: &mut Shown) -> Result<()> {
        if self.person != Person::View {
            self.show_typed(shown);
            return Ok(());
        }
        let oldest = shown.live.as_ref().and_then(|live| live.tree().oldest_question());
        if let Some(oldest) = oldest
            && self.current.as_ref().is_none_or(|asked| asked.question != oldest)
        {
            // A tree that is no longer run is reported by its follower. A question that was closed meanwhile
            // leaves the view with its event.
            let snapshot = tree.snapshot().await.ok();
            let question = snapshot
                .and_then(|snapshot| snapshot.questions.into_iter().find(|open| open.question == oldest));
            if let Some(question) = question {
                self.turn_to(&question, shown)?;
            }
        }
        if oldest.is_none() {
            self.close();
        }
        if let Some(OpenPrompt { input: Input::Keys(keyboard), .. }) = &mut self.current {
            match keyboard {
                Some(keyboard) => keyboard.keep()?,
                None => *keyboard = Keyboard::begin()?,
            }
        }
        self.show_typed(shown);
        Ok(())
    }

    /// The question is closed, and no other one is open.
    fn close(&mut self) {
        if let Some(asked) = self.current.take()
            && let Input::Keys(Some(keyboard)) = asked.input
            && !keyboard.text().is_empty()
        {
            out::note("the question closed before you answered it");
        }
    }

    /// Shows a question, unless it is already being asked. Nothing in it can look like our own output, because further lines
    /// are indented.
    fn turn_to(&mut self, question: &OpenQuestion, shown: &Shown) -> Result<()> {
        if self.current.as_ref().is_some_and(|asked| asked.question == question.question) {
            return Ok(());
        }
        if !question.is_after_answer && shown.chat.is_some() {
            // What was typed while the agent worked is a message, and no answer to this.
            discard_typed();
        }
        let lines = prompt_text(&shown.redacted(question));
        match &shown.live {
            None if shown.chat.is_some() && question.is_after_answer => out::prompt(""),
            Some(_) => out::question_above(&format!("\n{lines}"), Stream::Output)?,
            None => out::prompt(&format!("\n{lines}")),
        }
        let open = question.clone();
        let question = question.question;
        match &mut self.current {
            // What is being typed for a question that ended elsewhere is not an answer to this one.
            Some(asked) => {
                (asked.question, asked.open) = (question, open);
                match &mut asked.input {
                    Input::Line { on_line, .. } => (*on_line, asked.is_stale) = (true, true),
                    Input::Keys(keyboard) => {
                        let is_begun = keyboard.as_ref().is_some_and(|keyboard| !keyboard.text().is_empty());
                        asked.is_stale |= is_begun;
                    }
                }
            }
            None => {
                let input = match self.person {
                    Person::View => Input::Keys(None),
                    Person::Lines | Person::Absent => Input::Line { line: read_line(), on_line: true },
                };
                self.current = Some(OpenPrompt { question, open, is_stale: false, input });
            }
        }
        Ok(())
    }

    /// Shows what is typed in the live view.
    pub(crate) fn show_typed(&self, shown: &mut Shown) {
        let typed = match &self.current {
            Some(OpenPrompt { question, input: Input::Keys(Some(keyboard)), .. }) => {
                Some((*question, keyboard.text().to_owned()))
            }
            Some(_) | None => None,
        };
        if let Some(live) = &mut shown.live {
            live.prompt(typed);
        }
    }

    /// What the person does next. Pending forever if nothing is asked.
    pub(crate) async fn next(&mut self) -> Typed {
        match self.current.as_mut().map(|asked| &mut asked.input) {
            Some(Input::Line { line, .. }) => {
                let line = line.await.ok().and_then(Result::ok).filter(|line| !line.is_empty());
                line.map_or(Typed::Ended, Typed::Line)
            }
            Some(Input::Keys(Some(keyboard))) => match keyboard.next().await {
                Pressed::Changed => Typed::Part,
                Pressed::Entered(line) => Typed::Line(line),
                Pressed::Ended => Typed::Ended,
            },
            Some(Input::Keys(None)) | None => pending().await,
        }
    }

    /// No more answers will be given here. Returns whether the rest of the tree continues without.
    pub(crate) fn end(&mut self) -> bool {
        let was_in_view = self.person == Person::View;
        if was_in_view {
            out::note("questions stay open: the commands below answer them, from any terminal");
        }
        (self.person, self.current) = (Person::Absent, None);
        was_in_view
    }

    /// Takes a whole line: the answer, unless it was begun for another question.
    pub(crate) async fn answer(&mut self, tree: &Tree, line: &str) -> Result<()> {
        let Some(asked) = &mut self.current else { return Ok(()) };
        let is_stale = std::mem::take(&mut asked.is_stale);
        let (asked_after_answer, path) = (asked.open.is_after_answer, asked.open.path.clone());
        let answer = typed_answer(&asked.open, line.trim_end_matches(['\r', '\n']));
        let is_in_view = matches!(asked.input, Input::Keys(_));
        if is_in_view && !line.trim().is_empty() {
            out::lines_above(&format!("> {line}"), Stream::Output)?;
        }
        if !is_in_view {
            self.current = None;
        }
        if is_stale {
            out::note("the question closed before you answered it; your line was not used for the next one");
            return Ok(());
        }
        if line.trim().is_empty() {
            return Ok(());
        }
        if asked_after_answer && line.trim() == FINISH {
            return conclude(tree, &path).await;
        }
        let answer = match answer {
            Ok(answer) => answer,
            Err(unclear) => {
                out::complain(&unclear.to_string());
                return Ok(());
            }
        };
        let answered = match answer.remember {
            Some(remember) => tree.answer_always(answer.question, *remember).await,
            None => tree.answer(answer.question, answer.answer.text).await,
        };
        match answered {
            Ok(()) | Err(RequestError::Stopped(_)) => Ok(()),
            Err(RequestError::Refused(refusal)) => {
                out::complain(&refusal.to_string());
                Ok(())
            }
            Err(RequestError::Reply(other)) => Err(other.into()),
        }
    }
}

/// Ends an agent that waits after its answer.
async fn conclude(tree: &Tree, path: &[AgentId]) -> Result<()> {
    let Some(agent) = path.last().cloned() else { return Ok(()) };
    match tree.request(Actor::PERSON, Conclude { agent }).await {
        Ok(_) | Err(RequestError::Stopped(_)) => Ok(()),
        Err(RequestError::Refused(refusal)) => {
            out::complain(&refusal.to_string());
            Ok(())
        }
        Err(RequestError::Reply(other)) => Err(other.into()),
    }
}

/// A question as it is asked. Nothing in it can look like our own output, because further lines are indented.
fn prompt_text(question: &OpenQuestion) -> String {
    if question.is_after_answer {
        let waits = question_lines::lines(question, ApprovalExtent::Brief, "").join("");
        return format!("{waits}: write to it, or type {FINISH}");
    }
    question_lines::lines(question, ApprovalExtent::Whole, "").join("\n    ")
}

/// A line of standard input; empty at its end.
pub(crate) fn read_line() -> JoinHandle<io::Result<String>> {
    tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        io::stdin().read_line(&mut line).map(|_| line)
    })
}
