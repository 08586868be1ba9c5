//! What a tree is resumed from is in its journal: it comes with the first batch, and a home finds it again.

use proptest::collection::btree_map;
use proptest::prelude::*;
use spinney::tree::{BranchOff, RequestError, verify};
use spinney::{Home, Shutdown, StartError, StartOptions, Tree};
use spinney_journal::{Blocking as _, Shared, checkpoints, started_sources};
use spinney_kernel::budget::{Ceilings, Resource};
use spinney_kernel::definition::Refusal;
use spinney_kernel::primitives::{Actor, BadSources, BlobRef, SourceFiles, SourceName};
use spinney_kernel::rules::request::Adjust;
use spinney_testkit::{TestHome, definition, settled};

const ASKS: &str =
    "rules: [{ when: { turn: 1 }, call: [{ tool: ask_human, args: { question: Which? } }] }, { say: done }]";

type Files = Vec<(SourceName, Vec<u8>)>;

fn files(all: &[(&str, &str)]) -> Files {
    all.iter().map(|(name, text)| (name.parse().unwrap(), text.as_bytes().to_vec())).collect()
}

async fn start(home: &Home, sources: Files) -> Result<Tree, StartError> {
    let definition = definition("root $9.00 turns=5");
    home.start_with(definition, StartOptions::default().with_sources(sources)).await
}

fn adjust(sources: SourceFiles) -> Adjust {
    Adjust { limit: Ceilings::NONE, parallel_max: None, on_low: None, timeout_ms: None, sources }
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(work)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// G31, in part: any files come back as they were given, also to the next process.
    #[test]
    fn g31_sources_come_back_as_they_were_given(
        given in btree_map("[a-z0-9][a-z0-9._-]{0,20}", proptest::collection::vec(any::<u8>(), 0..2_000), 0..12),
    ) {
        block_on(async {
            let stage = TestHome::new(ASKS);
            let given: Files = given.into_iter().map(|(name, bytes)| (name.parse().unwrap(), bytes)).collect();
            let home = stage.home();
            let tree = start(&home, given.clone()).await.unwrap().id();
            home.shutdown(Shutdown::Kill).await;
            prop_assert_eq!(stage.home().sources(tree).await.unwrap(), given);
            prop_assert!(verify(stage.journal().as_ref(), tree, None).await.is_ok());
            Ok(())
        })?;
    }
}

#[tokio::test(start_paused = true)]
async fn a_bad_list_of_sources_starts_nothing() {
    let stage = TestHome::new(ASKS);
    let home = stage.home();
    let refused = start(&home, files(&[("a", "1"), ("a", "2")])).await.err().unwrap();
    let name = "a".parse().unwrap();
    assert_eq!(refused, StartError::Refused(BadSources::Duplicate { name }.into()));
    assert!(stage.journal().heads(&[]).wait().unwrap().is_empty());
}

/// The newest file of a name wins, and the others stay.
#[tokio::test(start_paused = true)]
async fn sources_are_replaced_by_name() {
    let stage = TestHome::new(ASKS);
    let home = stage.home();
    let tree = start(&home, files(&[("a", "old"), ("b", "stays")])).await.unwrap();
    settled(&tree).await;
    let (sources, bytes) = SourceFiles::enclose(files(&[("a", "new"), ("c", "more")])).unwrap();
    tree.request_with(Actor::PERSON, adjust(sources), bytes).await.unwrap();
    let newest = home.sources(tree.id()).await.unwrap();
    assert_eq!(newest, files(&[("a", "new"), ("b", "stays"), ("c", "more")]));
    let first = started_sources(stage.journal().as_ref(), tree.id()).await.unwrap();
    assert_eq!(first.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    home.shutdown(Shutdown::Kill).await;
    assert!(verify(stage.journal().as_ref(), tree.id(), None).await.is_ok());
}

/// No request reaches another tree's blobs by naming their hash.
#[tokio::test(start_paused = true)]
async fn sources_come_with_their_bytes() {
    let stage = TestHome::new(ASKS);
    let home = stage.home();
    let secret = start(&home, files(&[("a", "of another tree")])).await.unwrap();
    let tree = start(&home, files(&[("b", "own")])).await.unwrap();
    let sources = started_sources(stage.journal().as_ref(), secret.id()).await.unwrap();
    for bytes in [vec![], vec![b"something else".to_vec()]] {
        let refused = tree.request_with(Actor::PERSON, adjust(sources.clone()), bytes).await.unwrap_err();
        let name = "a".parse().unwrap();
        assert_eq!(refused, RequestError::Refused(Refusal::from(BadSources::NoBytes { name })));
    }
    let mut longer = sources.to_vec();
    longer[0].blob = BlobRef { bytes: 99, ..longer[0].blob.clone() };
    let longer = SourceFiles::new(longer).unwrap();
    let bytes = vec![b"of another tree".to_vec()];
    assert!(tree.request_with(Actor::PERSON, adjust(longer), bytes).await.is_err());
}

/// A branch has the sources of its origin, also when that is removed; the last tree that goes takes them with it.
#[tokio::test(start_paused = true)]
async fn a_branch_has_the_sources_of_its_origin() {
    let stage = TestHome::new(ASKS);
    let home = stage.home();
    let given = files(&[("tree.yaml", "name: t")]);
    let tree = start(&home, given.clone()).await.unwrap();
    settled(&tree).await;
    let root = "root".parse().unwrap();
    let name = tree.checkpoint(root, None).await.unwrap();
    let listed = checkpoints(stage.journal().as_ref(), None).wait().unwrap();
    let known = &listed.iter().find(|listed| listed.name == name).unwrap().known;
    let budget = Ceilings::NONE.with(Resource::Cost, 1_000_000_000);
    let off = BranchOff { from: tree.id(), at: known.seq, agent: known.agent.clone(), budget };
    let branch = home.draw_id();
    home.branch(branch, off).await.unwrap();
    home.shutdown(Shutdown::Kill).await;
    let home = stage.home();
    let blob = started_sources(stage.journal().as_ref(), branch).await.unwrap()[0].blob.clone();
    assert_eq!(home.sources(branch).await.unwrap(), given);
    home.remove(tree.id(), Shared::HandOver).await.unwrap();
    assert_eq!(home.sources(branch).await.unwrap(), given);
    home.remove(branch, Shared::Refuse).await.unwrap();
    assert_eq!(stage.journal().blob(&blob).wait().unwrap(), None);
}
