//! `spinney answer`: the answer to a question, whose number and tree may be left out; or every open question, asked at the
//! terminal one after the other.

use std::collections::BTreeSet;
use std::io::{IsTerminal as _, stdin};
use std::path::Path;

use anyhow::{Result, bail};
use spinney::tree::OpenQuestion;
use spinney_host::control::steering::answerable;
use spinney_host::control::{Continues, SteerReply};
use spinney_host::home::ids::{LAST, NamedTree, TreeInHome};
use spinney_host::redaction::redactor_of;
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::CallId;
use spinney_kernel::rules::request::Answer;
use spinney_terminal::out;
use spinney_view::approval::ApprovalExtent;
use spinney_view::typed_answer::typed_answer;
use spinney_view::wording::short_id;

use super::{Next, ask, finish, next_of, whom};
use crate::args::{self, AnswerWords, question_number};
use crate::display::redacted;
use crate::exit::Exit;
use crate::hint::about;
use crate::prompts::read_line;
use crate::question_lines;

/// The shortest beginning of an id that is taken for one.
const ID_CHARS_MIN: usize = 4;

pub(in crate::command) async fn answer(home: &Path, args: args::Answer) -> Result<Exit> {
    match args.words() {
        AnswerWords::All { tree, question, text } => {
            let question = question_number(question)?;
            let (place, _) = whom(home, tree, None).await?;
            send(place, read(&NamedTree::find(home, tree).await?, question, text).await?).await
        }
        AnswerWords::Two(first, text) => {
            let last = NamedTree::find(home, LAST).await?;
            let tree = match question_number(first) {
                Ok(number) if is_open(&last, number).await? => return one(&last, number, text).await,
                _ => named(home, first).await,
            };
            match (tree, question_number(first)) {
                (Ok(named), _) => only(&named, text).await,
                // The tree says which ones are open.
                (Err(_), Ok(number)) => one(&last, number, text).await,
                (Err(_), Err(error)) => Err(error),
            }
        }
        AnswerWords::One(word) => {
            let last = NamedTree::find(home, LAST).await?;
            match named(home, word).await {
                Ok(named) => each(&named).await,
                Err(_) => only(&last, word).await,
            }
        }
        AnswerWords::None => each(&NamedTree::find(home, LAST).await?).await,
    }
}

/// The tree that a word names. A shorter word is a number or a text: `0` begins the id of every tree.
async fn named(home: &Path, word: &str) -> Result<NamedTree> {
    if word.len() < ID_CHARS_MIN {
        bail!("`{word}` is too short for a tree id");
    }
    Ok(NamedTree::find(home, word).await?)
}

async fn is_open(named: &NamedTree, number: CallId) -> Result<bool> {
    Ok(answerable(named.place(), &named.journal).await?.contains_key(&number))
}

/// The answer that a text is. One that is not open is refused by the tree, which names those that are.
async fn read(named: &NamedTree, question: CallId, text: &str) -> Result<Answer> {
    match answerable(named.place(), &named.journal).await?.remove(&question) {
        Some(open) => Ok(typed_answer(&open, text)?),
        None => Ok(Answer::new(question, text)),
    }
}

async fn one(named: &NamedTree, question: CallId, text: &str) -> Result<Exit> {
    send(named.place(), read(named, question, text).await?).await
}

async fn send(place: TreeInHome<'_>, answer: Answer) -> Result<Exit> {
    let question = answer.question;
    let done = ask(place, &[], answer).await?;
    finish(done, place, &format!("answered question {}", question.0), Next::Resume).await
}

/// Answers the only open question.
async fn only(named: &NamedTree, text: &str) -> Result<Exit> {
    let open = answerable(named.place(), &named.journal).await?;
    let (place, id) = (named.place(), short_id(named.tree));
    if let Ok(number) = question_number(text)
        && open.contains_key(&number)
    {
        bail!("the answer to question {} is missing; usage: {}", number.0, args::Answer::USAGE);
    }
    let mut numbers = open.keys();
    match (numbers.next(), numbers.len()) {
        (Some(only), 0) => one(named, *only, text).await,
        (None, _) => bail!("no open questions in tree {id}"),
        (Some(_), _) => {
            let numbers: Vec<String> = open.keys().map(|number| format!("`{}`", number.0)).collect();
            let list = about(place.home, "questions", place.tree, &[]);
            bail!(
                "{} questions are open in tree {id}, {}: write the number of one before the answer; list them: {list}",
                open.len(),
                numbers.join(", ")
            )
        }
    }
}

/// Asks every open question at the terminal. An empty line leaves one open.
async fn each(named: &NamedTree) -> Result<Exit> {
    if !stdin().is_terminal() {
        bail!("the answer is missing, and there is no terminal to ask at; usage: {}", args::Answer::USAGE);
    }
    let place = named.place();
    let redactor = redactor_of(&named.journal, named.tree).await?;
    let (mut is_asked, mut is_answered, mut continues) = (false, false, Continues::Now);
    let mut left_open = BTreeSet::new();
    loop {
        // Another question may have come, or one may have been answered elsewhere.
        let open = answerable(named.place(), &named.journal).await?;
        let Some(question) = open.into_values().find(|open| !left_open.contains(&open.question)) else {
            break;
        };
        let number = question.question;
        is_asked = true;
        match typed(&redacted(&redactor, &question)).await? {
            None => break,
            Some(text) if text.trim().is_empty() => {
                out::note(&format!("question {} stays open", number.0));
                left_open.insert(number);
            }
            Some(text) => match ask(place, &[], typed_answer(&question, &text)?).await? {
                SteerReply::Done { continues: now, .. } => {
                    out::note(&format!("answered question {}", number.0));
                    (is_answered, continues) = (true, now);
                }
                SteerReply::Refused { refusal, message } => {
                    out::complain(&message);
                    // A person who did not see what may be answered is asked again.
                    if !is_of_another_form(refusal.as_deref()) {
                        left_open.insert(number);
                    }
                }
                SteerReply::Failed { message } => {
                    out::complain(&message);
                    return Ok(Exit::Failed);
                }
            },
        }
    }
    match (is_answered, continues) {
        (true, Continues::WhenResumed) => {
            out::note(&next_of(place).await?);
        }
        (false, _) if !is_asked => {
            out::note(&format!("no open questions in tree {}", short_id(named.tree)));
        }
        (true | false, _) => {}
    }
    Ok(Exit::Completed)
}

/// Whether an answer was none of the choices, or JSON of another form.
fn is_of_another_form(refusal: Option<&Refusal>) -> bool {
    matches!(refusal, Some(Refusal::NotAChoice { .. } | Refusal::AnswerMismatch { .. }))
}

/// What a person types after a question; `None` at the end of the input.
async fn typed(question: &OpenQuestion) -> Result<Option<String>> {
    let lines = question_lines::lines(question, ApprovalExtent::Whole, "").join("\n    ");
    out::prompt(&format!("\n{lines}"));
    let line = read_line().await??;
    Ok((!line.is_empty()).then(|| line.trim_end_matches(['\r', '\n']).to_owned()))
}
