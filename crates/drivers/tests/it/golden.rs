//! Journals that earlier versions wrote: they fold, and what was a step once stays that step.

use std::path::Path;
use std::sync::Arc;

use spinney_journal::Batch;
use spinney_kernel::primitives::{Seq, TreeId};
use spinney_kernel::record::{Event, Outcome};
use spinney_testkit::TestHome;
use spinney_testkit::spinney::bus::RecordedEvent;

use crate::{Ran, files};

/// Every golden journal, by name.
fn journals() -> Vec<(String, Ran)> {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/golden");
    let texts =
        files(&all).into_iter().filter(|(path, _)| path.extension().is_some_and(|ext| ext == "jsonl"));
    let read = |(path, text): (std::path::PathBuf, Vec<u8>)| {
        let text = String::from_utf8(text).unwrap_or_else(|error| panic!("{error}"));
        let batch =
            |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let batches = text.lines().map(batch);
        let events = batches
            .flat_map(|Batch { input, events }| events.into_iter().map(move |event| (input.now, event)));
        let recorded = events
            .zip(1..)
            .map(|((at, event), seq)| RecordedEvent { seq: Seq(seq), at, actor: None, event })
            .collect();
        let journal = Arc::clone(TestHome::new("rules: [ { say: Nothing. } ]").journal());
        (path.display().to_string(), Ran { tree: TreeId::new([9; 16]), recorded, journal })
    };
    texts.map(read).collect()
}

/// A step is final when it is there: whatever happens later changes and renumbers none of those before.
#[test]
fn what_was_a_step_stays_that_step() {
    let journals = journals();
    assert!(journals.len() >= 6);
    for (name, ran) in journals {
        let all = ran.all_steps();
        assert!(all.values().any(|steps| !steps.is_empty()), "{name}");
        for events in 0..ran.recorded.len() {
            for (agent, steps) in ran.steps(events) {
                assert!(all[&agent].starts_with(&steps), "{name}: `{agent}` after {events} events");
            }
        }
    }
}

/// Whether a long output of a tool is a file, or a tool wrote some: golden journals keep no blobs, and without its bytes a file
/// cannot be written.
fn needs_bytes(ran: &Ran) -> bool {
    ran.recorded.iter().any(|recorded| {
        let is_offloaded = match &recorded.event {
            Event::CallEnded { outcome: Outcome::Done { body, .. }, .. } => body.ends().is_some(),
            _ => false,
        };
        is_offloaded || !recorded.event.files().is_empty()
    })
}

/// And on disk they are the same from wherever they are taken up.
#[test]
fn every_golden_journal_is_mended_from_anywhere() {
    let (lacking, whole): (Vec<_>, Vec<_>) = journals().into_iter().partition(|(_, ran)| needs_bytes(ran));
    // Each version of the rules since 2 has one scene with a long output, whose bytes a journal on its own lacks; since 7 there
    // is one with files.
    assert!(whole.len() >= 6 && lacking.len() <= 9);
    for (name, ran) in lacking {
        let home = tempfile::tempdir().unwrap();
        let cuts = [0, ran.recorded.len() / 3, ran.recorded.len() / 2, ran.recorded.len()];
        let written = cuts.into_iter().map(|cut| ran.write_after(home.path(), Seq(cut as u64)));
        let fault = written.filter_map(Result::err).next().unwrap().to_string();
        assert!(fault.contains("the journal has no blob"), "{name}: {fault}");
    }
    for (name, ran) in whole {
        let home = tempfile::tempdir().unwrap();
        for cut in [0, ran.recorded.len() / 3, ran.recorded.len() / 2, ran.recorded.len()] {
            ran.write_after(home.path(), Seq(cut as u64)).unwrap();
            assert_eq!(files(home.path()), ran.files(home.path()), "{name} after {cut}");
        }
    }
}
