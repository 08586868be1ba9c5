//! Tags: labels that the starter of a tree chooses, on every event that is shown.

use std::sync::Arc;

use spinney::bus::{TracedEvent, Watch, WatchItem};
use spinney::{Shutdown, StartError, Tree};
use spinney_kernel::definition::{Definition, Refusal, Tags};
use spinney_kernel::primitives::limit;
use spinney_testkit::{TestHome, definition, recorded};

const SCRIPT: &str = "
rules:
  - { when: { turn: 1 }, call: [{ tool: ask_human, args: { question: Really? } }] }
  - say: done
";

fn tagged(tags: impl IntoIterator<Item = (String, String)>) -> Definition {
    Definition { tags: Arc::new(tags.into_iter().collect()), ..definition("root turns=5") }
}

fn customer() -> Tags {
    [("customer".to_owned(), "acme".to_owned())].into()
}

/// Everything that a watcher without a filter sees until the tree waits or has ended.
async fn traced_events(tree: &Tree) -> Vec<Arc<TracedEvent>> {
    let mut watcher = tree.watch(Watch::default());
    let mut seen = Vec::new();
    while watcher.seen() < tree.status().seq {
        let Some(Ok(WatchItem::Event(traced))) = watcher.next().await else { panic!("an event") };
        seen.push(traced);
    }
    seen
}

/// Live, from the past, and after a restart: each event has the same tags.
#[tokio::test(start_paused = true)]
async fn every_event_that_is_shown_has_the_tags_of_its_tree() {
    let stage = TestHome::new(SCRIPT);
    let first = stage.home();
    let tree = first.start(tagged(customer())).await.unwrap();
    tree.settled().await;
    let seen = traced_events(&tree).await;
    assert!(seen.len() > 4 && seen.iter().all(|traced| *traced.context.tags == customer()), "{seen:?}");
    assert!(
        seen.iter().all(|traced| Arc::ptr_eq(&traced.context.tags, &seen[0].context.tags)),
        "one copy for all"
    );
    let question = tree.snapshot().await.unwrap().questions[0].question;
    first.shutdown(Shutdown::Kill).await;
    let second = stage.home();
    let tree = second.resume(tree.id()).await.unwrap();
    tree.answer(question, "Yes.").await.unwrap();
    tree.ended().await;
    let all = traced_events(&tree).await;
    assert!(all.len() > seen.len() && all.iter().all(|traced| *traced.context.tags == customer()), "{all:?}");
}

/// Only the definition has them: the journal of a tree without tags is unchanged, and no agent reads any.
#[tokio::test(start_paused = true)]
async fn tags_are_in_the_definition_and_nowhere_else() {
    let stage = TestHome::new("rules: [{ say: done }]");
    let home = stage.home();
    let mut lines = Vec::new();
    for definition in [tagged(Tags::new()), tagged(customer())] {
        let tree = home.start(definition).await.unwrap();
        tree.ended().await;
        let written = |recorded: spinney::bus::RecordedEvent| serde_json::to_string(&recorded.event).unwrap();
        lines.push(recorded(&tree).await.into_iter().map(written).collect::<Vec<_>>());
    }
    let with: Vec<bool> = lines[1].iter().map(|line| line.contains("acme")).collect();
    assert_eq!(with.iter().filter(|has| **has).count(), 1);
    assert!(with[0] && lines[1][0].contains(r#""tags":{"customer":"acme"}"#), "{}", lines[1][0]);
    assert!(!lines[0][0].contains("tags"), "{}", lines[0][0]);
    let read = format!("{:?}", stage.model().attempts()[1].packet);
    assert!(!read.contains("acme"), "{read}");
}

/// Too many, too long or unnamed tags are refused with the numbers, and nothing starts.
#[tokio::test(start_paused = true)]
async fn tags_are_bounded() {
    let stage = TestHome::new(SCRIPT);
    let home = stage.home();
    let refused = async |tags: Vec<(String, String)>| match home.start(tagged(tags)).await {
        Err(StartError::Refused(refusal)) => refusal,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it started"),
    };
    let tag = |name: usize, bytes: usize| ("n".repeat(name), "x".repeat(bytes));
    let many: Vec<_> = (1..=limit::TAGS_MAX + 1).map(|name| tag(name, 1)).collect();
    let too_many = Refusal::TooMany { what: "tags".to_owned(), count: 33, count_max: 32 };
    assert_eq!(refused(many).await, too_many);
    let long =
        |what: &str, bytes, bytes_max| Refusal::TextTooLong { what: what.to_owned(), bytes, bytes_max };
    assert_eq!(refused(vec![tag(65, 1)]).await, long("name of a tag", 65, 64));
    assert_eq!(refused(vec![tag(1, 257)]).await, long("tag", 257, 256));
    assert_eq!(refused(vec![tag(0, 1)]).await, Refusal::TextEmpty { what: "name of a tag".to_owned() });
    let most: Vec<_> = (1..=limit::TAGS_MAX).map(|name| tag(name + 32, 256)).collect();
    assert!(home.start(tagged(most)).await.is_ok());
}
