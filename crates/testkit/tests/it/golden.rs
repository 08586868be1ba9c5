//! Golden journals: journals of every earlier version are read, applied and decided again.

use std::path::PathBuf;

use spinney_kernel::record::are_decided;
use spinney_testkit::golden::{Ending, GoldenMismatch, SCENES, check, write};

/// Every golden journal with its recorded end, and its name.
fn all() -> Vec<(String, String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden");
    let mut found = Vec::new();
    for version in std::fs::read_dir(folder).unwrap() {
        for file in std::fs::read_dir(version.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "jsonl") {
                let read = |path: PathBuf| std::fs::read_to_string(path).unwrap();
                let name = path.file_stem().unwrap().to_string_lossy().into_owned();
                found.push((name, read(path.clone()), read(path.with_extension("json"))));
            }
        }
    }
    found
}

/// X8: an old journal is decided again, offline, to the same events, the same hash and the same end, agent by agent.
#[test]
fn x8_golden_journals_replay_to_the_end_they_had() {
    let golden = all();
    for (name, lines, ending) in &golden {
        let ending = check(lines, ending).unwrap_or_else(|unlike| panic!("{name}: {unlike}"));
        assert!(ending.state != "running", "{name}");
    }
    for scene in SCENES {
        assert!(golden.iter().any(|(name, ..)| name == scene.name), "no golden journal of {}", scene.name);
    }
}

/// X8: a changed word, a changed number and a missing line are all detected.
#[test]
fn x8_a_golden_journal_that_was_changed_is_found_out() {
    for (name, lines, ending) in all() {
        let expected: Ending = serde_json::from_str(&ending).unwrap();
        let (before, rest) = lines.split_once(r#""draw":"#).unwrap();
        let rest = rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
        let changed = format!(r#"{before}"draw":7{rest}"#);
        let found = check(&changed, &ending);
        assert!(
            matches!(&found, Err(GoldenMismatch::Leads { found, .. }) if found.hash != expected.hash),
            "{name}: {found:?}"
        );
        let short: Vec<&str> = lines.lines().collect();
        let short = short[..short.len() - 1].join("\n");
        assert!(matches!(check(&short, &ending), Err(GoldenMismatch::Leads { .. })), "{name}");
        let other = lines.replacen(r#""attempt":1,"held""#, r#""attempt":2,"held""#, 1);
        let found = check(&other, &ending);
        // Decisions under unknown rules are not decided again: the chain detects the change.
        let is_found = match &found {
            Err(GoldenMismatch::Decided { .. }) => are_decided(expected.rules),
            Err(GoldenMismatch::Leads { found, .. }) => {
                !are_decided(expected.rules) && found.hash != expected.hash
            }
            Ok(_) | Err(GoldenMismatch::Unreadable { .. }) => false,
        };
        assert!(is_found, "{name}: {found:?}");
    }
}

/// A scene gives the same journal in every run, so a new golden file shows only what changed.
#[test]
fn a_scene_writes_the_same_journal_each_time() {
    for scene in &SCENES {
        let play = || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
            runtime.unwrap().block_on(write(scene)).unwrap()
        };
        assert_eq!(play(), play(), "{}", scene.name);
    }
}
