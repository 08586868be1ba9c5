//! Whether each packet of an agent begins with all of the one before, which is what providers' prompt caches need, and where
//! the last one that did not begins to differ. A change of the model, whose cache is another one, is not looked at.

use std::sync::Arc;

use serde::Serialize;
use spinney_kernel::context::{Message, Packet};
use spinney_kernel::primitives::{Category, Seq};

/// How the packets of an agent's turns begin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PacketPrefix {
    /// How many packets there were.
    pub packets: u64,
    /// How many of them did not begin with the whole packet before.
    pub diverged: u64,
    /// The last one of these.
    pub last: Option<Divergence>,
}

/// Where a packet begins to differ from the one before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Divergence {
    /// The event that started its call.
    pub seq: Seq,
    /// The first part that differs.
    pub section: PacketSection,
    /// How many messages before it are the same.
    pub same_messages: usize,
}

/// A part of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketSection {
    /// The descriptions of tools, which come first.
    Tools,
    /// The role's prompt and the goal.
    Prompt,
    /// What stands for messages that were left out.
    Digest,
    /// A message.
    Message(Category),
}

impl PacketSection {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompt => "prompt",
            Self::Digest => "digest",
            Self::Message(category) => category.as_str(),
        }
    }

    fn of(message: &Message) -> Self {
        match message {
            Message::System(_) => Self::Prompt,
            Message::Folded(_) => Self::Digest,
            other => Self::Message(other.category()),
        }
    }
}

impl Serialize for PacketSection {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Compares each packet of an agent with the one before.
#[derive(Default)]
pub(crate) struct PacketPrefixes {
    found: PacketPrefix,
    before: Option<Packet>,
}

impl PacketPrefixes {
    /// Takes the packet of a call that event `seq` started.
    pub(crate) fn take(&mut self, seq: Seq, packet: Packet) {
        self.found.packets += 1;
        let differs = self.before.as_ref().and_then(|before| difference(before, &packet));
        if let Some((section, same_messages)) = differs {
            self.found.diverged += 1;
            self.found.last = Some(Divergence { seq, section, same_messages });
        }
        self.before = Some(packet);
    }

    pub(crate) fn found(&self) -> PacketPrefix {
        self.found.clone()
    }
}

/// The first part in which a packet does not repeat the one before, and how many messages are the same.
fn difference(before: &Packet, after: &Packet) -> Option<(PacketSection, usize)> {
    if before.tools != after.tools {
        return Some((PacketSection::Tools, 0));
    }
    let same = before.messages.iter().zip(after.messages.iter());
    let same = same.take_while(|(one, other)| Arc::ptr_eq(one, other) || one == other).count();
    let gone = before.messages.get(same)?;
    Some((PacketSection::of(after.messages.get(same).unwrap_or(gone)), same))
}

#[cfg(test)]
mod tests {
    use spinney::Tree;
    use spinney_kernel::context::ToolDescription;
    use spinney_kernel::definition::WindowSpec;
    use spinney_kernel::record::Event;
    use spinney_testkit::{TestHome, definition};

    use super::*;
    use crate::recall::recall;

    const LOOKS: &str = "
rules:
  - { when: { turn: 30 }, say: done }
  - { say: Looking., call: [ { tool: look } ] }
tools: { look: { say: LONG } }
";

    /// The events that cut the window of a tree's only agent.
    async fn cuts(tree: &Tree, stage: &TestHome) -> u64 {
        tree.ended().await;
        let journal = stage.journal();
        let mut cuts = 0;
        let mut pages = spinney_journal::pages(journal.as_ref(), tree.id(), Seq(0));
        while let Some(page) = pages.next().await.unwrap() {
            let events = page.iter().flat_map(|entry| &entry.batch.events);
            cuts += events.filter(|event| matches!(event, Event::ContextCut { .. })).count() as u64;
        }
        cuts
    }

    /// P9: each packet of a tool loop begins with the bytes of the one before, until the window is full; the view of a
    /// window says how many did not, and with which part the last of them began to differ.
    #[tokio::test(start_paused = true)]
    async fn p9_packets_begin_with_the_same_bytes_and_a_divergence_is_reported_by_section() {
        let stage = TestHome::new(&LOOKS.replace("LONG", &"seen".repeat(200)));
        let home = stage.home();
        let mut definition = definition("root turns=40 tools=look");
        for role in definition.roles.values_mut() {
            let turns = role.turns.as_mut().unwrap();
            turns.window = Some(WindowSpec { size: Some(3_000), ..WindowSpec::default() });
        }
        let tree = home.start(definition).await.unwrap();
        let cuts = cuts(&tree, &stage).await;
        assert!((2..10).contains(&cuts), "{cuts}");
        let sent: Vec<Packet> = stage.model().attempts().iter().map(|sent| sent.packet.clone()).collect();
        let bytes = |packet: &Packet| -> Vec<String> {
            let messages = packet.messages.iter().map(|message| format!("{message:?}"));
            std::iter::once(format!("{:?}", packet.tools)).chain(messages).collect()
        };
        let unlike = sent.windows(2).filter(|pair| !bytes(&pair[1]).starts_with(&bytes(&pair[0])));
        assert_eq!(unlike.count() as u64, cuts);

        let agent = "root".parse().unwrap();
        let prefix = recall(stage.journal().as_ref(), tree.id(), &agent).await.unwrap().prefix;
        assert_eq!((prefix.packets, prefix.diverged), (sent.len() as u64, cuts));
        let last = prefix.last.unwrap();
        // The role's prompt stays, and what follows it stands for what is gone.
        assert_eq!((last.section, last.same_messages), (PacketSection::Digest, 1));
    }

    #[test]
    fn a_difference_is_named_by_the_first_part_that_differs() {
        let heard = |text: &str| {
            let packet = Packet::of_message(text, 0);
            Arc::clone(&packet.messages[0])
        };
        let packet = |texts: &[&str]| Packet {
            messages: Arc::new(texts.iter().map(|text| heard(text)).collect()),
            ..Packet::default()
        };
        let before = packet(&["one", "two"]);
        assert_eq!(difference(&before, &packet(&["one", "two", "three"])), None);
        let dialog = PacketSection::Message(Category::Dialog);
        assert_eq!(difference(&before, &packet(&["one", "other", "three"])), Some((dialog, 1)));
        assert_eq!(difference(&before, &packet(&["one"])), Some((dialog, 1)), "one that is shorter");
        let mut tools = packet(&["one", "two"]);
        tools.tools = Arc::new([ToolDescription {
            name: "look".parse().unwrap(),
            description: String::new(),
            schema: String::new(),
        }]);
        assert_eq!(difference(&before, &tools), Some((PacketSection::Tools, 0)));
    }
}
