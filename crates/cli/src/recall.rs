//! What an agent knows, from the journal alone: every message that it was ever told or said, and what its window holds
//! of them. It is the same whether the tree runs, waits or has ended; for an agent that has ended, it is what it was
//! just before.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, bail};
use spinney_kernel::agent::Agent;
use spinney_kernel::context::{Contexts, Message};
use spinney_kernel::id::{AgentId, Seq, TreeId};
use spinney_kernel::port::journal::Journal;
use spinney_kernel::port::page::pages;
use spinney_kernel::window::{Because, Header, Preset, Tie, Window};
use spinney_kernel::{Event, World, limit};

use crate::agents::unknown;

/// What an agent knows.
pub(crate) struct Recalled {
    /// What it is doing, or how it ended.
    pub(crate) state: String,
    /// The last event that was taken in.
    pub(crate) seq: Seq,
    /// Every message, the oldest first.
    pub(crate) messages: Vec<Known>,
    /// What its next packet holds.
    pub(crate) window: Window,
    /// How the window is shared.
    pub(crate) preset: Preset,
    /// Why the window is as large as it is; none if it has no bound.
    pub(crate) because: Option<String>,
    /// The event that cut the window last.
    pub(crate) last_cut: Option<Seq>,
    /// What its model wrote about what was left out, if it did.
    pub(crate) summary: Option<String>,
}

/// One message of a context.
pub(crate) struct Known {
    /// It.
    pub(crate) message: Arc<Message>,
    /// The most tokens that it has, if somebody counted.
    pub(crate) tokens: Option<u64>,
    /// Where it is.
    pub(crate) place: Place,
}

/// Where a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The next packet holds it.
    Window,
    /// No packet holds it any more.
    LeftOut,
    /// The next packet will be the first to hold it.
    Unread,
}

/// Reads what an agent of a tree knows.
pub(crate) fn recall(journal: &dyn Journal, tree: TreeId, agent: &AgentId) -> Result<Recalled> {
    let mut fold = Fold {
        world: World::new(tree),
        contexts: Contexts::whole(tree),
        agent,
        tokens: Vec::new(),
        answers: BTreeMap::new(),
        last_cut: None,
    };
    for page in pages(journal, tree, Seq(0)) {
        for event in page?.into_iter().flat_map(|entry| entry.batch.events) {
            if let Event::AgentEnded { agent: ended, exit, .. } = &event
                && ended == agent
            {
                return fold.recalled(Some(exit.word()));
            }
            fold.take(&event);
        }
    }
    fold.recalled(None)
}

/// The fold over events: the world counts, the contexts have the texts, and this brings both together.
struct Fold<'a> {
    world: World,
    contexts: Contexts,
    agent: &'a AgentId,
    /// For each message that was read, the most tokens that it has.
    tokens: Vec<Option<u64>>,
    /// The same for tools' results that are unread, by the id of their call: the world has them in the order in which
    /// they came, a packet in the order in which they were asked for.
    answers: BTreeMap<String, u64>,
    last_cut: Option<Seq>,
}

impl Fold<'_> {
    fn take(&mut self, event: &Event) {
        // A cut reads what is unread and may leave it out at once: what it had is to be seen only before.
        let is_cut = matches!(event, Event::ContextCut { agent, .. } if agent == self.agent);
        let before = if is_cut { self.unread_tokens() } else { Vec::new() };
        self.world.apply(event);
        self.contexts.apply(event);
        if is_cut {
            self.last_cut = Some(self.world.seq());
            self.tokens.extend(before);
        }
        let (all, read) = (self.contexts.messages(self.agent).unwrap_or_default(), self.read());
        let new = &all[self.tokens.len().min(all.len())..];
        let headers = self.window().map_or(&[][..], Window::headers);
        let first = read.saturating_sub(new.len());
        let counted =
            new.iter().zip(first..).map(|(message, place)| self.counted(message, headers.get(place)));
        let counted: Vec<_> = counted.collect();
        self.tokens.extend(counted);
        self.note_answers();
    }

    fn living(&self) -> Option<&Agent> {
        let ix = self.world.agents().find(self.agent)?;
        self.world.agents().living(ix)
    }

    fn window(&self) -> Option<&Window> {
        self.living().map(|agent| &agent.progress.window)
    }

    /// How many messages of the window are read.
    fn read(&self) -> usize {
        self.contexts.packet(self.agent, 0).map_or(0, |packet| packet.messages.len())
    }

    fn counted(&self, message: &Message, header: Option<&Header>) -> Option<u64> {
        let answer = if let Message::Result { id, .. } = message { self.answers.get(id) } else { None };
        answer.copied().or_else(|| header.map(|header| header.tokens.into()))
    }

    /// The tokens of each message that is unread.
    fn unread_tokens(&self) -> Vec<Option<u64>> {
        let headers = self.window().map_or(&[][..], Window::headers);
        let unread = self.contexts.unread(self.agent).zip(self.read()..);
        unread.map(|(message, place)| self.counted(message, headers.get(place))).collect()
    }

    /// Keeps the tokens of the result that came last.
    fn note_answers(&mut self) {
        let unread = self.contexts.unread(self.agent);
        let ids: Vec<&String> = unread
            .filter_map(|message| if let Message::Result { id, .. } = message { Some(id) } else { None })
            .collect();
        if ids.is_empty() {
            self.answers.clear();
            return;
        }
        let Some(new) = ids.into_iter().find(|id| !self.answers.contains_key(*id)).cloned() else { return };
        let headers = self.window().map_or(&[][..], Window::headers);
        let last = headers.iter().rfind(|header| header.tie == Tie::Answers);
        if let Some(tokens) = last.map(|header| header.tokens.into()) {
            self.answers.insert(new, tokens);
        }
    }

    fn recalled(self, ended: Option<&str>) -> Result<Recalled> {
        let agents = self.world.agents();
        let Some(ix) = agents.find(self.agent) else {
            bail!(unknown(self.agent, agents.all().map(|ix| agents.id(ix))))
        };
        let Some(living) = agents.living(ix) else { bail!("agent `{}` has ended", self.agent) };
        let (charter, window) = (&living.charter, living.progress.window.clone());
        let definition = self.world.definition();
        let role = definition.roles.get(&charter.role);
        let Some(turns) = role.and_then(|role| role.turns.as_ref()) else {
            bail!("agent `{}` takes no turns by itself: it has no context and no window", self.agent)
        };
        let because = window.size().map(|size| match Because::of(definition, charter, size) {
            Because::Role => format!("what role `{}` says", charter.role),
            Because::Model(model) => {
                format!("{} % of what model `{model}` takes", limit::WINDOW_PERCENT)
            }
            Because::Spawner => "what its spawner says".to_owned(),
        });
        let status = || self.world.view(ix).status.to_string();
        Ok(Recalled {
            state: ended.map_or_else(status, str::to_owned),
            seq: self.world.seq(),
            messages: self.known(),
            window,
            preset: turns.window.as_ref().map(|window| window.preset).unwrap_or_default(),
            because,
            last_cut: self.last_cut,
            summary: self.summary(),
        })
    }

    /// What its model wrote about what was left out.
    fn summary(&self) -> Option<String> {
        let packet = self.contexts.packet(self.agent, 0)?;
        let second = packet.messages.get(1)?;
        let folded = if let Message::Folded(folded) = second.as_ref() { folded } else { return None };
        folded.summary().map(str::to_owned)
    }

    /// Every message: those that were read and those that were not.
    fn known(&self) -> Vec<Known> {
        let packet = self.contexts.packet(self.agent, 0).unwrap_or_default();
        let is_stored = |message: &&Arc<Message>| !matches!(message.as_ref(), Message::Folded(_));
        let mut window = packet.messages.iter().filter(is_stored).peekable();
        let read = self.contexts.messages(self.agent).unwrap_or_default().iter().zip(&self.tokens);
        let read = read.map(|(message, tokens)| {
            let is_kept = window.next_if(|kept| Arc::ptr_eq(kept, message)).is_some();
            let place = if is_kept { Place::Window } else { Place::LeftOut };
            Known { message: Arc::clone(message), tokens: *tokens, place }
        });
        let unread = self.contexts.unread(self.agent).zip(self.unread_tokens());
        let unread = unread.map(|(message, tokens)| {
            let message = Arc::new(message.clone());
            Known { message, tokens, place: Place::Unread }
        });
        read.chain(unread).collect()
    }
}
