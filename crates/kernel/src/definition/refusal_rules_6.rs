//! The texts of refusals under rules 6 and before: what agents of old trees have read stays as it was.

use std::fmt::Display;

use super::Refusal;
use super::refusal::listed;
use crate::primitives::{BadPart, IMAGE_TYPES, Millis};

impl Refusal {
    /// The text as agents of a tree with these rules read it.
    pub(crate) fn text(&self, rules: u32) -> String {
        let old = if rules < 7 { about_the_tree(self).or_else(|| about_calls(self)) } else { None };
        old.unwrap_or_else(|| self.to_string())
    }
}

/// The tree, its agents and budgets.
fn about_the_tree(refusal: &Refusal) -> Option<String> {
    Some(match refusal {
        Refusal::TreeStartedBefore => "the tree was started already: a tree starts once".to_owned(),
        Refusal::TreeCannotMove => "limits.agents, limits.parallel and max_steps must be at least 1: with 0 the tree could never move".to_owned(),
        Refusal::UnknownAgent { agent } => format!("no agent is called `{agent}` in this tree: its events name every agent"),
        Refusal::AgentEnded { agent, state } => format!("agent `{agent}` takes no more work, it is {state}: spawn another one"),
        Refusal::ReservedId { agent } => format!("no agent can have the id `{agent}`, which names somebody else: choose another id"),
        Refusal::RoleCycle { role, path } => format!("role `{role}` is on its own path already ({}): do this part yourself or hand it to another role", path.join(" > ")),
        Refusal::ChildrenLimit { live, live_max } => format!("{live} children live and the limit is {live_max}: wait for one to end"),
        Refusal::UnknownRole { role, known } => format!("no role is called `{role}`{}", one_of(known)),
        Refusal::UnknownModel { model, known } => format!("no model is called `{model}`{}", one_of(known)),
        Refusal::ModelExists { model } => format!("the tree has a model `{model}` already: a model keeps its price"),
        Refusal::NotWaiting { call } => format!("call {call} does not wait: only a call that has not started can be withdrawn"),
        Refusal::NetworkNotAllowed => "network is not granted here: do without it, or have a person grant it to the whole path".to_owned(),
        Refusal::BranchWithoutBudget => "a branch needs a budget of its own: give it at least one ceiling".to_owned(),
        Refusal::RaisesNothing { bounded } => format!("nothing to raise: give an amount of something that has a ceiling{}", one_of(bounded)),
        Refusal::NoTimeout { agent } => format!("`{agent}` has no timeout of its own to extend: name the agent that has one"),
        Refusal::BadReserve { percent, percent_max } => format!("an answer reserve of {percent} % is above {percent_max} %: leave the children something"),
        Refusal::RoleNotAllowed { role, allowed } => format!("this agent may not spawn role `{role}`{}", one_of(allowed)),
        Refusal::ModelNotAllowed { model, allowed } => format!("model `{model}` is not allowed here{}", one_of(allowed)),
        Refusal::ToolNotAllowed { tools, allowed } => format!("not allowed here: {}{}", listed(tools), one_of(allowed)),
        _ => return None,
    })
}

/// Values, calls, windows, messages and checkpoints.
fn about_calls(refusal: &Refusal) -> Option<String> {
    Some(match refusal {
        Refusal::UnknownValue { name } => {
            format!("no value is called `{name}`: list_context shows which there are")
        }
        Refusal::ValuesFull { name, bytes, bytes_max } => format!(
            "the shared values would have {bytes} bytes with `{name}` and the limit is {bytes_max}: write null over values that nobody needs"
        ),
        Refusal::ValueNotJson { name } => {
            format!("the value for `{name}` is not JSON: put a text into double quotes")
        }
        Refusal::TakesTurns { agent } => {
            format!("`{agent}` takes turns by itself: send it a message, or redirect it")
        }
        Refusal::NotKept { agent, state } => format!(
            "`{agent}` is {state}, and what it knew is not kept: spawn another agent and tell it what it has to know"
        ),
        Refusal::AnswerLate { question, late_ms } => format!(
            "question {} timed out {} ago: what it says about a timeout counts, and your answer does not",
            question.0,
            Millis(*late_ms)
        ),
        Refusal::UnknownTool { tool, known } => format!("no tool is called `{tool}`{}", one_of(known)),
        Refusal::NotApproved { tool, answer } => format!(
            "a person did not let you call `{tool}`: {answer}; do without it, or ask for something else"
        ),
        Refusal::ApprovalExpired { tool } => format!(
            "nobody said in time whether you may call `{tool}`: do without it, or ask for something else"
        ),
        Refusal::ToolNameTaken { tool } => format!(
            "a tool may not be called `{tool}`, because Spinney answers that one itself: choose another name"
        ),
        Refusal::WindowTooSmall { tokens, size } => {
            format!("a window of {size} tokens is too small: at least {tokens} have to fit in")
        }
        Refusal::CategoryNotAllowed { category } => format!(
            "messages of category {} are Spinney's own: send `dialog` or `context`",
            category.as_str()
        ),
        Refusal::NobodyAbove { .. } => {
            "the root was told nothing by anybody: refresh one of its children".to_owned()
        }
        Refusal::TellsItself { agent } => {
            format!("`{agent}` cannot be told what it knows itself: name another agent")
        }
        Refusal::TextEmpty { what } => format!("the {what} is empty: say something"),
        Refusal::Part { part: BadPart::NoImage { name, media } } => format!(
            "`{name}` is no image of a type that models take ({media}): use one of {}, or send it as a file",
            IMAGE_TYPES.join(", ")
        ),
        Refusal::Part { part: BadPart::NoBytes { name } } => {
            format!("the bytes of `{name}` did not come with it: pass them along")
        }
        Refusal::NotAnAgent { agent } => format!(
            "`{agent}` is no agent and reads no messages: send it to an agent, or ask a person with `ask_human`"
        ),
        Refusal::StandsForSteps { agent } => {
            format!("`{agent}` only stands for steps: name the agent of a step that runs")
        }
        Refusal::ReservedTopic { topic } => {
            format!("the topic `{topic}` is for the tree's own events: choose another first word")
        }
        Refusal::Forwarded => "the message was forwarded as often as its ttl allows: leave it".to_owned(),
        Refusal::NameTaken { name, tree } => format!(
            "a checkpoint `{name}` is there already, in tree {tree}: choose another name or leave it out"
        ),
        Refusal::NameUnknown { name, reason } => {
            format!("nobody can say whether `{name}` is free ({reason}): try again, or leave the name out")
        }
        Refusal::RollbackOver { agent, state } => format!(
            "`{agent}` is {state}, and what has ended is not rolled back: branch off the checkpoint to go on in a new tree"
        ),
        Refusal::RollbackTurnless { agent } => {
            format!("`{agent}` takes no turns by itself, so it has no context: roll back one that does")
        }
        Refusal::RollbackTurns { agent, turns_max } => format!(
            "`{agent}` has taken all of its {turns_max} turns, and a rollback gives none back: branch off the checkpoint to go on in a new tree"
        ),
        Refusal::NoCheckpoint { agent, at } => format!(
            "there is no checkpoint of `{agent}` at event {at}: choose one of those in the list of checkpoints"
        ),
        Refusal::NoSuchCheckpoint { name } => {
            format!("no checkpoint is called `{name}`: choose one of those in the list of checkpoints")
        }
        Refusal::CheckpointElsewhere { name, tree } => format!(
            "checkpoint `{name}` is in tree {tree}, and a context does not cross trees: roll back there, or branch off the checkpoint"
        ),
        Refusal::NoPast { agent, at, reason } => {
            format!("what `{agent}` was at event {at} cannot be had ({reason}): choose another checkpoint")
        }
        Refusal::AlreadyPaused { agent } => format!("`{agent}` is paused already: unpause it to go on"),
        Refusal::UnknownQuestion { question, open } => format!(
            "no question {} is open{}",
            question.0,
            one_of(&open.iter().map(|open| open.0).collect::<Vec<_>>())
        ),
        _ => return None,
    })
}

fn one_of<T: Display>(items: &[T]) -> String {
    if items.is_empty() {
        String::from(": there is none to choose")
    } else {
        format!(": choose one of {}", listed(items))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_keep_the_words_of_their_rules() {
        let texts = |refusal: &Refusal| [6, 7].map(|rules| refusal.text(rules));
        let unknown = Refusal::UnknownAgent { agent: "root".parse().unwrap() };
        assert_eq!(
            texts(&unknown),
            [
                "no agent is called `root` in this tree: its events name every agent",
                "unknown agent `root`: the tree's events name every agent",
            ]
        );
        let role = Refusal::RoleNotAllowed { role: "coder".parse().unwrap(), allowed: Vec::new() };
        assert_eq!(
            texts(&role),
            [
                "this agent may not spawn role `coder`: there is none to choose",
                "this agent may not spawn role `coder`: there are none",
            ]
        );
        assert_eq!(texts(&Refusal::TreeEnded), ["the tree has ended: start a new one"; 2]);
    }
}
