//! Replay: reads a journal from the start, checks its chain, and decides every stored input again. Calls no model and
//! no tool; names the position of the first difference.

use std::collections::BTreeMap;

use spinney_journal::{ChainHash, Entry, Head, Journal, JournalFault, blobs_of, damaged, pages, places};
use spinney_kernel::context::{Contexts, Places};
use spinney_kernel::primitives::{AgentId, Seq, TreeId};
use spinney_kernel::record::{AgentSnapshot, Event, are_decided};
use spinney_kernel::rules::decide;
use spinney_kernel::world::{TreeState, World};

use super::TreeSnapshot;
use super::unfit::checked;

/// A journal that was verified.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Verified {
    /// Number of events.
    pub events: u64,
    /// The hash over all events.
    pub hash: Option<ChainHash>,
    /// The version of its rules.
    pub rules: u32,
    /// Whether every input was decided again. If not, this version does not implement its rules, and its events were
    /// only applied.
    pub decided: bool,
    /// The tree at its end.
    pub snapshot: TreeSnapshot,
}

/// How a journal differs from what it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Diverged {
    /// It cannot be read, or its chain is broken.
    #[error(transparent)]
    Journal(JournalFault),
    /// Its last hash is not the expected one.
    #[error("the journal ends at event {seq} with hash {found}, not {expected}: its tail is cut or changed")]
    OtherEnd {
        /// Its last event.
        seq: u64,
        /// The hash there.
        found: String,
        /// The hash that was expected.
        expected: String,
    },
    /// It is not the journal that was recorded outside of it.
    #[error(
        "the journal has {found} events and differs from the {recorded} that were recorded on this machine: events were removed or changed, or this is an older copy"
    )]
    OtherRecord {
        /// Its events.
        found: u64,
        /// The events that were recorded.
        recorded: u64,
    },
    /// The same input decides something else now.
    #[error("event {seq} diverges: the journal says {stored}, deciding again gives {decided}")]
    Event {
        /// The event's position.
        seq: u64,
        /// The stored event.
        stored: String,
        /// The decided event.
        decided: String,
    },
    /// A blob that an event refers to is missing or altered.
    #[error("event {seq} refers to blob {hash}, which is {what}: restore the home from a copy")]
    Blob {
        /// The event's position.
        seq: u64,
        /// The blob.
        hash: String,
        /// Missing or altered.
        what: &'static str,
    },
    /// The head does not match the journal.
    #[error("the head says {head} and the journal says {journal}: the head was changed")]
    Head {
        /// What the head says.
        head: String,
        /// What the journal says.
        journal: String,
    },
    /// An event does not fit the tree's state.
    #[error("event {seq} or one of its batch does not fit the tree: {reason}")]
    Misfit {
        /// The first event of the batch.
        seq: u64,
        /// What is wrong.
        reason: String,
    },
}

/// Reads a tree's journal and decides every input again, a page at a time.
///
/// # Errors
/// The first difference.
pub async fn verify(
    journal: &dyn Journal,
    tree: TreeId,
    expect: Option<ChainHash>,
) -> Result<Verified, Diverged> {
    let head = journal.head(tree).await.map_err(Diverged::Journal)?;
    let head = head.ok_or(Diverged::Journal(JournalFault::UnknownTree { tree }))?;
    let mut replay = Replay::start(journal, &head, Places::default()).await?;
    if replay.contexts.lacks().is_some() {
        // It returns to checkpoints that a first pass does not keep.
        let places = places(journal, tree, head.seq).await.map_err(Diverged::Journal)?;
        replay = Replay::start(journal, &head, places).await?;
    }
    if let Some(seq) = replay.contexts.lacks() {
        return Err(Diverged::Journal(damaged(tree, seq)));
    }
    let (found, seq) = (replay.hash, replay.world.seq());
    let cut = |expected: ChainHash| Diverged::OtherEnd {
        seq: seq.0,
        found: found.map_or_else(|| "none".to_owned(), |hash| hash.to_string()),
        expected: expected.to_string(),
    };
    if let Some(expected) = [Some(head.hash), expect].into_iter().flatten().find(|hash| Some(*hash) != found)
    {
        return Err(cut(expected));
    }
    check_head(&head, &replay.world)?;
    let Replay { world, contexts, rules, hash, .. } = replay;
    let rules = rules.unwrap_or_default();
    let snapshot = TreeSnapshot::at(&world, &contexts);
    Ok(Verified { events: seq.0, hash, rules, decided: are_decided(rules), snapshot })
}

/// Checks every blob that the events of a batch refer to.
async fn check_blobs(journal: &dyn Journal, entry: &Entry) -> Result<(), Diverged> {
    for (event, seq) in entry.batch.events.iter().zip(entry.after.0 + 1..) {
        for blob in blobs_of(event) {
            let wrong = |what| Diverged::Blob { seq, hash: blob.hash.to_string(), what };
            match journal.blob(blob).await {
                Ok(Some(_)) => {}
                Ok(None) => return Err(wrong("missing")),
                Err(JournalFault::DamagedBlob { .. }) => return Err(wrong("altered")),
                Err(fault) => return Err(Diverged::Journal(fault)),
            }
        }
    }
    Ok(())
}

/// The head must match the end of the journal, and show the tree as over exactly if it is.
fn check_head(head: &Head, world: &World) -> Result<(), Diverged> {
    let state = world.state();
    let over = state.is_over() || head.state.is_over();
    if head.seq == world.seq() && (!over || head.state == state) {
        return Ok(());
    }
    let said = |seq: Seq, state: TreeState| format!("event {}, {state}", seq.0);
    Err(Diverged::Head { head: said(head.seq, head.state), journal: said(world.seq(), state) })
}

struct Replay {
    world: World,
    contexts: Contexts,
    rules: Option<u32>,
    hash: Option<ChainHash>,
    /// Checkpoints that later events return to, and the agents' states there.
    places: Places,
    stood: BTreeMap<(Seq, AgentId), AgentSnapshot>,
}

impl Replay {
    /// Reads a whole journal and keeps what later events return to.
    async fn start(journal: &dyn Journal, head: &Head, places: Places) -> Result<Self, Diverged> {
        let (tree, world) = (head.tree, World::new(head.seed));
        let mut contexts = Contexts::new(tree);
        contexts.keep(places.clone());
        let mut replay = Self { world, contexts, rules: None, hash: None, places, stood: BTreeMap::new() };
        let mut pages = pages(journal, tree, Seq(0));
        while let Some(page) = pages.next().await.map_err(Diverged::Journal)? {
            // A running tree may append more after the head that was read first.
            for entry in page.into_iter().filter(|entry| entry.after < head.seq) {
                check_blobs(journal, &entry).await?;
                replay.take(entry)?;
            }
        }
        Ok(replay)
    }

    fn take(&mut self, entry: Entry) -> Result<(), Diverged> {
        let Entry { after, batch, hash } = entry;
        let first = after.0 + 1;
        if self.world.seq() != after {
            let reason = format!("it follows event {}, not {}", after.0, self.world.seq().0);
            return Err(Diverged::Misfit { seq: first, reason });
        }
        if let (None, Some(Event::TreeStarted { rules, .. })) = (self.rules, batch.events.first()) {
            self.rules = Some(*rules);
            self.world = World::under(*rules, self.world.tree());
        }
        let ours = self.rules.is_some_and(are_decided);
        let seqs = || (first..).map(Seq).take(batch.events.len());
        let fitted = checked(|| -> Result<(), Diverged> {
            let mut shadow = seqs().any(|seq| self.places.has(seq)).then(|| self.world.clone());
            if ours {
                let decided = decide(&mut self.world, &batch.input).map(|decision| decision.events);
                compare(after, &batch.events, decided.as_deref().unwrap_or_default())?;
            } else {
                batch.events.iter().for_each(|event| self.world.apply(event));
            }
            batch
                .events
                .iter()
                .zip(seqs())
                .try_for_each(|(event, seq)| self.follow(event, seq, shadow.as_mut()))
        });
        self.hash = Some(hash);
        fitted.unwrap_or_else(|| {
            let reason = "it was not decided for this tree".to_owned();
            Err(Diverged::Misfit { seq: first, reason })
        })
    }
}

impl Replay {
    /// Applies an event to the contexts. `shadow` is the world before its batch, if a later event returns to it.
    fn follow(&mut self, event: &Event, seq: Seq, shadow: Option<&mut World>) -> Result<(), Diverged> {
        self.contexts.apply(event);
        if let Some(shadow) = shadow {
            shadow.apply(event);
            for agent in self.places.whose(seq) {
                let known = self.contexts.kept(seq, agent);
                let stood = known.and_then(|known| AgentSnapshot::new(shadow, agent, known));
                self.stood.extend(stood.map(|stood| ((seq, agent.clone()), stood)));
            }
        }
        // A first pass keeps nothing, and is followed by one that does.
        if let Event::ContextRestored(restored) = event
            && self.places.has(restored.at)
            && self.stood.get(&(restored.at, restored.from.clone())) != Some(&restored.standing)
        {
            let reason = format!("event {} does not match its checkpoint", restored.at.0);
            return Err(Diverged::Misfit { seq: seq.0, reason });
        }
        Ok(())
    }
}

/// The first difference between stored and decided events.
fn compare(after: Seq, stored: &[Event], decided: &[Event]) -> Result<(), Diverged> {
    let most = stored.len().max(decided.len());
    let pairs = (0..most).map(|at| (stored.get(at), decided.get(at)));
    match pairs.zip(after.0 + 1..).find(|((stored, decided), _)| stored != decided) {
        None => Ok(()),
        Some(((stored, decided), seq)) => {
            Err(Diverged::Event { seq, stored: shown(stored), decided: shown(decided) })
        }
    }
}

fn shown(event: Option<&Event>) -> String {
    let text = event.map_or_else(|| "nothing".to_owned(), |event| format!("{event:?}"));
    text.chars().take(300).collect()
}
