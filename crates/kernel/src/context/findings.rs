//! Findings: the results of several agents, for the agent that waited for them. In spawn order, each with its exit;
//! missing ones are named; a source that several of them name is listed once, with all their names.
//!
//! It judges nothing and drops nothing; the reader decides.

pub(super) use crate::record::{Ballot, ExitKind, WaitNeed};
use std::fmt;

use crate::budget::Amounts;
use crate::primitives::{AgentId, AnswerDigest, Reworded, cut, digest, limit};
use crate::record::RULES;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub agent: AgentId,
    pub state: ExitKind,
    /// Its answer, or its progress so far.
    pub text: String,
    /// What it used, if that is shown.
    pub used: Option<Amounts>,
    /// A digest of its whole answer, to compare answers. `None` if `text` is that answer.
    pub answer: Option<AnswerDigest>,
}

impl Finding {
    /// Whether it is an answer and not only progress.
    #[must_use]
    pub fn is_completed(&self) -> bool {
        self.state == ExitKind::Completed
    }

    /// The digest for comparisons. Not the text of an answer that was read before, which only refers to it.
    fn vote(&self) -> AnswerDigest {
        self.answer.unwrap_or_else(|| digest(&self.text))
    }
}

/// A source and every agent that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// As the first of them wrote it.
    pub text: String,
    /// In spawn order.
    pub by: Vec<AgentId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Findings {
    pub need: WaitNeed,
    /// Of those that have ended, in spawn order.
    pub findings: Vec<Finding>,
    pub missing: Vec<AgentId>,
}

impl Findings {
    /// Those of `asked` without a finding are missing.
    #[must_use]
    pub fn new(need: WaitNeed, asked: &[AgentId], findings: Vec<Finding>) -> Self {
        let has_ended = |agent: &&AgentId| findings.iter().any(|finding| finding.agent == **agent);
        let missing = asked.iter().filter(|agent| !has_ended(agent)).cloned().collect();
        Self { need, findings, missing }
    }

    #[must_use]
    pub fn asked(&self) -> usize {
        self.findings.len() + self.missing.len()
    }

    /// Whether the need is satisfied.
    #[must_use]
    pub fn is_had(&self) -> bool {
        let ballot =
            |finding: &Finding| Ballot { is_completed: finding.is_completed(), answer: Some(finding.vote()) };
        self.need.is_had(self.asked(), &self.findings.iter().map(ballot).collect::<Vec<_>>())
    }

    /// Every source once: links, and the items of a list under the heading `Sources`.
    #[must_use]
    pub fn sources(&self) -> Vec<Source> {
        let mut sources: Vec<(String, Source)> = Vec::new();
        for finding in &self.findings {
            for text in named(&finding.text) {
                let key = key(text);
                let is_full = sources.len() == limit::SOURCES_MAX;
                match sources.iter_mut().find(|(known, _)| *known == key) {
                    Some((_, source)) if source.by.contains(&finding.agent) => {}
                    Some((_, source)) => source.by.push(finding.agent.clone()),
                    None if is_full => {}
                    None => {
                        let source = Source { text: text.to_owned(), by: vec![finding.agent.clone()] };
                        sources.push((key, source));
                    }
                }
            }
        }
        sources.into_iter().map(|(_, source)| source).collect()
    }

    /// The sources as lines, as far as they fit.
    #[must_use]
    pub fn source_lines(&self) -> String {
        let mut lines = String::new();
        let sources = self.sources();
        for (at, Source { text, by }) in sources.iter().enumerate() {
            let by: Vec<&str> = by.iter().map(AgentId::as_str).collect();
            let line = format!("\n- {text} ({})", by.join(", "));
            let rest = format!("\n… and {} more", sources.len() - at);
            if SOURCES.len() + lines.len() + line.len() + rest.len() > limit::SOURCES_BYTES_MAX {
                lines.push_str(&rest);
                break;
            }
            lines.push_str(&line);
        }
        if lines.is_empty() { lines } else { format!("{SOURCES}{lines}") }
    }

    /// What is missing, in a line: how many have ended, whether that is enough, which ones still run, and what to do.
    #[must_use]
    pub fn text(&self, is_late: TimedOut) -> String {
        self.text_under(is_late, RULES)
    }

    pub(crate) fn text_under(&self, is_late: TimedOut, rules: u32) -> String {
        let (ended, asked) = (self.findings.len(), self.asked());
        let agree = match (self.need, self.is_had()) {
            (WaitNeed::Majority, true) => "; more than half agree",
            (WaitNeed::Majority, false) => "; no answer has a majority",
            (WaitNeed::First(_), false) => TOO_FEW.under(rules),
            (WaitNeed::All | WaitNeed::Any, _) | (WaitNeed::First(_), true) => "",
        };
        let late = if is_late == TimedOut::Yes { "partial, time is up: " } else { "" };
        let missing: Vec<&str> = self.missing.iter().map(AgentId::as_str).collect();
        let running = match missing.as_slice() {
            [] => String::new(),
            missing if rules >= 7 => format!(
                "; still working: {}; wait again, or cancel the agents you no longer need",
                missing.join(", ")
            ),
            missing => format!(
                "; still at work: {}; wait again, or cancel whom you need no more",
                missing.join(", ")
            ),
        };
        cut(&format!("{late}{ended} of {asked} ended{agree}{running}"), limit::NOTICE_BYTES_MAX)
    }
}

/// Whether the wait timed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimedOut {
    No,
    Yes,
}

const SOURCES: &str = "Sources:";
const TOO_FEW: Reworded =
    Reworded::new("; fewer completed than you asked for", "; fewer completed than you need");

impl fmt::Display for Finding {
    /// The agent, its exit and its text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{} {}", self.agent, self.state)?;
        if let Some(used) = &self.used {
            write!(f, ", used {used}")?;
        }
        write!(f, "]\n{}", self.text)
    }
}

fn named(text: &str) -> Vec<&str> {
    let (mut found, mut is_listed) = (Vec::new(), false);
    for line in text.lines().map(str::trim) {
        let item = line.strip_prefix(['-', '*']).map(str::trim).filter(|item| !item.is_empty());
        let heading = line.trim_matches(['#', '*', ':', ' ']);
        is_listed = match item {
            Some(_) => is_listed,
            None => heading.eq_ignore_ascii_case("sources"),
        };
        let links: Vec<&str> = links(line).collect();
        match item {
            Some(item) if is_listed && links.is_empty() => found.push(item),
            Some(_) | None => found.extend(links),
        }
    }
    found.retain(|source| source.len() <= limit::SOURCE_BYTES_MAX);
    found
}

/// The links in a line, without trailing punctuation.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let starts = line.match_indices("http").map(|(at, _)| &line[at..]);
    let links = starts.filter(|rest| rest.starts_with("http://") || rest.starts_with("https://"));
    links.map(|rest| {
        let is_end =
            |c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"' | '\'' | '`' | ')' | ']' | '}');
        let link = rest.find(is_end).map_or(rest, |end| &rest[..end]);
        link.trim_end_matches(['.', ',', ';', ':', '!', '?', '*', '_'])
    })
}

/// A normalized key: ignores the scheme, the host's case, fragments and a trailing slash of links, and case and
/// spaces of other sources.
fn key(source: &str) -> String {
    let Some(link) = source.strip_prefix("https://").or_else(|| source.strip_prefix("http://")) else {
        return source.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
    };
    let page = link.split('#').next().unwrap_or(link).trim_end_matches('/');
    let (host, path) = page.split_at(page.find('/').unwrap_or(page.len()));
    let host = host.to_lowercase();
    format!("{}{path}", host.strip_prefix("www.").unwrap_or(&host))
}
