//! Keys that are reserved for a tree before an append takes them.

use spinney_journal::{
    Append, Blocking, CatalogKind, CatalogRow, Claim, Journal, JournalFault, Reservation, Shared,
};
use spinney_kernel::primitives::{TreeId, limit};

use super::{append, append_for, batches, catalog, last, tree, with_rows, write};

const KIND: CatalogKind = CatalogKind::Checkpoint;

pub(super) const CHECKS: [fn(&dyn Journal); 6] = [
    a_key_is_reserved_for_one_tree,
    a_reserved_key_is_taken_by_an_append_of_its_tree_alone,
    a_key_is_freed_by_its_owner,
    a_claim_frees_what_no_append_took,
    reserved_keys_go_with_their_tree,
    a_reserved_key_is_not_a_row_of_the_catalog,
];

/// Two trees, each with its owner.
fn owners(journal: &dyn Journal) -> (Claim, Claim) {
    for number in [1, 2] {
        write(journal, tree(number), &batches()[..1]);
    }
    (Claim::first(tree(1)), Claim::first(tree(2)))
}

fn reserve(journal: &dyn Journal, claim: Claim, key: &str) -> Result<Reservation, JournalFault> {
    journal.reserve(claim, KIND, key).wait()
}

fn taken(tree: TreeId) -> Result<Reservation, JournalFault> {
    Ok(Reservation::Taken { tree })
}

const RESERVED: Result<Reservation, JournalFault> = Ok(Reservation::Reserved);

/// The next batch of a tree, with a row under this key.
fn naming(claim: Claim, key: &str) -> Append {
    let named = with_rows(claim.tree, &[(key, Some("here"))]);
    Append {
        epoch: claim.epoch,
        catalog: named.catalog,
        ..append_for(claim.tree, last(&batches()[..1]), &batches()[1])
    }
}

fn a_key_is_reserved_for_one_tree(journal: &dyn Journal) {
    let (one, two) = owners(journal);
    assert_eq!(reserve(journal, one, "x"), RESERVED);
    assert_eq!(reserve(journal, two, "x"), taken(tree(1)));
    assert_eq!(reserve(journal, one, "x"), taken(tree(1)), "two requests of one tree are two");
    assert_eq!(reserve(journal, two, "y"), RESERVED);
    // Each kind has its own keys.
    assert_eq!(journal.reserve(two, CatalogKind::Tree, "x").wait(), RESERVED);
    let long = reserve(journal, one, &"x".repeat(limit::CATALOG_KEY_BYTES_MAX + 1));
    assert!(matches!(long, Err(JournalFault::TooLarge { .. })), "{long:?}");
    let unknown = Err(JournalFault::UnknownTree { tree: tree(3) });
    assert_eq!(reserve(journal, Claim::first(tree(3)), "z"), unknown);
}

fn a_reserved_key_is_taken_by_an_append_of_its_tree_alone(journal: &dyn Journal) {
    let (one, two) = owners(journal);
    assert_eq!(reserve(journal, one, "x"), RESERVED);
    let foreign = JournalFault::KeyTaken { kind: KIND, key: "x".to_owned(), tree: tree(1) };
    assert_eq!(append(journal, naming(two, "x")), Err(foreign));
    let named = append(journal, naming(one, "x"));
    assert!(named.is_ok(), "{named:?}");
    assert_eq!(catalog(journal, KIND, "x"), [("x".to_owned(), tree(1), "here".to_owned())]);
    // It is a row now, which neither a request that was refused nor a claim frees.
    assert_eq!(journal.free(one, KIND, "x").wait(), Ok(()));
    let again = journal.claim(tree(1)).wait();
    assert!(again.is_ok(), "{again:?}");
    assert_eq!(reserve(journal, two, "x"), taken(tree(1)));
    assert_eq!(catalog(journal, KIND, "x").len(), 1);
}

fn a_key_is_freed_by_its_owner(journal: &dyn Journal) {
    let (one, two) = owners(journal);
    assert_eq!(reserve(journal, one, "x"), RESERVED);
    assert_eq!(journal.free(two, KIND, "x").wait(), Ok(()));
    assert_eq!(reserve(journal, two, "x"), taken(tree(1)), "it is not his");
    assert_eq!(journal.free(one, KIND, "never").wait(), Ok(()));
    // Nothing waits for the answer, and the next request comes after it.
    drop(journal.free(one, KIND, "x"));
    assert_eq!(reserve(journal, two, "x"), RESERVED);
}

/// What a process that died had reserved, and what it would still do.
fn a_claim_frees_what_no_append_took(journal: &dyn Journal) {
    let (dead, two) = owners(journal);
    for key in ["a", "b"] {
        assert_eq!(reserve(journal, dead, key), RESERVED);
    }
    assert_eq!(reserve(journal, two, "mine"), RESERVED);
    let owner = journal.claim(tree(1)).wait().unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(reserve(journal, two, "a"), RESERVED);
    assert_eq!(reserve(journal, owner, "b"), RESERVED);
    assert_eq!(reserve(journal, owner, "mine"), taken(tree(2)), "a claim of another tree");
    assert_eq!(reserve(journal, dead, "c"), Err(JournalFault::Owned { tree: tree(1) }));
    assert_eq!(journal.free(dead, KIND, "b").wait(), Ok(()));
    assert_eq!(reserve(journal, two, "b"), taken(tree(1)), "an outdated claim frees nothing");
    let named = append(journal, naming(owner, "b"));
    assert!(named.is_ok(), "{named:?}");
}

fn reserved_keys_go_with_their_tree(journal: &dyn Journal) {
    let (one, two) = owners(journal);
    assert_eq!(reserve(journal, one, "x"), RESERVED);
    assert_eq!(journal.remove(tree(1), Shared::Refuse).wait(), Ok(()));
    assert_eq!(reserve(journal, two, "x"), RESERVED);
}

/// It is not listed, and stays when the rows of its tree are replaced.
fn a_reserved_key_is_not_a_row_of_the_catalog(journal: &dyn Journal) {
    let (one, two) = owners(journal);
    let at = last(&batches()[..1]);
    assert_eq!(reserve(journal, one, "x"), RESERVED);
    assert_eq!(catalog(journal, KIND, ""), []);
    let row = CatalogRow { kind: KIND, key: "y".to_owned(), value: Some("there".to_owned()) };
    assert_eq!(journal.replace_catalog(tree(1), at, vec![row]).wait(), Ok(()));
    assert_eq!(catalog(journal, KIND, ""), [("y".to_owned(), tree(1), "there".to_owned())]);
    assert_eq!(reserve(journal, two, "x"), taken(tree(1)));
    let foreign = CatalogRow { kind: KIND, key: "x".to_owned(), value: Some("theirs".to_owned()) };
    let refused = journal.replace_catalog(tree(2), at, vec![foreign]).wait();
    assert_eq!(refused, Err(JournalFault::KeyTaken { kind: KIND, key: "x".to_owned(), tree: tree(1) }));
}
