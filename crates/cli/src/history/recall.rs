//! An agent's context, from the journal alone: every message it ever received or sent, and which of them its window
//! holds. The same whether the tree runs, waits or has ended; for an ended agent, it is the state just before its
//! end.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, bail};
use spinney_journal::{Blocking, Journal, damaged, pages, places};
use spinney_kernel::context::{Contexts, Message, Places, Shown};
use spinney_kernel::definition::Preset;
use spinney_kernel::record::{Event, ExitKind, Outcome};
use spinney_kernel::window::{Because, Window};
use spinney_kernel::words::{AgentId, Seq, TreeId, limit};
use spinney_kernel::world::{Agent, AgentIx, AgentStatus, World};

use super::agents::unknown;

pub(crate) struct Recalled {
    pub(crate) state: AgentStatus,
    /// The last event that was applied.
    pub(crate) seq: Seq,
    /// Oldest first.
    pub(crate) messages: Vec<Known>,
    pub(crate) window: Window,
    pub(crate) preset: Preset,
    /// What determines the size of the window; `None` if it is unlimited.
    pub(crate) because: Option<String>,
    pub(crate) last_cut: Option<Seq>,
    /// Its model's summary of what was left out.
    pub(crate) summary: Option<String>,
    /// The thread that it shares with others.
    pub(crate) thread: Option<Shared>,
    /// Children with a smaller window that it was notified of.
    pub(crate) clamps: Vec<Clamp>,
    /// What it asked for and was refused, with the event of each.
    pub(crate) refusals: Vec<(Seq, String)>,
}

pub(crate) struct Clamp {
    pub(crate) child: AgentId,
    pub(crate) size: u64,
    pub(crate) parent_size: u64,
}

pub(crate) struct Shared {
    /// The agent whose context messages are shared.
    pub(crate) of: AgentId,
    pub(crate) readers: usize,
    pub(crate) bound: Option<u64>,
}

impl Recalled {
    /// Images in its window that are only placeholders.
    pub(crate) fn images_left_out(&self) -> u64 {
        let window = self.messages.iter().filter(|known| known.place == Place::Window);
        let parts = window.flat_map(|known| known.message.parts());
        parts.filter(|shown| matches!(shown, Shown::LeftOut(_))).count() as u64
    }
}

pub(crate) struct Known {
    pub(crate) message: Arc<Message>,
    /// Upper bound on its tokens, if counted.
    pub(crate) tokens: Option<u64>,
    pub(crate) place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the next packet.
    Window,
    /// Dropped from the window.
    LeftOut,
    /// New in the next packet.
    Unread,
}

pub(crate) fn recall(journal: &dyn Journal, tree: TreeId, agent: &AgentId) -> Result<Recalled> {
    let (mut fold, mut ended) = read(journal, tree, agent, Places::default())?;
    if fold.contexts.lacks().is_some() {
        // It was rolled back to a state that a first pass does not keep.
        let places = places(journal, tree, fold.world.seq()).wait()?;
        (fold, ended) = read(journal, tree, agent, places)?;
    }
    match fold.contexts.lacks() {
        Some(seq) => Err(damaged(tree, seq).into()),
        None => fold.recalled(ended),
    }
}

/// Folds a journal up to the agent's end, or to the journal's end.
fn read<'a>(
    journal: &dyn Journal,
    tree: TreeId,
    agent: &'a AgentId,
    places: Places,
) -> Result<(Fold<'a>, Option<ExitKind>)> {
    let mut contexts = Contexts::whole(tree);
    contexts.keep(places);
    let (world, tokens, seen, last_cut) = (World::new(tree), BTreeMap::new(), 0, None);
    let (clamps, refusals) = (Vec::new(), Vec::new());
    let mut fold = Fold { world, contexts, agent, tokens, seen, last_cut, clamps, refusals };
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

/// Combines the world's counts with the contexts' texts.
struct Fold<'a> {
    world: World,
    contexts: Contexts,
    agent: &'a AgentId,
    /// Upper bound on the tokens of each read message, by address: `Arc`s keep the addresses valid.
    tokens: BTreeMap<*const Message, u64>,
    /// Messages read so far.
    seen: usize,
    last_cut: Option<Seq>,
    clamps: Vec<Clamp>,
    refusals: Vec<(Seq, String)>,
}

impl Fold<'_> {
    fn take(&mut self, event: &Event) {
        let is_cut = matches!(event, Event::ContextCut { agent, .. } if agent == self.agent);
        // A cut of a full window may drop unread messages at once, so their tokens must be read before it.
        let reads = matches!(event, Event::ContextCut { shortened: None, .. }) && is_cut;
        let before = if reads { self.unread_tokens() } else { Vec::new() };
        let refusal = self.refusal(event);
        self.world.apply(event);
        self.refusals.extend(refusal.map(|text| (self.world.seq(), text)));
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
        // A cut changes the rest, and a window's size comes with a better count of its first message.
        let is_set = matches!(event, Event::WindowSet { agent, .. } if agent == self.agent);
        if new > 0 || is_cut || is_set {
            let packet = self.contexts.packet(self.agent, 0).unwrap_or_default();
            let headers = self.window().map_or(&[][..], Window::headers);
            let first = if is_cut || is_set { 0 } else { packet.messages.len().saturating_sub(new) };
            let counted = packet.messages.iter().zip(headers).skip(first);
            tokens.extend(counted.map(|(message, header)| (Arc::as_ptr(message), header.estimate.into())));
        }
        self.seen = all.len();
        self.tokens.extend(tokens);
        self.clamps.extend(self.clamp(event));
        if is_cut {
            self.last_cut = Some(self.world.seq());
        }
    }

    fn clamp(&self, event: &Event) -> Option<Clamp> {
        let Event::WindowSet { agent: child, size, clamped: Some(clamped), .. } = event else { return None };
        let agents = self.world.agents();
        let parent = agents.find(child).and_then(|ix| agents.parent(ix))?;
        let is_told = clamped.is_told && agents.id(parent) == self.agent;
        is_told.then(|| Clamp { child: child.clone(), size: *size, parent_size: clamped.parent_size })
    }

    /// Why a request of the agent was refused, if the event says so.
    fn refusal(&self, event: &Event) -> Option<String> {
        match event {
            Event::ToolAnswered { agent, body, is_error: true, .. } if agent == self.agent => {
                Some(body.text.clone())
            }
            Event::CallEnded { call, outcome: Outcome::Refused { refusal }, .. } => {
                let agent = self.world.call(*call).map(|call| self.world.agents().id(call.agent));
                (agent == Some(self.agent)).then(|| refusal.to_string())
            }
            _ => None,
        }
    }

    fn living(&self) -> Option<&Agent> {
        let ix = self.world.agents().find(self.agent)?;
        self.world.agents().living(ix)
    }

    fn window(&self) -> Option<&Window> {
        self.living().map(|agent| &agent.progress.window)
    }

    fn read(&self) -> usize {
        self.contexts.packet(self.agent, 0).map_or(0, |packet| packet.messages.len())
    }

    fn unread_tokens(&self) -> Vec<u64> {
        let headers = self.window().map_or(&[][..], Window::headers);
        headers.iter().skip(self.read()).map(|header| header.estimate.into()).collect()
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
            bail!(
                "agent `{}` takes no turns by itself, so it has no context and no window: name one that does; the command `tree` lists all",
                self.agent
            )
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
            refusals: self.refusals,
        })
    }

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

    fn known(&self) -> Vec<Known> {
        let corrected = |tokens| self.window().map_or(tokens, |window| window.corrected(tokens));
        let packet = self.contexts.packet(self.agent, 0).unwrap_or_default();
        let mut window = packet.messages.iter().filter(|message| is_stored(message)).peekable();
        let read = self.contexts.messages(self.agent).unwrap_or_default().iter();
        let read = read.map(|message| {
            let tokens = self.tokens.get(&Arc::as_ptr(message)).copied().map(corrected);
            let is_kept = window.next_if(|kept| Arc::ptr_eq(kept, message)).is_some();
            let place = if is_kept { Place::Window } else { Place::LeftOut };
            Known { message: Arc::clone(message), tokens, place }
        });
        let unread = self.contexts.unread(self.agent).zip(self.unread_tokens());
        let unread = unread.map(|(message, tokens)| {
            let message = Arc::new(message.clone());
            Known { message, tokens: Some(corrected(tokens)), place: Place::Unread }
        });
        read.chain(unread).collect()
    }
}

/// Whether a message belongs to the context, and is not the digest of left-out ones.
fn is_stored(message: &Message) -> bool {
    !matches!(message, Message::Folded(_))
}
