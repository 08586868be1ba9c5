//! Who asked for what an event records, for people.

use spinney_kernel::primitives::Actor;
use spinney_kernel::record::{Event, Exit, Outcome};

/// What follows the text of an event that an actor outside the tree asked for; `None` if its text says it, or if it
/// was a person without a name: that is what readers assume.
pub fn asked_by(event: &Event, actor: Option<&Actor>) -> Option<String> {
    let actor = actor.filter(|actor| actor.agent().is_none() && **actor != Actor::PERSON)?;
    is_asked_for(event).then(|| format!(" (asked by {actor})"))
}

/// Whether an event is what a request asks for, and not only follows from it.
fn is_asked_for(event: &Event) -> bool {
    match event {
        Event::TreeStarted { .. }
        | Event::TreeBranched(_)
        | Event::TreeAdjusted(_)
        | Event::TreeSealed { .. }
        | Event::TreeUnsealed
        | Event::AgentPaused { .. }
        | Event::AgentUnpaused { .. }
        | Event::AgentRedirected { .. }
        | Event::ContextRestored(_)
        | Event::LimitRaised { .. }
        | Event::Charged { .. }
        | Event::MessagePublished { .. } => true,
        Event::AgentEnded { exit, .. } => matches!(exit, Exit::Cancelled { .. }),
        Event::CallEnded { outcome, .. } => matches!(outcome, Outcome::Answered { .. } | Outcome::Approved),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use spinney_kernel::primitives::{Body, Envelope, OutsiderKind, Time};
    use spinney_kernel::record::ValueForm;

    use super::*;
    use crate::events::{EventNames, describe};

    #[test]
    fn an_event_that_was_asked_for_says_by_whom_unless_it_was_just_a_person() {
        let agent = || "root".parse().unwrap();
        let paused = Event::AgentPaused { agent: agent() };
        let ci = Actor::named(OutsiderKind::Program, "nightly".parse().unwrap());
        let text = |actor: Option<Actor>| asked_by(&paused, actor.as_ref());
        assert_eq!(text(Some(ci.clone())).as_deref(), Some(" (asked by program nightly)"));
        assert_eq!(text(Some(Actor::PROGRAM)).as_deref(), Some(" (asked by a program)"));
        let ana = Actor::named(OutsiderKind::Person, "ana".parse().unwrap());
        assert_eq!(text(Some(ana)).as_deref(), Some(" (asked by person ana)"));
        assert_eq!(text(Some(Actor::PERSON)), None);
        assert_eq!(text(Some(Actor::Agent(agent()))), None);
        assert_eq!(text(None), None);
        // Its text names the sender, and what only follows from a request was not asked for.
        let (body, envelope) = (Body::text("Hello."), Envelope::default());
        let sent = Event::MessageSent { from: ci.clone(), to: agent(), body, envelope };
        assert_eq!(asked_by(&sent, Some(&ci)), None);
        assert_eq!(asked_by(&Event::TreeUnhalted, Some(&ci)), None);
    }

    #[test]
    fn messages_and_values_name_who_they_are_from() {
        let from = |from: Actor| {
            let (to, body, envelope) = ("root".parse().unwrap(), Body::text("Hello."), Envelope::default());
            let sent = Event::MessageSent { from: from.clone(), to, body, envelope };
            let (name, value, form) = ("plan".parse().unwrap(), Body::text("1"), ValueForm::Json);
            let written = Event::ValueWritten { name, value, form, by: from, version: 2, at: Time(0) };
            [sent, written].map(|event| describe(&EventNames::default(), &event).text)
        };
        assert_eq!(
            from(Actor::PERSON),
            ["gets a message from a person: Hello.", "shared value plan is set, version 2: 1"]
        );
        assert_eq!(
            from(Actor::named(OutsiderKind::Person, "ana".parse().unwrap())),
            [
                "gets a message from person ana: Hello.",
                "shared value plan is set by person ana, version 2: 1"
            ]
        );
        assert_eq!(
            from(Actor::RUNTIME),
            [
                "gets a message from the runtime: Hello.",
                "shared value plan is set by the runtime, version 2: 1"
            ]
        );
    }
}
