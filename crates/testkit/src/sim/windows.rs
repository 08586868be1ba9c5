//! The laws of windows: the world's counts match what a model will read, message by message.

use spinney_kernel::context::{Contexts, Folded, Message, Shown};
use spinney_kernel::primitives::{AgentId, limit};
use spinney_kernel::record::{Event, Header, Summary, Tie, Work};
use spinney_kernel::world::World;

use super::law::Law;

/// Each living agent's headers match its messages: the same number and order, the same unread ones, ties and images.
pub(super) fn check_windows(world: &World, contexts: &Contexts) -> Law {
    for view in world.directory() {
        let Some(ix) = world.agents().find(&view.agent) else { continue };
        let Some(agent) = world.agents().living(ix) else { continue };
        let window = &agent.progress.window;
        if window.headers().is_empty() {
            continue;
        }
        let read = contexts.messages(&view.agent).unwrap_or_default().iter().map(AsRef::as_ref);
        let messages: Vec<&Message> = read.chain(contexts.unread(&view.agent)).collect();
        if messages.len() != window.headers().len() {
            let counted = window.headers().len();
            return Err(format!("{} has {} messages and {counted} are counted", view.agent, messages.len()));
        }
        let unread = contexts.unread(&view.agent).count();
        if unread != window.unread() {
            return Err(format!("{} has {unread} unread and {} are counted", view.agent, window.unread()));
        }
        for (place, (header, message)) in window.headers().iter().zip(&messages).enumerate() {
            check_header(header, message)
                .map_err(|law| format!("message {place} of {}: {law}: {message:?}", view.agent))?;
            let listed = window.images_at(place).len();
            if listed != usize::from(header.images) {
                return Err(format!("{listed} images are listed of {} at {place}", header.images));
            }
        }
        // Tokens are not counted here, so the digest has as many as it has bytes.
        let headers = window.headers().iter().filter(|header| header.tie == Tie::Folded);
        let room = headers.map(|header| u64::from(header.tokens)).sum::<u64>();
        let recorded = folded(contexts, &view.agent)
            .map_or(0, |recorded| recorded.to_string().len() as u64 + limit::MESSAGE_TOKENS.bound());
        if recorded > room {
            return Err(format!("{} has {recorded} tokens in short where {room} have room", view.agent));
        }
    }
    Ok(())
}

/// The digest of what was left out of an agent's window.
fn folded<'c>(contexts: &'c Contexts, agent: &AgentId) -> Option<&'c Folded> {
    let messages = contexts.messages(agent)?;
    if let Message::Folded(folded) = messages.get(1)?.as_ref() { Some(folded) } else { None }
}

/// A cut's stated replacement is its actual one.
pub(super) fn check_shared(contexts: &Contexts, event: &Event) -> Law {
    let Event::ContextCut { agent, summary: Some(Summary::By(_)), .. } = event else { return Ok(()) };
    match folded(contexts, agent).and_then(Folded::summary) {
        Some(_) => Ok(()),
        None => Err(format!("{agent} has no summary of what was cut")),
    }
}

fn check_header(header: &Header, message: &Message) -> Law {
    let Header { tokens, estimate, category, tie, images } = *header;
    if estimate > tokens {
        return Err(format!("an estimate of {estimate} above a bound of {tokens}"));
    }
    if usize::from(images) != message.images() {
        return Err(format!("{images} images are counted and {} are shown", message.images()));
    }
    if category != message.category() {
        return Err(format!("it counts as {}", category.as_str()));
    }
    let is_tied = match message {
        Message::Said { asks, .. } if !asks.is_empty() => tie == Tie::Asks,
        Message::Result { .. } => tie == Tie::Answers,
        Message::Heard { .. } => tie == Tie::Letter,
        Message::Folded(_) => tie == Tie::Folded,
        // A fork has messages as its own that were shared with another agent.
        Message::Shared { .. } => matches!(tie, Tie::Shared(_) | Tie::Free),
        Message::System(_)
        | Message::Said { .. }
        | Message::Note(_)
        | Message::Mismatch(_)
        | Message::Repeated(_) => tie == Tie::Free,
    };
    if !is_tied {
        return Err(format!("it is tied as {tie:?}"));
    }
    // Only its parts: its text may have been counted.
    let own = |shown: Shown<'_>| match shown {
        Shown::Whole(part) => part.counted().bound() + part.to_string().len() as u64,
        Shown::LeftOut(part) => part.placeholder().len() as u64,
    };
    let parts: u64 = message.parts().map(own).sum();
    if parts > tokens.into() {
        return Err(format!("its parts have {parts} tokens and all of it has {tokens}"));
    }
    Ok(())
}

/// No packet is larger than its window.
pub(super) fn check_packet(before: &World, event: &Event) -> Law {
    let Event::CallAsked { agent, work: Work::Model(work), .. } = event else { return Ok(()) };
    let ix = before.agents().find(agent);
    let agent = ix.and_then(|ix| before.agents().living(ix));
    match agent.and_then(|agent| agent.progress.window.size()) {
        Some(size) if work.estimate.unwrap_or(work.input_tokens) > size => {
            Err(format!("a packet of {work:?} in a window of {size}"))
        }
        Some(_) | None => Ok(()),
    }
}

/// No packet shows more images than its role allows.
pub(super) fn check_images(before: &World, contexts: &Contexts, event: &Event) -> Law {
    let Event::CallAsked { agent, work, .. } = event else { return Ok(()) };
    let Some(origin) = contexts.origin(agent) else { return Ok(()) };
    let turns = before.definition().roles.get(&origin.role).and_then(|role| role.turns.as_ref());
    let Some(turns) = turns else { return Ok(()) };
    let most = turns.window.clone().unwrap_or_default().images as usize;
    let packet = match (work.is_turn(), work.wrap_up()) {
        (true, None) => contexts.packet(agent, 0),
        (true, Some(_)) => contexts.last_packet(agent, 0),
        (false, _) => contexts.summary_packet(agent, 0),
    };
    let packet = packet.unwrap_or_default();
    let all: Vec<Shown<'_>> = packet
        .messages
        .iter()
        .flat_map(|message| message.parts())
        .filter(|shown| shown.part().is_image())
        .collect();
    let shown = all.iter().filter(|shown| matches!(shown, Shown::Whole(_))).count();
    if shown > most {
        return Err(format!("a packet of {agent} shows {shown} images of at most {most}"));
    }
    Ok(())
}
