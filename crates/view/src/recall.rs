//! An agent's context, from the journal alone: every message it ever received or sent, and which of them its window
//! holds. The same whether the tree runs, waits or has ended; for an ended agent, it is the state just before its
//! end.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use serde::Serialize;
use spinney_journal::{Batch, Journal, JournalFault, damaged, places};
use spinney_kernel::context::{Contexts, Message, Places, Shown};
use spinney_kernel::definition::Preset;
use spinney_kernel::primitives::{AgentId, Seq, TreeId, limit};
use spinney_kernel::record::{Event, ExitKind, ModelCall, Outcome, Work};
use spinney_kernel::window::{SizeSource, Window};
use spinney_kernel::world::{Agent, AgentIx, AgentStatus, World};

use crate::agents::unknown;
use crate::continued::continued_at;
use crate::packet_prefix::{PacketPrefix, PacketPrefixes};
use crate::spent::output_tokens;
use crate::{TreeFold, fold};

/// The context and window of an agent.
pub struct RecalledAgent {
    /// Its state; that of an ended one is how it ended.
    pub state: AgentStatus,
    /// The last event that was applied.
    pub seq: Seq,
    /// Oldest first.
    pub messages: Vec<KnownMessage>,
    /// What its next call would see.
    pub window: Window,
    /// How the window is shared out.
    pub preset: Preset,
    /// What determines the size of the window; `None` if it is unlimited.
    pub because: Option<String>,
    /// The last event that took something out of the window.
    pub last_cut: Option<Seq>,
    /// Its model's summary of what was left out.
    pub summary: Option<String>,
    /// How the packets of its turns begin.
    pub prefix: PacketPrefix,
    /// The thread that it shares with others.
    pub thread: Option<SharedThread>,
    /// Children with a smaller window that it was notified of.
    pub clamps: Vec<ClampedChild>,
    /// What it asked for and was refused, with the event of each.
    pub refusals: Vec<(Seq, String)>,
}

/// A child whose window is smaller than its parent's.
pub struct ClampedChild {
    /// The child.
    pub child: AgentId,
    /// The tokens of its window.
    pub size: u64,
    /// Those of its parent's.
    pub parent_size: u64,
}

/// A context that several agents read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SharedThread {
    /// The agent whose context messages are shared.
    pub of: AgentId,
    /// How many others read it.
    pub readers: usize,
    /// The smallest of their windows.
    pub bound: Option<u64>,
}

impl RecalledAgent {
    /// Images in its window that are only placeholders.
    #[must_use]
    pub fn images_left_out(&self) -> u64 {
        let window = self.messages.iter().filter(|known| known.place == MessagePlace::Window);
        let parts = window.flat_map(|known| known.message.parts());
        parts.filter(|shown| matches!(shown, Shown::LeftOut(_))).count() as u64
    }
}

/// A message of a context.
pub struct KnownMessage {
    /// What it says.
    pub message: Arc<Message>,
    /// Upper bound on its tokens as input of a call, if counted.
    pub tokens: Option<u64>,
    /// What the provider reported for it as output of a call.
    pub output: Option<u64>,
    /// Where it is.
    pub place: MessagePlace,
}

/// Where a message of a context is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MessagePlace {
    /// In the next packet.
    Window,
    /// Dropped from the window.
    LeftOut,
    /// New in the next packet.
    Unread,
}

/// Why there is no context to show.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecallError {
    /// The tree has no such agent.
    #[error("{}", unknown(agent, known))]
    Unknown {
        /// The id that was asked for.
        agent: AgentId,
        /// Those that it has.
        known: Vec<AgentId>,
    },
    /// It stands for something else, such as a pipeline or a program.
    #[error("agent `{agent}` takes no turns, so it has no context and no window: name one that does")]
    NoTurns {
        /// The agent.
        agent: AgentId,
    },
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalFault),
}

/// An agent's context and window.
///
/// # Errors
/// If there is no such agent, it has no context, or the journal cannot be read.
pub async fn recall(
    journal: &dyn Journal,
    tree: TreeId,
    agent: &AgentId,
) -> Result<RecalledAgent, RecallError> {
    let continued = continued_at(journal, tree).await?;
    let mut found = Fold::new(tree, agent, Places::default(), continued);
    fold(journal, tree, &mut found).await?;
    if found.contexts.lacks().is_some() {
        // It was rolled back to a state that a first pass does not keep.
        let places = places(journal, tree, found.world.seq()).await?;
        found = Fold::new(tree, agent, places, continued);
        fold(journal, tree, &mut found).await?;
    }
    match found.contexts.lacks() {
        Some(seq) => Err(damaged(tree, seq).into()),
        None => found.recalled(),
    }
}

/// Combines the world's counts with the contexts' texts.
struct Fold<'a> {
    world: World,
    contexts: Contexts,
    agent: &'a AgentId,
    /// Upper bound on the tokens of each read message, by address: `Arc`s keep the addresses valid.
    tokens: BTreeMap<*const Message, u64>,
    /// The output tokens of each answer, by address as well.
    outputs: BTreeMap<*const Message, u64>,
    /// Messages read so far.
    seen: usize,
    last_cut: Option<Seq>,
    prefixes: PacketPrefixes,
    clamps: Vec<ClampedChild>,
    refusals: Vec<(Seq, String)>,
    /// Where a tree that had ended was last continued. An end before that is not its last.
    continued: Seq,
    /// Set at its last end, which is not applied.
    ended: Option<ExitKind>,
}

impl TreeFold for Fold<'_> {
    fn take(&mut self, batch: &Batch) -> ControlFlow<()> {
        let after = self.world.seq().0;
        for event in &batch.events {
            if let Event::AgentEnded { agent, exit, .. } = event
                && agent == self.agent
                && (self.world.seq() >= self.continued || !self.is_root())
            {
                self.ended = Some(exit.kind());
                return ControlFlow::Break(());
            }
            self.see(event);
        }
        // A call sees what there is after its whole batch.
        for (seq, event) in (after + 1..).map(Seq).zip(&batch.events) {
            self.see_packet(seq, event);
        }
        ControlFlow::Continue(())
    }
}

impl<'a> Fold<'a> {
    fn is_root(&self) -> bool {
        self.world.agents().root().is_some_and(|root| self.world.agents().id(root) == self.agent)
    }

    fn new(tree: TreeId, agent: &'a AgentId, places: Places, continued: Seq) -> Self {
        let mut contexts = Contexts::whole(tree);
        contexts.keep(places);
        Self {
            world: World::new(tree),
            contexts,
            agent,
            continued,
            tokens: BTreeMap::new(),
            outputs: BTreeMap::new(),
            seen: 0,
            last_cut: None,
            prefixes: PacketPrefixes::default(),
            clamps: Vec::new(),
            refusals: Vec::new(),
            ended: None,
        }
    }

    fn see(&mut self, event: &Event) {
        let is_cut = matches!(event, Event::ContextCut { agent, .. } if agent == self.agent);
        // A cut of a full window may drop unread messages at once, so their tokens must be read before it.
        let reads = matches!(event, Event::ContextCut { shortened: None, .. }) && is_cut;
        let before = if reads { self.unread_tokens() } else { Vec::new() };
        let (refusal, output) = (self.refusal(event), self.output(event));
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
            let (messages, headers) = (self.kept(), self.window().map_or(&[][..], Window::headers));
            let first = if is_cut || is_set { 0 } else { messages.len().saturating_sub(new) };
            let counted = messages.iter().zip(headers).skip(first);
            tokens.extend(counted.map(|(message, header)| (Arc::as_ptr(message), header.estimate.into())));
        }
        let said = all.iter().rev().take(new).find(|message| matches!(***message, Message::Said { .. }));
        self.outputs.extend(said.map(Arc::as_ptr).zip(output));
        self.seen = all.len();
        self.tokens.extend(tokens);
        self.clamps.extend(self.clamp(event));
        if is_cut {
            self.last_cut = Some(self.world.seq());
        }
    }

    /// The packet of a turn that the event starts. A summary, a last answer and what a tool asks have others.
    fn see_packet(&mut self, seq: Seq, event: &Event) {
        let Event::CallStarted { call, attempt: 1, .. } = event else { return };
        let Some(started) = self.world.call(*call) else { return };
        let Work::Model(ModelCall { summary: None, wrap_up: None, outside: None, .. }) = &started.work else {
            return;
        };
        if self.world.agents().id(started.agent) == self.agent
            && let Some(packet) = self.contexts.packet(self.agent, 0)
        {
            self.prefixes.take(seq, packet);
        }
    }

    fn clamp(&self, event: &Event) -> Option<ClampedChild> {
        let Event::WindowSet { agent: child, size, clamped: Some(clamped), .. } = event else { return None };
        let agents = self.world.agents();
        let parent = agents.find(child).and_then(|ix| agents.parent(ix))?;
        let is_told = clamped.is_told && agents.id(parent) == self.agent;
        is_told.then(|| ClampedChild { child: child.clone(), size: *size, parent_size: clamped.parent_size })
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

    /// The output tokens of a call of the agent that the event ends.
    fn output(&self, event: &Event) -> Option<u64> {
        let Event::CallEnded { call, spent, input_tokens: Some(input), .. } = event else { return None };
        let call = self.world.call(*call)?;
        (self.world.agents().id(call.agent) == self.agent).then(|| output_tokens(spent, *input))
    }

    fn living(&self) -> Option<&Agent> {
        let ix = self.world.agents().find(self.agent)?;
        self.world.agents().living(ix)
    }

    fn window(&self) -> Option<&Window> {
        self.living().map(|agent| &agent.progress.window)
    }

    /// The messages of its window that are not unread, in the order of their headers.
    fn kept(&self) -> &[Arc<Message>] {
        self.contexts.window_messages(self.agent).unwrap_or_default()
    }

    fn unread_tokens(&self) -> Vec<u64> {
        let headers = self.window().map_or(&[][..], Window::headers);
        headers.iter().skip(self.kept().len()).map(|header| header.estimate.into()).collect()
    }

    fn recalled(self) -> Result<RecalledAgent, RecallError> {
        let (agents, agent) = (self.world.agents(), self.agent.clone());
        let living = agents.find(self.agent).and_then(|ix| Some((ix, agents.living(ix)?)));
        let Some((ix, living)) = living else {
            let known = agents.all().map(|ix| agents.id(ix).clone()).collect();
            return Err(RecallError::Unknown { agent, known });
        };
        let (agent_terms, window) = (&living.terms, living.progress.window.clone());
        let definition = self.world.definition();
        let role = definition.roles.get(&agent_terms.role);
        let Some(turns) = role.and_then(|role| role.turns.as_ref()) else {
            return Err(RecallError::NoTurns { agent });
        };
        let because = window.size().map(|size| {
            match SizeSource::new(
                definition,
                &agent_terms.role,
                &agent_terms.model,
                &agent_terms.on_low,
                size,
            ) {
                SizeSource::Role => format!("set by role `{}`", agent_terms.role),
                SizeSource::Model(model) => {
                    format!("{} % of the context of model `{model}`", limit::WINDOW_PERCENT)
                }
                SizeSource::Spawner => "set by its spawner".to_owned(),
            }
        });
        Ok(RecalledAgent {
            state: self.ended.map_or_else(|| self.world.view(ix).status, AgentStatus::Ended),
            seq: self.world.seq(),
            messages: self.known(),
            window,
            preset: turns.window.as_ref().map(|window| window.preset).unwrap_or_default(),
            because,
            last_cut: self.last_cut,
            summary: self.summary(),
            prefix: self.prefixes.found(),
            thread: self.thread(ix),
            clamps: self.clamps,
            refusals: self.refusals,
        })
    }

    fn summary(&self) -> Option<String> {
        let second = self.kept().get(1)?;
        let folded = if let Message::Folded(folded) = second.as_ref() { folded } else { return None };
        folded.summary().map(str::to_owned)
    }

    fn thread(&self, ix: AgentIx) -> Option<SharedThread> {
        let threads = self.world.threads();
        let head = threads.read_by(ix).unwrap_or(ix);
        let thread = threads.get(head)?;
        let of = self.world.agents().id(head).clone();
        Some(SharedThread { of, readers: thread.readers.len(), bound: thread.bound })
    }

    fn known(&self) -> Vec<KnownMessage> {
        let corrected = |tokens| self.window().map_or(tokens, |window| window.corrected(tokens));
        let mut window = self.kept().iter().filter(|message| is_stored(message)).peekable();
        let read = self.contexts.messages(self.agent).unwrap_or_default().iter();
        let read = read.map(|message| {
            let tokens = self.tokens.get(&Arc::as_ptr(message)).copied().map(corrected);
            let is_kept = window.next_if(|kept| Arc::ptr_eq(kept, message)).is_some();
            let place = if is_kept { MessagePlace::Window } else { MessagePlace::LeftOut };
            let output = self.outputs.get(&Arc::as_ptr(message)).copied();
            KnownMessage { message: Arc::clone(message), tokens, output, place }
        });
        let unread = self.contexts.unread(self.agent).zip(self.unread_tokens());
        let unread = unread.map(|(message, tokens)| {
            let message = Arc::new(message.clone());
            KnownMessage {
                message,
                tokens: Some(corrected(tokens)),
                output: None,
                place: MessagePlace::Unread,
            }
        });
        read.chain(unread).collect()
    }
}

/// Whether a message belongs to the context, and is not the digest of left-out ones.
fn is_stored(message: &Message) -> bool {
    !matches!(message, Message::Folded(_))
}
