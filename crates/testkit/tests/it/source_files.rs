//! The files that a tree is resumed from: which are taken, and that the journal has them once.

use spinney_journal::{Batch, blobs_of};
use spinney_kernel::budget::Ceilings;
use spinney_kernel::primitives::{BlobHash, BlobRef, SourceFile, SourceFiles, SourceName, limit};
use spinney_kernel::record::Event;
use spinney_kernel::rules::request::{Adjust, Start};
use spinney_testkit::{Scenario, definition};

fn name(text: &str) -> SourceName {
    text.parse().unwrap()
}

fn file(text: &str, bytes: u64) -> SourceFile {
    SourceFile { name: name(text), blob: BlobRef { hash: BlobHash::digest(text.as_bytes()), bytes } }
}

const NOTHING: Adjust = Adjust {
    limit: Ceilings::NONE,
    parallel_max: None,
    on_low: None,
    timeout_ms: None,
    sources: SourceFiles::NONE,
};

#[test]
fn a_name_of_a_source_is_plain_and_short() {
    for good in ["tree.yaml", "script-1.yaml", "exec.json", "a", "0", &"x".repeat(64)] {
        assert_eq!(name(good).as_str(), good);
    }
    for bad in
        ["", ".", "..", ".hidden", "-x", "a/b", "a\\b", "Tree.yaml", "a b", "a\n", "é", &"x".repeat(65)]
    {
        assert!(bad.parse::<SourceName>().is_err(), "{bad:?}");
    }
}

#[test]
fn a_list_of_sources_is_bounded_wherever_it_comes_from() {
    let many = |count: usize| (0..count).map(|number| file(&format!("f{number}"), 1)).collect::<Vec<_>>();
    let bytes_max = limit::SOURCE_FILES_BYTES_MAX;
    for good in [many(0), many(limit::SOURCE_FILES_MAX), vec![file("a", bytes_max)]] {
        let json = serde_json::to_value(SourceFiles::new(good.clone()).unwrap()).unwrap();
        assert_eq!(*serde_json::from_value::<SourceFiles>(json).unwrap(), *good);
    }
    for (bad, why) in [
        (many(limit::SOURCE_FILES_MAX + 1), "513 source files are too many, the limit is 512"),
        (vec![file("a", bytes_max), file("b", 1)], "bytes together and the limit is 50331648"),
        (vec![file("a", u64::MAX), file("b", u64::MAX)], "bytes together and the limit is 50331648"),
        (vec![file("a", 1), file("b", 1), file("a", 2)], "two source files are named `a`"),
    ] {
        let refused = SourceFiles::new(bad.clone()).unwrap_err().to_string();
        assert!(refused.contains(why), "{refused}");
        let read = serde_json::from_value::<SourceFiles>(serde_json::to_value(bad).unwrap());
        assert!(read.unwrap_err().to_string().contains(why), "{why}");
    }
    let unknown = r#"[{"name":"a","blob":{"hash":"00","bytes":1},"more":1}]"#;
    assert!(serde_json::from_str::<SourceFiles>(unknown).is_err());
}

/// Old journals have no such field, and a tree without sources writes none.
#[test]
fn the_journal_has_the_sources_once_and_nothing_if_there_are_none() {
    for files in [vec![], vec![file("tree.yaml", 3), file("kept.json", 0)]] {
        let sources = SourceFiles::new(files.clone()).unwrap();
        let mut play = Scenario::seed();
        play.must(Start { sources: sources.clone(), ..Start::new(definition("root turns=5")) });
        play.must(Adjust { parallel_max: Some(3), sources: sources.clone(), ..NOTHING });
        let started = play.batches()[0].clone();
        let adjusted = play.batches().last().unwrap().clone();
        for batch in [started, adjusted] {
            assert_eq!(batch.events[0].sources(), &files[..]);
            let blobs: Vec<&BlobRef> = files.iter().map(|file| &file.blob).collect();
            assert_eq!(blobs_of(&batch.events[0]), blobs);
            let bytes = batch.clone().encode().unwrap();
            assert_eq!(Batch::decode(bytes.bytes()).unwrap(), batch);
            let text = String::from_utf8(bytes.bytes().to_vec()).unwrap();
            assert_eq!(text.matches("\"sources\"").count(), usize::from(!files.is_empty()), "{text}");
        }
    }
}

/// A change of the sources alone is a change.
#[test]
fn a_tree_is_adjusted_by_its_sources_alone() {
    let mut play = Scenario::seed();
    play.must(Start::new(definition("root turns=5")));
    let sources = SourceFiles::new(vec![file("exec.json", 2)]).unwrap();
    play.must(Adjust { sources, ..NOTHING });
    let last = play.batches().last().unwrap().events[0].clone();
    assert!(matches!(&last, Event::TreeAdjusted(adjusted) if adjusted.sources.len() == 1), "{last:?}");
}
