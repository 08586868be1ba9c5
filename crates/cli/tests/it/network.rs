//! Hosts in whole trees: a file that names one is asked about, and every view shows it.

use std::fs;

use crate::test_folder::TestFolder;

const HOSTS: &str = "[docs.example.org, '*.example.net:8443']";

fn tree(stage: &TestFolder) -> String {
    let script = "rules:\n  - { say: done }\n";
    let tree = stage.tree("read_file", script);
    let text = fs::read_to_string(&tree).unwrap();
    let with = text.replacen("tools: [read_file]", &format!("tools: [read_file], network: {HOSTS}"), 1);
    assert_ne!(text, with, "{text}");
    fs::write(&tree, with).unwrap();
    tree
}

/// G26 (what a file says): a file alone connects to nothing, and the refusal shows every host with its remedy.
#[test]
fn g26_hosts_of_a_file_are_asked_for_first() {
    let stage = TestFolder::new();
    let tree = tree(&stage);
    let refused = stage.spinney(&["run", &tree]);
    assert_ne!(refused.code, Some(0));
    for said in [
        "let tools of `lead` connect to *.example.net:8443",
        "let tools of `lead` connect to docs.example.org",
        "--allow-host docs.example.org --allow-host '*.example.net:8443'",
    ] {
        assert!(refused.err.contains(said), "{said}: {}", refused.err);
    }
    let one = stage.spinney(&["run", &tree, "--allow-host", "docs.example.org"]);
    assert_ne!(one.code, Some(0));
    assert!(!one.err.contains("docs.example.org"), "{}", one.err);
    for allowed in ["*.example.net", "*.example.net:8443"] {
        let run = stage.spinney(&["run", &tree, "--allow-host", "docs.example.org", "--allow-host", allowed]);
        assert_eq!(run.code, Some(0), "{}", run.err);
    }
    let prompt = stage.spinney(&["show", "lead"]).out;
    assert!(prompt.contains("- *.example.net:8443") && prompt.contains("- docs.example.org"), "{prompt}");
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
}

/// What the configuration allows, and what `check` and `--explain` show.
#[test]
fn hosts_are_allowed_in_the_configuration_and_shown() {
    let stage = TestFolder::new();
    let tree = tree(&stage);
    let check = stage.spinney(&["check", &tree]);
    assert!(check.out.contains("connects to: docs.example.org, *.example.net:8443"), "{}", check.out);
    assert!(format!("{}{}", check.out, check.err).contains("--allow-host docs.example.org"), "{}", check.err);
    let explained = stage.spinney(&["run", &tree, "--explain"]);
    assert!(explained.out.contains("docs.example.org"), "{}", explained.out);
    for host in ["docs.example.org:80", "docs.example.org:443"] {
        assert_eq!(stage.spinney(&["config", "add", "allow_hosts", host]).code, Some(0));
        assert_ne!(stage.spinney(&["run", &tree]).code, Some(0), "{host} is one of two ports");
    }
    let config = ["config", "add", "allow_hosts", "docs.example.org", "*.example.net"];
    assert_eq!(stage.spinney(&config).code, Some(0));
    let run = stage.spinney(&["run", &tree]);
    assert_eq!(run.code, Some(0), "{}", run.err);
}
