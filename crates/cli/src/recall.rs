//! What an agent knows, from the journal alone: every message that it was ever told or said, and what its window holds
//! of them. It is the same whether the tree runs, waits or has ended; for an agent that has ended, it is what it was
//! just before.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, bail};
use spinney_journal::{Blocking, Journal, damaged, pages, places};
use spinney_kernel::context::{Contexts, Message, Places, Shown};
use spinney_kernel::definition::Preset;
use spinney_kernel::record::{Event, ExitKind};
use spinney_kernel::window::{Because, Window};
use spinney_kernel::words::{AgentId, Seq, TreeId, limit};
use spinney_kernel::world::{Agent, AgentIx, AgentStatus, World};

use crate::agents::unknown;

/// What an agent knows.
pub(crate) struct Recalled {
    /// What it is doing, or how it ended.
    pub(crate) state: AgentStatus,
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
    /// The thread that it shares with others.
    pub(crate) thread: Option<Shared>,
    /// Children whose window is smaller than its own, as far as it was told so.
    pub(crate) clamps: Vec<Clamp>,
}

/// A child with a smaller window.
pub(crate) struct Clamp {
    pub(crate) child: AgentId,
    /// The tokens of its window.
    pub(crate) size: u64,
    /// The tokens of its parent's.
    pub(crate) parent_size: u64,
}

/// A thread that several agents share.
pub(crate) struct Shared {
    /// Whose context messages all of them know.
    pub(crate) of: AgentId,
    /// How many others read them.
    pub(crate) readers: usize,
    /// The most tokens of them in a packet, if there is a bound.
    pub(crate) bound: Option<u64>,
}

impl Recalled {
    /// How many images of the messages in its window are only placeholders.
    pub(crate) fn images_left_out(&self) -> u64 {
        let window = self.messages.iter().filter(|known| known.place == Place::Window);
        let parts = window.flat_map(|known| known.message.parts());
        parts.filter(|shown| matches!(shown, Shown::LeftOut(_))).count() as u64
    }
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
    let (mut fold, mut ended) = read(journal, tree, agent, Places::default())?;
    if fold.contexts.lacks().is_some() {
        // It was rolled back to what a first reading does not keep.
        let places = places(journal, tree, fold.world.seq()).wait()?;
        (fold, ended) = read(journal, tree, agent, places)?;
    }
    match fold.contexts.lacks() {
        Some(seq) => Err(damaged(tree, seq).into()),
        None => fold.recalled(ended),
    }
}

/// Folds a journal up to the end of an agent, which is given with it, or to its own.
fn read<'a>(
    journal: &dyn Journal,
    tree: TreeId,
    agent: &'a AgentId,
    places: Places,
) -> Result<(Fold<'a>, Option<ExitKind>)> {
    let mut contexts = Contexts::whole(tree);
    contexts.keep(places);
    let (world, tokens, seen, last_cut) = (World::new(tree), BTreeMap::new(), 0, None);
    let mut fold = Fold { world, contexts, agent, tokens, seen, last_cut, clamps: Vec::new() };
    for page in pages(journal, tree, Seq(0)).blocking() {
        for event in page?.into_iter().flat_map(|entry| entry.batch.events) {
            if let Event::AgentEnded { agent: ended, exit, .. } = &event
                && ended == agent
            {
                return Ok((fold, Some(exit.kind())));
            }
            fold.take(&event);
        }
    }
    Ok((fold, None))
}

/// The fold over events: the world counts, the contexts have the texts, and this brings both together.
struct Fold<'a> {
    world: World,
    contexts: Contexts,
    agent: &'a AgentId,
    /// The most tokens of each message that was read, by where it is kept: nothing goes while this lives.
    tokens: BTreeMap<*const Message, u64>,
    /// How many messages were read.
    seen: usize,
    last_cut: Option<Seq>,
    clamps: Vec<Clamp>,
}

impl Fold<'_> {
    fn take(&mut self, event: &Event) {
        // A cut reads what is unread and may leave it out at once: what it had is to be seen only before.
        let is_cut = matches!(event, Event::ContextCut { agent, .. } if agent == self.agent);
        let before = if is_cut { self.unread_tokens() } else { Vec::new() };
        self.world.apply(event);
        self.contexts.apply(event);
        if let Event::ContextRestored(restored) = event
            && restored.agent == *self.agent
        {
            self.last_cut = None;
            self.seen = self.contexts.messages(self.agent).map_or(0, <[_]>::len);
        }
        let all = self.contexts.messages(self.agent).unwrap_or_default();
        let new = all.len().saturating_sub(self.seen);
        let first = all.len().saturating_sub(before.len());
        let read = all.iter().skip(first).map(Arc::as_ptr).zip(before);
        let mut tokens: Vec<(*const Message, u64)> = read.collect();
        // A cut changes what it leaves, and the size of a window comes with a better count of its first message.
        let is_set = matches!(event, Event::WindowSet { agent, .. } if agent == self.agent);
        if new > 0 || is_cut || is_set {
            let packet = self.contexts.packet(self.agent, 0).unwrap_or_default();
            let headers = self.window().map_or(&[][..], Window::headers);
            let first = if is_cut || is_set { 0 } else { packet.messages.len().saturating_sub(new) };
            let counted = packet.messages.iter().zip(headers).skip(first);
            tokens.extend(counted.map(|(message, header)| (Arc::as_ptr(message), header.tokens.into())));
        }
        self.seen = all.len();
        self.tokens.extend(tokens);
        self.clamps.extend(self.clamp(event));
        if is_cut {
            self.last_cut = Some(self.world.seq());
        }
    }

    /// What the agent is told of a child's smaller window.
    fn clamp(&self, event: &Event) -> Option<Clamp> {
        let Event::WindowSet { agent: child, size, clamped: Some(clamped), .. } = event else { return None };
        let agents = self.world.agents();
        let parent = agents.find(child).and_then(|ix| agents.parent(ix))?;
        let is_told = clamped.is_told && agents.id(parent) == self.agent;
        is_told.then(|| Clamp { child: child.clone(), size: *size, parent_size: clamped.parent_size })
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

    /// The tokens of each message that is unread.
    fn unread_tokens(&self) -> Vec<u64> {
        let headers = self.window().map_or(&[][..], Window::headers);
        headers.iter().skip(self.read()).map(|header| header.tokens.into()).collect()
    }

    fn recalled(self, ended: Option<ExitKind>) -> Result<Recalled> {
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
        let because = window.size().map(|size| {
            match Because::of(definition, &charter.role, &charter.model, &charter.on_low, size) {
                Because::Role => format!("what role `{}` says", charter.role),
                Because::Model(model) => {
                    format!("{} % of what model `{model}` takes", limit::WINDOW_PERCENT)
                }
                Because::Spawner => "what its spawner says".to_owned(),
            }
        });
        Ok(Recalled {
            state: ended.map_or_else(|| self.world.view(ix).status, AgentStatus::Ended),
            seq: self.world.seq(),
            messages: self.known(),
            window,
            preset: turns.window.as_ref().map(|window| window.preset).unwrap_or_default(),
            because,
            last_cut: self.last_cut,
            summary: self.summary(),
            thread: self.thread(ix),
            clamps: self.clamps,
        })
    }

    /// What its model wrote about what was left out.
    fn summary(&self) -> Option<String> {
        let packet = self.contexts.packet(self.agent, 0)?;
        let second = packet.messages.get(1)?;
        let folded = if let Message::Folded(folded) = second.as_ref() { folded } else { return None };
        folded.summary().map(str::to_owned)
    }

    fn thread(&self, ix: AgentIx) -> Option<Shared> {
        let threads = self.world.threads();
        let head = threads.read_by(ix).unwrap_or(ix);
        let thread = threads.of(head)?;
        let of = self.world.agents().id(head).clone();
        Some(Shared { of, readers: thread.readers.len(), bound: thread.bound })
    }

    /// Every message: those that were read and those that were not.
    fn known(&self) -> Vec<Known> {
        let packet = self.contexts.packet(self.agent, 0).unwrap_or_default();
        let mut window = packet.messages.iter().filter(|message| is_stored(message)).peekable();
        let read = self.contexts.messages(self.agent).unwrap_or_default().iter();
        let read = read.map(|message| {
            let tokens = self.tokens.get(&Arc::as_ptr(message)).copied();
            let is_kept = window.next_if(|kept| Arc::ptr_eq(kept, message)).is_some();
            let place = if is_kept { Place::Window } else { Place::LeftOut };
            Known { message: Arc::clone(message), tokens, place }
        });
        let unread = self.contexts.unread(self.agent).zip(self.unread_tokens());
        let unread = unread.map(|(message, tokens)| {
            let message = Arc::new(message.clone());
            Known { message, tokens: Some(tokens), place: Place::Unread }
        });
        read.chain(unread).collect()
    }
}

/// Whether a message is one of the context, and not what tells in short what was left out.
fn is_stored(message: &Message) -> bool {
    !matches!(message, Message::Folded(_))
}
