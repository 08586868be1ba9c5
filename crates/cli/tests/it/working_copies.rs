//! Working copies in whole trees: the example, what the user has to allow, and what becomes of changes when a tree is
//! cancelled, killed and removed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::test_folder::{Playing, TestFolder, steady};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

/// Git as a user has it.
fn git(folder: &Path, words: &[&str]) -> String {
    let ran = Command::new("git")
        .args(["-c", "user.name=User", "-c", "user.email=user@example.com", "-c", "init.defaultBranch=main"])
        .args(words)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(ran.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

/// A repository with a test that fails.
fn repo(stage: &TestFolder) -> PathBuf {
    let repo = stage.folder().canonicalize().unwrap().join("repo");
    fs::create_dir(&repo).unwrap();
    git(&repo, &["init", "-q"]);
    fs::write(repo.join("add.sh"), "echo $(($1 - $2))\n").unwrap();
    let test =
        "test \"$(sh add.sh 2 3)\" = 5 && echo ok || { echo \"2 + 3 is $(sh add.sh 2 3)\"; exit 1; }\n";
    fs::write(repo.join("test.sh"), test).unwrap();
    fs::write(repo.join(".gitignore"), "*.log\n").unwrap();
    git(&repo, &["add", "-A"]);
    git(&repo, &["commit", "-q", "-m", "base"]);
    repo
}

/// A tree of one agent with a working copy, which runs one command.
fn tree(stage: &TestFolder, command: &str) -> String {
    let call = json!([{ "tool": "run_command", "args": { "command": command } }]);
    let script =
        format!("rules:\n  - {{ when: {{ turn: 1 }}, call: {call} }}\n  - {{ say: '{{{{ last }}}}' }}\n");
    let tree = stage.tree("run_command", &script);
    let text = fs::read_to_string(&tree).unwrap();
    fs::write(&tree, text.replace("tools: [run_command]", "tools: [run_command], working_copy: repo"))
        .unwrap();
    tree
}

fn allowed(repo: &Path) -> String {
    format!("copy:{}", repo.display())
}

/// The branch of `lead` in the last tree.
fn branch(stage: &TestFolder) -> String {
    let trees = stage.spinney(&["ps", "--json"]).json();
    format!("spinney/{}/lead", trees[0]["tree"].as_str().unwrap())
}

/// The example: the tests really run, the change becomes a branch, and the printed command merges it.
#[test]
fn the_example_fixes_a_test_in_a_working_copy() {
    let stage = TestFolder::new();
    let repo = repo(&stage);
    for name in ["fix-tests.yaml", "fix-tests.script.yaml"] {
        fs::copy(format!("{EXAMPLES}/{name}"), stage.folder().join(name)).unwrap();
    }
    let run = stage.spinney(&["run", "fix-tests.yaml", "--json", "--allow-box", &allowed(&repo)]);
    assert_eq!(run.code, Some(0), "{}{}", run.out, run.err);
    let result = run.result();
    assert_eq!(
        result["output"],
        json!("The coder reports: The tests pass. `add.sh` subtracted; it adds now.")
    );
    let exits: Vec<Value> = run.json().iter().map(|event| event["outcome"]["exit"].clone()).collect();
    let codes: Vec<&Value> = exits.iter().filter(|exit| exit.is_object()).collect();
    assert_eq!(codes, [&json!({ "code": 1 }), &json!({ "code": 0 })]);
    let [made] = result["branches"].as_array().unwrap().as_slice() else { panic!("{result}") };
    assert_eq!(made["repository"], json!(repo.to_str().unwrap()));
    assert_eq!(git(&repo, &["status", "--short"]), "");
    let shown = stage.spinney(&["files", "--diff"]);
    assert_eq!(shown.code, Some(0), "{}", shown.err);
    assert!(shown.out.contains("\n-echo $(($1 - $2))\n+echo $(($1 + $2))\n"), "{}", shown.out);
    let merge = shown.err.lines().find_map(|line| line.split_once("merge it with: ")).unwrap().1;
    assert_eq!(stage.shell(merge).code, Some(0));
    assert_eq!(stage.shell("cd repo && sh test.sh").out, "ok\n");
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
}

/// A file alone gets no copy of a repository: an option, the configuration or an answer allows it.
#[test]
fn a_working_copy_needs_the_users_word() {
    let stage = TestFolder::new();
    let repo = repo(&stage);
    let tree = tree(&stage, "echo new > new; cat add.sh");
    let refused = stage.spinney(&["run", &tree]);
    assert_eq!(refused.code, Some(2));
    let said = steady(&refused.err).replace(&tree, "tree.yaml").replace(repo.to_str().unwrap(), "[repo]");
    insta::assert_snapshot!(said, @"
    spinney: tree.yaml would
      - give `lead` a working copy of [repo], and make branches in it
      and you have not allowed that.
      Nothing was started. If you trust this file, add --allow-box copy:[repo]
    ");
    let ended = stage.spinney(&["run", &tree, "--allow-box", &allowed(&repo)]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let merge = format!("  merge   git -C {} merge {}\n", repo.display(), branch(&stage));
    assert!(ended.out.contains(&merge), "{}", ended.out);
    assert_eq!(stage.spinney(&["config", "add", "allow_box", &allowed(&repo)]).code, Some(0));
    assert_eq!(stage.spinney(&["run", &tree]).code, Some(0));
    // What is not a repository is refused before anything runs.
    fs::rename(repo.join(".git"), repo.join("git")).unwrap();
    let no_git = stage.spinney(&["run", &tree]);
    assert_eq!(no_git.code, Some(2), "{}", no_git.err);
    assert!(no_git.err.contains("`lead` cannot have a working copy: "), "{}", no_git.err);
    fs::remove_dir_all(&repo).unwrap();
    let gone = stage.spinney(&["check", &tree]);
    assert!(gone.out.contains("cannot open"), "{}{}", gone.out, gone.err);
}

const FOREVER: &str = "echo changed > changed; git add changed; git commit -qm committed; echo more > more; echo x > x.log; touch ran; sleep 86400";

fn until_ran(running: &mut Playing, home: &Path) -> PathBuf {
    loop {
        assert!(!running.has_ended(), "it ended before its command began");
        let trees = fs::read_dir(home.join("workspace")).into_iter().flatten().flatten();
        let copy = trees.map(|tree| tree.path().join("lead/copy")).find(|copy| copy.join("ran").exists());
        match copy {
            Some(copy) => return copy,
            None => std::thread::yield_now(),
        }
    }
}

/// G27: a cancelled tree leaves its changes as a branch, and removing it removes the copy and not the branch.
#[test]
fn g27_cancel_and_removal_lose_no_change() {
    let stage = TestFolder::new();
    let repo = repo(&stage);
    let tree = tree(&stage, FOREVER);
    let mut running = stage.play(&["run", &tree, "--allow-box", &allowed(&repo)]);
    let copy = until_ran(&mut running, stage.home());
    let live = stage.spinney(&["files", "--diff"]);
    assert!(live.out.contains("+more") && live.err.contains("has not ended"), "{}{}", live.out, live.err);
    assert_eq!(git(&repo, &["branch", "--list", "spinney/*"]), "");
    assert_eq!(stage.spinney(&["cancel", "last"]).code, Some(0));
    let ended = running.end();
    assert!(ended.out.contains("\n  merge   git -C "), "{}", ended.out);
    let branch = branch(&stage);
    assert_eq!(git(&repo, &["show", &format!("{branch}:changed")]), "changed\n");
    assert_eq!(git(&repo, &["show", &format!("{branch}:more")]), "more\n");
    let removed = stage.spinney(&["rm", "last"]);
    assert_eq!(removed.code, Some(0), "{}", removed.err);
    assert!(removed.err.contains("removed with the working copy of lead: ignored x.log"), "{}", removed.err);
    assert!(!copy.exists());
    assert_eq!(git(&repo, &["show", &format!("{branch}:more")]), "more\n");
    assert_eq!(git(&repo, &["for-each-ref", "refs/spinney"]), "");
}

/// G27: after kill -9 the changes are still there: shown, taken over when the tree is resumed, and never removed untaken.
#[test]
fn g27_kill_loses_no_change() {
    let stage = TestFolder::new();
    let repo = repo(&stage);
    let tree = tree(&stage, FOREVER);
    let mut running = stage.play(&["run", &tree, "--allow-box", &allowed(&repo)]);
    let copy = until_ran(&mut running, stage.home());
    running.kill();
    let resumed = stage.spinney(&["resume", "last", "--json", "--allow-box", &allowed(&repo)]);
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
    let branch = branch(&stage);
    assert_eq!(resumed.result()["branches"][0]["branch"], json!(branch));
    assert_eq!(git(&repo, &["show", &format!("{branch}:more")]), "more\n");
    // The repository is away: the copy stays.
    fs::rename(&repo, repo.with_file_name("away")).unwrap();
    let kept = stage.spinney(&["rm", "last"]);
    assert_ne!(kept.code, Some(0));
    assert!(kept.err.contains("--force` removes it with these changes"), "{}", kept.err);
    assert!(copy.join("more").exists());
    let forced = stage.spinney(&["rm", "last", "--force"]);
    assert_eq!(forced.code, Some(0), "{}", forced.err);
    assert!(!copy.exists());
}

/// G27: a tree that was killed and is removed without being resumed has its branch.
#[test]
fn g27_removing_a_killed_tree_takes_its_changes_over() {
    let stage = TestFolder::new();
    let repo = repo(&stage);
    let tree = tree(&stage, FOREVER);
    let mut running = stage.play(&["run", &tree, "--allow-box", &allowed(&repo)]);
    until_ran(&mut running, stage.home());
    running.kill();
    let branch = branch(&stage);
    let removed = stage.spinney(&["rm", "last", "--force"]);
    assert_eq!(removed.code, Some(0), "{}", removed.err);
    assert!(
        removed.err.contains(&format!("the changes of lead are in branch {branch} of ")),
        "{}",
        removed.err
    );
    assert_eq!(git(&repo, &["show", &format!("{branch}:changed")]), "changed\n");
    assert_eq!(git(&repo, &["show", &format!("{branch}:more")]), "more\n");
}

/// Moves the last tree to another home, and writes the file with which it comes back.
fn moved_on(stage: &TestFolder, file: &str) {
    let there = TestFolder::new();
    assert_eq!(stage.spinney(&["export", "last", "--output", file]).code, Some(0));
    assert_eq!(there.spinney(&["import", file]).code, Some(0));
    fs::remove_file(file).unwrap();
    assert_eq!(there.spinney(&["export", "last", "--output", file]).code, Some(0));
}

/// G27: a tree that comes back replaces no change that its agents had made here before it left.
#[test]
fn g27_importing_a_tree_back_loses_no_change() {
    let stage = TestFolder::new();
    let repo = repo(&stage);
    let file = tree(&stage, "echo more > more; touch ran; sleep 86400");
    let allow = allowed(&repo);
    let away = stage.folder().join("away.trees").display().to_string();
    let mut running = stage.play(&["run", &file, "--allow-box", &allow]);
    let copy = until_ran(&mut running, stage.home());
    running.kill();
    moved_on(&stage, &away);
    // Its repository is away: what only the copy has is not replaced.
    fs::rename(&repo, repo.with_file_name("elsewhere")).unwrap();
    let refused = stage.spinney(&["import", &away]);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(refused.err.contains("nothing was replaced; save what you need"), "{}", refused.err);
    assert!(copy.join("more").exists());
    fs::rename(repo.with_file_name("elsewhere"), &repo).unwrap();
    let back = stage.spinney(&["import", &away]);
    assert_eq!(back.code, Some(0), "{}", back.err);
    assert!(!copy.exists());
    let branch = branch(&stage);
    assert_eq!(git(&repo, &["show", &format!("{branch}:more")]), "more\n");
    assert_eq!(git(&repo, &["for-each-ref", "refs/spinney"]), "");
}

/// Files that are in no branch go only with `rm`, also when a tree comes back.
#[test]
fn g27_importing_a_tree_back_keeps_files_that_are_in_no_branch() {
    let stage = TestFolder::new();
    let repo = repo(&stage);
    let away = stage.folder().join("away.trees").display().to_string();
    let mut running = stage.play(&["run", &tree(&stage, FOREVER), "--allow-box", &allowed(&repo)]);
    let copy = until_ran(&mut running, stage.home());
    running.kill();
    moved_on(&stage, &away);
    let refused = stage.spinney(&["import", &away]);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(refused.err.contains("save what you need (ignored x.log), remove it with `"), "{}", refused.err);
    assert!(copy.join("x.log").exists());
    assert_eq!(git(&repo, &["show", &format!("{}:more", branch(&stage))]), "more\n");
    fs::remove_file(copy.join("x.log")).unwrap();
    let back = stage.spinney(&["import", &away]);
    assert_eq!(back.code, Some(0), "{}", back.err);
    assert!(!copy.exists());
    assert_eq!(git(&repo, &["for-each-ref", "refs/spinney"]), "");
}
