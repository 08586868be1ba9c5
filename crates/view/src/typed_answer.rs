//! What a person types as the answer to a question: a text, a choice or its number, `yes`, a reason why not, or an approval of
//! more than one call.
//!
//! ```text
//! always for this agent                   every call of this agent that the question offers
//! always for this tree: git status*       of every agent, and only these
//! ```

use spinney::tree::OpenQuestion;
use spinney_kernel::definition::{ApprovalScope, RememberedApproval, SubjectPattern};
use spinney_kernel::rules::request::Answer;

/// What an approval of more than one call begins with.
const ALWAYS: &str = "always";

/// An answer that begins like an approval of more than one call and is not one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnclearAnswer {
    /// It does not say for whom.
    #[error(
        "write `always for this agent` or `always for this tree`, and after a colon what to narrow it to"
    )]
    Scope,
    /// The question is about hosts, and this is something else.
    #[error("write the hosts as they were shown, separated by commas")]
    Host,
    /// The question is not about a tool, or its call can only be approved once.
    #[error("this call can only be approved once: answer yes or no")]
    Once,
}

/// The request that an answer in words is.
///
/// # Errors
/// If it begins with `always`, is about a tool, and cannot be understood. Nothing is answered then.
pub fn typed_answer(open: &OpenQuestion, text: &str) -> Result<Answer, UnclearAnswer> {
    match (&open.approves, after(text.trim(), ALWAYS)) {
        (Some(_), Some(rest)) => Ok(Answer::always(open.question, remembered(open, rest)?)),
        _ => Ok(Answer::new(open.question, open.form.chosen(text).unwrap_or(text))),
    }
}

fn remembered(open: &OpenQuestion, rest: &str) -> Result<RememberedApproval, UnclearAnswer> {
    let offered = open.offers.as_ref().ok_or(UnclearAnswer::Once)?;
    let scopes = [ApprovalScope::Agent, ApprovalScope::Tree].into_iter();
    let (scope, rest) = scopes
        .filter_map(|scope| {
            let rest = after(rest.trim_start(), "for")?;
            Some((scope, after(rest.trim_start(), scope.as_str())?))
        })
        .next()
        .ok_or(UnclearAnswer::Scope)?;
    let pattern = match rest.trim().trim_end_matches(['.', '!']) {
        "" => offered.clone(),
        _ => narrowed(rest.trim().strip_prefix(':').ok_or(UnclearAnswer::Scope)?, offered)?,
    };
    Ok(RememberedApproval { scope, pattern })
}

fn narrowed(text: &str, offered: &SubjectPattern) -> Result<SubjectPattern, UnclearAnswer> {
    let text = text.trim();
    let text = text.strip_prefix('`').and_then(|text| text.strip_suffix('`')).unwrap_or(text);
    if text.is_empty() {
        return Err(UnclearAnswer::Scope);
    }
    if let SubjectPattern::Hosts(_) = offered {
        let hosts = text.split(',').map(|host| host.trim().parse());
        return hosts.collect::<Result<_, _>>().map(SubjectPattern::Hosts).map_err(|_| UnclearAnswer::Host);
    }
    text.parse().map_err(|_| UnclearAnswer::Scope)
}

/// What follows a word, whatever its case.
fn after<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let (begin, rest) = text.split_at_checked(word.len())?;
    let is_whole = rest.chars().next().is_none_or(|next| !next.is_alphanumeric());
    (begin.eq_ignore_ascii_case(word) && is_whole).then_some(rest)
}

#[cfg(test)]
mod tests {
    use spinney_kernel::definition::{AnswerForm, Network};
    use spinney_kernel::primitives::CallId;
    use spinney_kernel::record::ToolAsk;

    use super::*;

    fn open(offers: Option<&str>) -> OpenQuestion {
        let approves = Some(Box::new(ToolAsk::new("1", "write_file", "{}")));
        let offers = offers.and_then(|offers| offers.parse().ok());
        let (path, text, network) = (Vec::new(), String::new(), Network::Denied);
        OpenQuestion {
            question: CallId(4),
            path,
            call: None,
            text,
            approves,
            form: AnswerForm::Text,
            network,
            offers,
            is_after_answer: false,
        }
    }

    fn read(text: &str) -> String {
        match typed_answer(&open(Some("outputs/*")), text) {
            Ok(Answer { remember: Some(remember), .. }) => {
                format!("{}: {}", remember.scope.as_str(), remember.pattern)
            }
            Ok(Answer { answer, .. }) => answer.text,
            Err(unclear) => format!("{unclear:?}"),
        }
    }

    #[test]
    fn an_answer_is_a_yes_a_reason_or_an_approval_of_more() {
        for (text, expected) in [
            ("yes", "yes"),
            ("not there", "not there"),
            ("alwaysness", "alwaysness"),
            ("always for this agent", "this agent: outputs/*"),
            (" Always for this tree. ", "this tree: outputs/*"),
            ("always for this agent: outputs/a*", "this agent: outputs/a*"),
            ("always for this tree: `outputs/a.md`", "this tree: outputs/a.md"),
            ("always", "Scope"),
            ("always for me", "Scope"),
            ("always for this agent outputs", "Scope"),
            ("always for this agent:", "Scope"),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
        let hosts: SubjectPattern = SubjectPattern::Hosts(["a.org:443".parse().unwrap()].into());
        let about_hosts = OpenQuestion { offers: Some(hosts.clone()), ..open(None) };
        for (text, pattern) in [
            ("always for this tree", Ok(hosts.clone())),
            ("always for this tree: A.org:443", Ok(hosts)),
            ("always for this tree: *", Err(UnclearAnswer::Host)),
        ] {
            let read = typed_answer(&about_hosts, text).map(|answer| answer.remember.unwrap().pattern);
            assert_eq!(read, pattern, "{text}");
        }
        assert_eq!(typed_answer(&open(None), "always for this agent"), Err(UnclearAnswer::Once));
        let question = OpenQuestion { approves: None, ..open(None) };
        assert_eq!(typed_answer(&question, "always"), Ok(Answer::new(CallId(4), "always")));
    }
}
