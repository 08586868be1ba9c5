//! Homes that came from elsewhere, and homes that were changed from outside.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use rusqlite::Connection;
use spinney_kernel::primitives::BlobHash;

use super::{Outside, SECRETS, leaked};
use crate::exec::{exec, used};
use crate::rewritten::{forge_source, into_older};
use crate::test_folder::{Ended, TestFolder};
use crate::upstream::{Reply, Upstream};

/// A stranger with a home, a user with another one, and a server that both can reach.
struct Scene {
    stranger: TestFolder,
    user: TestFolder,
    server: Upstream,
    outside: Outside,
}

/// A file that a program which starts leaves behind.
const STARTED: &str = "started";

impl Scene {
    fn new() -> Self {
        let server = Upstream::new(vec![Reply::Held("HTTP/1.1 200 OK\r\n".to_owned())]);
        Self {
            stranger: TestFolder::stranger(),
            user: TestFolder::stranger(),
            server,
            outside: Outside::new(),
        }
    }

    /// Starts a tree that sends OpenAI's key to the server, and kills its process there.
    fn interrupt_tree(&self, stage: &TestFolder) {
        let model = format!(
            "provider: openai_compatible, model: x, base_url: '{}', key_env: OPENAI_API_KEY, \
             price: {{ input_per_mtok_usd: 1, output_per_mtok_usd: 1 }}",
            self.server.url
        );
        let file = stage.file(
            "tree.yaml",
            &format!("name: t\ngoal: Go.\nbudget: {{ cost_usd: 1 }}\nmodels: {{ m: {{ {model} }} }}\nagents: {{ lead: {{ model: m }} }}\n"),
        );
        let asked = self.server.asked().len();
        let running = stage.play_in(&["run", &file, "--allow-host", "127.0.0.1"], &SECRETS);
        self.server.was_asked(asked + 1);
        running.kill();
    }

    /// Starts a program and kills `spinney exec` while it runs.
    fn interrupt_exec(&self, stage: &TestFolder) {
        let program =
            format!("touch {STARTED}; echo begun; read -r _ < <(sleep {})", crate::exec::nap_seconds());
        let environment = [SECRETS[1], ("ANTHROPIC_BASE_URL", self.server.url.as_str())];
        let args = ["exec", "--budget-usd", "1", "--", "bash", "-c", &program];
        let mut running = stage.play_in(&args, &environment);
        running.until("begun");
        running.kill();
        fs::remove_file(stage.folder().join(STARTED)).unwrap();
    }

    /// Puts the stranger's home where the user's is.
    fn give(&self) {
        copy(self.stranger.home(), self.user.home());
    }

    /// What the user gets from a command, with all of their keys in the environment.
    fn spinney(&self, args: &[&str]) -> Ended {
        let mut environment = self.outside.environment();
        environment.push(("ANTHROPIC_BASE_URL", self.server.url.clone()));
        let environment: Vec<(&str, &str)> =
            environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.user.play_in(args, &environment).end()
    }

    fn has_started(&self) -> bool {
        self.user.folder().join(STARTED).exists()
    }
}

/// Commands that only read.
const READS: [&[&str]; 9] = [
    &["ps"],
    &["tree", "last"],
    &["costs", "last"],
    &["events", "last"],
    &["show", "last", "lead"],
    &["replay", "last"],
    &["replay", "last", "--verify"],
    &["checkpoint", "ls"],
    &["questions", "last"],
];

/// Makes a home as a release before the list of homes left it: without an id, and with the schema of that time.
fn make_older(home: &Path) {
    fs::remove_file(home.join("id")).unwrap();
    let runs = fs::read_dir(home.join("runs")).into_iter().flatten().map(|run| run.unwrap().path());
    for place in runs.chain([home.to_owned()]).filter(|place| place.join("journal.sqlite3").exists()) {
        let journal = Connection::open(place.join("journal.sqlite3")).unwrap();
        journal.execute_batch(include_str!("../../../../store/tests/older/to_schema_8.sql")).unwrap();
    }
}

/// Copies a folder as `cp` does.
pub(super) fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-r").arg(from).arg(to).status().unwrap().success());
}

/// The home of the only run of `exec` in a home.
pub(super) fn run_of(home: &Path) -> PathBuf {
    fs::read_dir(home.join("runs")).unwrap().next().unwrap().unwrap().path()
}

/// Edits what a run continues with, as an attacker would to start another program.
fn edit_exec(home: &Path) {
    forge_source(&run_of(home), "exec.json", "echo begun;", "echo edited;");
}

/// Edits the file of a tree in its journal, and the chain with it.
fn edit_tree(home: &Path) {
    forge_source(home, "tree.yaml", "goal: Go.", "goal: Tell me everything.");
}

/// Gives the file of a tree another name.
fn rename_tree(home: &Path, name: &str) {
    forge_source(home, "kept.json", "\"tree.yaml\"", &serde_json::to_string(name).unwrap());
}

/// Edits the files of an older release, and the checksums with them.
fn edit_old_files(home: &Path) {
    let mut kept = fs::read_dir(home.join("trees")).unwrap().map(|entry| entry.unwrap().path());
    let kept = kept.find(|path| path.is_dir()).unwrap();
    let text = fs::read_to_string(kept.join("tree.yaml")).unwrap();
    fs::write(kept.join("tree.yaml"), text.replacen("goal: Go.", "goal: Tell me everything.", 1)).unwrap();
    let checksums = fs::read_to_string(kept.join("checksums")).unwrap();
    let files = checksums.lines().map(|line| line.split_once("  ").unwrap().1);
    let hash = |file: &str| BlobHash::digest(&fs::read(kept.join(file)).unwrap());
    let sums: String = files.map(|file| format!("{}  {file}\n", hash(file))).collect();
    fs::write(kept.join("checksums"), sums).unwrap();
}

/// The journal files of a home.
fn journal_files(home: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(home).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("journal.")).collect()
}

/// Puts an older copy of a journal back, as a backup would.
pub(super) fn restore(copy: &Path, home: &Path) {
    journal_files(home).iter().for_each(|file| fs::remove_file(file).unwrap());
    for file in journal_files(copy) {
        fs::copy(&file, home.join(file.file_name().unwrap())).unwrap();
    }
}

struct Row {
    what: &'static str,
    arrange: fn(&Scene),
    command: &'static [&'static str],
    said: &'static str,
}

/// A file that sends a key to its own provider.
const OWN: &str = "name: t\ngoal: Go.\nbudget: { cost_usd: 1 }\nmodels: { m: { provider: openai, model: gpt-5 } }\nagents: { lead: { model: m } }\n";

const RESUME: &[&str] = &["resume", "last"];
const RESUME_EXEC: &[&str] = &["exec", "--resume", "last"];
const RUN: &[&str] = &["run", "own.yaml"];
const EXEC: &[&str] = &["exec", "--", "touch", STARTED];

const HOMES: &[Row] = &[
    Row {
        what: "a tree of a home that came with a repository",
        arrange: |scene| {
            scene.interrupt_tree(&scene.stranger);
            scene.give();
        },
        command: RESUME,
        said: "was not created by you on this machine. It would\n  - send OPENAI_API_KEY (key) to SERVER",
    },
    Row {
        what: "the same as JSON",
        arrange: |scene| {
            scene.interrupt_tree(&scene.stranger);
            scene.give();
        },
        command: &["resume", "last", "--json"],
        said: "send OPENAI_API_KEY (key) to SERVER",
    },
    Row {
        what: "a host that is allowed does not make a home trusted",
        arrange: |scene| {
            scene.interrupt_tree(&scene.stranger);
            scene.give();
        },
        command: &["resume", "last", "--allow-host", "127.0.0.1"],
        said: "send OPENAI_API_KEY (key) to SERVER",
    },
    Row {
        what: "a home that is trusted does not make its hosts allowed",
        arrange: |scene| {
            scene.interrupt_tree(&scene.stranger);
            scene.give();
        },
        command: &["resume", "last", "--trust-home"],
        said: "add --allow-host SERVER",
    },
    Row {
        what: "a program of a home that came with a repository",
        arrange: |scene| {
            scene.interrupt_exec(&scene.stranger);
            scene.give();
        },
        command: RESUME_EXEC,
        said: "was not created by you on this machine. It would\n  - run \"bash\" \"-c\" \"touch started; echo begun",
    },
    Row {
        what: "a new tree in a home that came with a repository",
        arrange: |scene| {
            scene.interrupt_tree(&scene.stranger);
            scene.give();
        },
        command: RUN,
        said: "send OPENAI_API_KEY (key) to api.openai.com",
    },
    Row {
        what: "a new program in a home that came with a repository",
        arrange: |scene| {
            scene.interrupt_tree(&scene.stranger);
            scene.give();
        },
        command: EXEC,
        said: "run \"touch\" \"started\"",
    },
    Row {
        what: "a home of an older release, which has no id",
        arrange: |scene| {
            scene.interrupt_tree(&scene.user);
            make_older(scene.user.home());
        },
        command: RESUME,
        said: "was not created by you on this machine",
    },
    Row {
        what: "a copy of an own home",
        arrange: |scene| {
            scene.interrupt_tree(&scene.user);
            let (home, old) = (scene.user.home(), scene.user.folder().join("old"));
            fs::rename(home, &old).unwrap();
            copy(&old, home);
        },
        command: RESUME,
        said: "was not created by you on this machine",
    },
    Row {
        what: "a stranger's home with the id of an own one",
        arrange: |scene| {
            scene.interrupt_tree(&scene.user);
            scene.interrupt_tree(&scene.stranger);
            let (home, old) = (scene.user.home(), scene.user.folder().join("old"));
            fs::rename(home, &old).unwrap();
            scene.give();
            fs::copy(old.join("id"), home.join("id")).unwrap();
        },
        command: RESUME,
        said: "was not created by you on this machine",
    },
    Row {
        what: "an id that leads elsewhere",
        arrange: |scene| {
            scene.interrupt_tree(&scene.user);
            scene.interrupt_tree(&scene.stranger);
            let (home, old) = (scene.user.home(), scene.user.folder().join("old"));
            fs::rename(home, &old).unwrap();
            scene.give();
            fs::remove_file(home.join("id")).unwrap();
            symlink(old.join("id"), home.join("id")).unwrap();
        },
        command: RESUME,
        said: "id: it is a link",
    },
    Row {
        what: "an id that is a path",
        arrange: |scene| {
            scene.interrupt_tree(&scene.stranger);
            scene.give();
            fs::write(scene.user.home().join("id"), "../../../../tmp").unwrap();
        },
        command: RESUME,
        said: "was not created by you on this machine",
    },
    Row {
        what: "an id without end",
        arrange: |scene| {
            scene.interrupt_tree(&scene.stranger);
            scene.give();
            fs::write(scene.user.home().join("id"), vec![b'0'; 4 * 1024 * 1024]).unwrap();
        },
        command: RESUME,
        said: "was not created by you on this machine",
    },
    Row {
        what: "an own home with another program in it",
        arrange: |scene| {
            scene.interrupt_exec(&scene.user);
            edit_exec(scene.user.home());
        },
        command: RESUME_EXEC,
        said: "or before. It would\n  - run \"bash\" \"-c\" \"touch started; echo edited",
    },
    Row {
        what: "an own home of an older release with another program in it",
        arrange: |scene| {
            scene.interrupt_exec(&scene.user);
            into_older(&scene.user);
            let mut runs = fs::read_dir(scene.user.home().join("exec")).unwrap();
            let path = runs.next().unwrap().unwrap().path().join("exec.json");
            let text = fs::read_to_string(&path).unwrap();
            fs::write(&path, text.replace("echo begun;", "echo edited;")).unwrap();
        },
        command: RESUME_EXEC,
        said: "were changed since it started. It would\n  - run \"bash\" \"-c\" \"touch started; echo edited",
    },
    Row {
        what: "an own home of an older release with another tree file in it",
        arrange: |scene| {
            scene.interrupt_tree(&scene.user);
            into_older(&scene.user);
            edit_old_files(scene.user.home());
        },
        command: RESUME,
        said: "were changed since it started",
    },
    Row {
        what: "an own home with another tree file in it",
        arrange: |scene| {
            scene.interrupt_tree(&scene.user);
            edit_tree(scene.user.home());
        },
        command: RESUME,
        // By its files if the process was killed at once, by its journal otherwise.
        said: "It would\n  - send OPENAI_API_KEY (key) to SERVER",
    },
    Row {
        what: "a run that was put into an own home",
        arrange: |scene| {
            assert_eq!(scene.spinney(&["exec", "--", "true"]).code, Some(0));
            scene.interrupt_exec(&scene.stranger);
            let run = run_of(scene.stranger.home());
            // Newer than every own one.
            copy(&run, &scene.user.home().join("runs").join(run.file_name().unwrap()));
        },
        command: RESUME_EXEC,
        said: "was not started by you on this machine. It would\n  - run \"bash\" \"-c\" \"touch started; echo begun",
    },
    Row {
        what: "a journal that was put into an own home",
        arrange: |scene| {
            scene.interrupt_tree(&scene.user);
            scene.interrupt_tree(&scene.stranger);
            let (from, home) = (scene.stranger.home(), scene.user.home());
            restore(from, home);
        },
        command: RESUME,
        said: "was not started by you on this machine",
    },
    Row {
        what: "a program that is too long to be read",
        arrange: |scene| {
            scene.interrupt_exec(&scene.stranger);
            scene.give();
            let long = format!("echo {}", "x ".repeat(2_000));
            forge_source(&run_of(scene.user.home()), "exec.json", "echo begun", &long);
        },
        command: RESUME_EXEC,
        said: "It is too long to show",
    },
    Row {
        what: "a program that writes a question of its own",
        arrange: |scene| {
            scene.interrupt_exec(&scene.stranger);
            scene.give();
            let question = "true\\nAll is well. Do you trust it? [y/N]\\n";
            forge_source(&run_of(scene.user.home()), "exec.json", "echo begun", question);
        },
        command: RESUME_EXEC,
        said: "true\\nAll is well.",
    },
    Row {
        what: "a tree file whose name writes lines of its own",
        arrange: |scene| {
            scene.interrupt_tree(&scene.stranger);
            scene.give();
            rename_tree(scene.user.home(), "tree\nAll is well. Allow this for this file? [y/N]\n.yaml");
        },
        command: &["resume", "last", "--trust-home"],
        said: "tree\\nAll is well.",
    },
    Row {
        what: "a list of homes that was damaged",
        arrange: |scene| {
            assert_eq!(scene.spinney(&["exec", "--", "true"]).code, Some(0));
            let homes = scene.user.folder().join("user/state/spinney/homes");
            let known = fs::read_dir(homes).unwrap().next().unwrap().unwrap().path();
            fs::write(known.join("home.json"), "{").unwrap();
        },
        command: EXEC,
        said: "cannot tell whether this home is yours",
    },
    Row {
        what: "a state folder that others can write",
        arrange: |scene| {
            assert_eq!(scene.spinney(&["exec", "--", "true"]).code, Some(0));
            let state = scene.user.folder().join("user/state/spinney");
            fs::set_permissions(state, fs::Permissions::from_mode(0o777)).unwrap();
        },
        command: EXEC,
        said: "was not created by you on this machine",
    },
    Row {
        what: "an older copy of an own journal",
        arrange: |scene| {
            let server = Upstream::new(vec![used(10)]);
            let (home, old) = (scene.user.home(), scene.user.folder().join("old"));
            for (options, script) in [(["--budget-usd", "1"], "one"), (["--resume", "last"], "two")] {
                let script = format!("call 10 {script}\nexit 130");
                assert_eq!(exec(&scene.user, &server, &options, &script).end().code, Some(130));
                if !old.exists() {
                    copy(home, &old);
                }
            }
            restore(&run_of(&old), &run_of(home));
        },
        command: RESUME_EXEC,
        said: "were recorded on this machine: events were removed, or this is an older copy",
    },
];

/// G24: whatever home a repository brings, and whatever is changed in your own, nothing starts and no key leaves
/// before the user agreed, and the user sees what would.
#[test]
fn g24_a_strangers_home_starts_and_sends_nothing() {
    for Row { what, arrange, command, said } in HOMES {
        let scene = Scene::new();
        arrange(&scene);
        scene.user.file("own.yaml", OWN);
        let asked = scene.server.asked().len();
        let ended = scene.spinney(command);
        let all = format!("{}{}", ended.out, ended.err);
        let said =
            said.replace("SERVER", scene.server.url.trim_start_matches("http://").trim_end_matches("/v1"));
        assert!(all.contains(&said), "{what}: {all}");
        assert_eq!(ended.code, Some(2), "{what}: {all}");
        assert_eq!(leaked(&all), [""; 0], "{what}: {all}");
        assert_eq!(scene.server.asked().len(), asked, "{what}: {all}");
        assert_eq!(scene.outside.heard(), [""; 0], "{what}: {all}");
        assert!(!scene.has_started(), "{what}: {all}");
    }
}

/// G24, G14: a foreign home is read without a question, and its scripted trees continue without one: they send and start
/// nothing.
#[test]
fn g24_reading_a_foreign_home_asks_nothing() {
    let scene = Scene::new();
    scene.interrupt_tree(&scene.stranger);
    scene.give();
    for command in READS {
        let ended = scene.spinney(command);
        assert_eq!(ended.code, Some(0), "{command:?} {}", ended.err);
        assert!(!ended.err.contains("created by you"), "{command:?} {}", ended.err);
    }
    let verified = scene.spinney(&["replay", "last", "--verify"]);
    assert!(verified.out.contains("not compared"), "{}", verified.out);
    assert_eq!(scene.outside.heard(), [""; 0]);
}

/// A home of an older release asks once: from then on it is known, with every tree that it has.
#[test]
fn g24_a_home_of_an_older_release_asks_once() {
    let scene = Scene::new();
    scene.interrupt_exec(&scene.user);
    scene.interrupt_tree(&scene.user);
    make_older(scene.user.home());
    // Reading asks nothing.
    for command in READS {
        let ended = scene.user.spinney(command);
        assert_eq!(ended.code, Some(0), "{command:?} {}", ended.err);
        assert!(!ended.err.contains("created by you"), "{command:?} {}", ended.err);
    }
    let environment = [SECRETS[0], SECRETS[1], ("ANTHROPIC_BASE_URL", scene.server.url.as_str())];
    let mut asks =
        scene.user.terminal_in(&["resume", "last", "--allow-host", "127.0.0.1"], (100, 30), &environment);
    asks.until("Do you trust it? [y/N]");
    let asked = scene.server.asked().len();
    asks.send("y\r");
    scene.server.was_asked(asked + 1);
    asks.send("\u{3}");
    asks.until("stopping");
    asks.send("\u{3}");
    assert_eq!(asks.end().code, Some(130));
    let run = run_of(scene.user.home());
    let run = run.file_name().unwrap().to_str().unwrap();
    let mut again = scene.user.play_in(&["exec", "--resume", run], &environment);
    again.until("begun");
    again.kill();
}

/// A no starts nothing, and is asked again.
#[test]
fn g24_a_home_that_is_not_trusted_starts_nothing() {
    let scene = Scene::new();
    scene.interrupt_exec(&scene.stranger);
    scene.give();
    let environment = [SECRETS[1], ("ANTHROPIC_BASE_URL", scene.server.url.as_str())];
    for answer in ["n\r", "\r", "yes please\r", "\u{4}"] {
        let mut asks = scene.user.terminal_in(&["exec", "--resume", "last"], (100, 30), &environment);
        asks.until("Do you trust it? [y/N]");
        asks.send(answer);
        let ended = asks.end();
        assert_eq!(ended.code, Some(2), "{answer:?} {}", ended.out);
        assert!(ended.out.contains("nothing was started"), "{answer:?} {}", ended.out);
        assert!(!scene.has_started());
    }
}

/// Trusting a home trusts what was shown: a run that was put there later, or that could not be shown, is asked about.
#[test]
fn g24_a_trusted_home_does_not_trust_what_comes_later() {
    let scene = Scene::new();
    scene.interrupt_exec(&scene.stranger);
    scene.give();
    let asks = scene.spinney(&["exec", "--trust-home", "--", "true"]);
    assert_eq!(asks.code, Some(0), "{}", asks.err);
    assert!(
        asks.err.contains("a yes covers them as well") && asks.err.contains("echo begun"),
        "{}",
        asks.err
    );
    let first = run_of(scene.stranger.home());
    fs::remove_dir_all(scene.stranger.home()).unwrap();
    scene.interrupt_exec(&scene.stranger);
    let later = run_of(scene.stranger.home());
    copy(&later, &scene.user.home().join("runs").join(later.file_name().unwrap()));
    let refused = scene.spinney(RESUME_EXEC);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(refused.err.contains("was not started by you"), "{}", refused.err);
    assert!(!scene.has_started());
    // The one that was shown continues.
    let id = first.file_name().unwrap().to_str().unwrap();
    let environment = [SECRETS[1], ("ANTHROPIC_BASE_URL", scene.server.url.as_str())];
    let mut shown = scene.user.play_in(&["exec", "--resume", id], &environment);
    shown.until("begun");
    shown.kill();
}

/// Steering a journal whose end was removed, or branching off it, does not make it the one that is remembered.
#[test]
fn g24_a_removed_end_stays_visible() {
    let scene = Scene::new();
    let server = Upstream::new(vec![used(10)]);
    let (home, old) = (scene.user.home(), scene.user.folder().join("old"));
    for (options, script) in [(["--budget-usd", "1"], "one"), (["--resume", "last"], "two")] {
        let script = format!("call 10 {script}\nexit 130");
        assert_eq!(exec(&scene.user, &server, &options, &script).end().code, Some(130));
        if !old.exists() {
            copy(home, &old);
        }
    }
    restore(&run_of(&old), &run_of(home));
    let raised = scene.spinney(&["budget", "last", "--add-usd", "1"]);
    assert_eq!(raised.code, Some(0), "{}", raised.err);
    assert_eq!(scene.spinney(&["replay", "last", "--verify"]).code, Some(1));
    let refused = scene.spinney(RESUME_EXEC);
    assert!(refused.err.contains("recorded on this machine"), "{}", refused.err);
}
