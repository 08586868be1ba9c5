//! Working copies with real git: what an agent gets, what becomes of its changes, what a hostile git directory cannot do,
//! and what is left when something is killed in the middle.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use serde_json::{Value, json};
use spinney_drivers::commands::{BoxPermissions, Commands};
use spinney_drivers::files::{FileTool, Files};
use spinney_drivers::sandbox::{BoxLauncher, BoxTierChoice};
use spinney_drivers::working_copies::{
    CopyDiff, CopyTakeover, Repository, RepositoryError, TakeoverError, WorkingCopy, WorkingCopyGate,
};
use spinney_drivers::workspace::Workspaces;
use spinney_kernel::context::Origin;
use spinney_kernel::definition::{Definition, Role};
use spinney_kernel::port::AgentFolder;
use spinney_kernel::port::tool::{ToolAnswer, ToolAttempt};
use spinney_kernel::primitives::{CallId, ModelName};
use tempfile::TempDir;

use crate::boxes::{ATTEMPTS, folder, launcher, tiers};
use crate::files::TREE;

const NOW: u64 = 1_795_000_000_000;

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

fn write(path: PathBuf, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A repository and a home, with an agent that may have a copy of it.
struct Scene {
    place: TempDir,
    commands: Commands,
    launcher: BoxLauncher,
    tier: BoxTierChoice,
}

impl Scene {
    async fn new(tier: BoxTierChoice) -> Self {
        let commands = Commands::with_tier(ATTEMPTS.into(), tier);
        commands.prepare(BoxPermissions::default(), Vec::new());
        let scene = Self { place: folder(), commands, launcher: launcher().await, tier };
        let repo = scene.repo();
        fs::create_dir(&repo).unwrap();
        fs::create_dir(scene.place.path().join("home")).unwrap();
        git(&repo, &["init", "-q"]);
        write(repo.join("src/add.sh"), "echo $(($1 - $2))\n");
        write(repo.join(".gitignore"), "*.log\n/build/\n");
        symlink("src/add.sh", repo.join("link")).unwrap();
        git(&repo, &["add", "-A"]);
        git(&repo, &["commit", "-q", "-m", "base"]);
        scene
    }

    async fn each() -> Vec<Self> {
        let mut all = Vec::new();
        for tier in tiers(&launcher().await) {
            all.push(Self::new(tier).await);
        }
        assert!(!all.is_empty());
        all
    }

    fn repo(&self) -> PathBuf {
        self.place.path().canonicalize().unwrap().join("repo")
    }

    fn home(&self) -> PathBuf {
        self.place.path().join("home")
    }

    fn agent(&self) -> PathBuf {
        self.home().join("workspace").join(TREE.to_string()).join("coder")
    }

    fn copy(&self) -> PathBuf {
        self.agent().join("copy")
    }

    fn attempt(&self, args: &Value) -> ToolAttempt {
        let path = vec!["coder".parse().unwrap()].into();
        let origin = Origin { tree: TREE, path, role: "coder".parse().unwrap(), goal: "Work.".into() };
        let (origin, name) = (Arc::new(origin), Commands::tool_name());
        let mut attempt =
            ToolAttempt::new(Arc::clone(&origin), CallId(1), String::new(), name, args.to_string());
        attempt.workspace = Some(AgentFolder::new(Workspaces::root(&self.home()).into(), origin));
        attempt.working_copy = Some(self.repo().to_str().unwrap().parse().unwrap());
        attempt
    }

    async fn run(&self, line: &str) -> ToolAnswer {
        self.commands.tool().call(self.attempt(&json!({ "command": line }))).await.unwrap()
    }

    /// Calls a file tool; `!` is before an error.
    async fn file(&self, tool: FileTool, args: Value) -> String {
        let mut attempt = self.attempt(&args);
        attempt.tool = tool.name();
        let answer = Files::default().tool(tool).call(attempt).await.unwrap();
        assert!(answer.files.is_empty() && answer.removed.is_empty());
        format!("{}{}", if answer.is_error { "!" } else { "" }, answer.text)
    }

    /// Runs a line that must succeed.
    async fn done(&self, line: &str) -> String {
        let answer = self.run(line).await;
        assert!(!answer.is_error, "{line}: {}", answer.text);
        answer.text
    }

    fn found(&self) -> WorkingCopy {
        let all = WorkingCopy::all(&Workspaces::root(&self.home()), TREE).unwrap();
        let [copy] = <[WorkingCopy; 1]>::try_from(all).unwrap();
        copy.with_tier(self.tier)
    }

    async fn try_take(&self) -> Result<CopyTakeover, TakeoverError> {
        self.found().take_over(&self.launcher, NOW).await
    }

    async fn take(&self) -> CopyTakeover {
        self.try_take().await.unwrap()
    }

    async fn diff(&self) -> CopyDiff {
        self.found().diff(&self.launcher, NOW).await.unwrap()
    }

    fn branch() -> String {
        format!("spinney/{TREE}/coder")
    }

    fn shown(&self, object: &str) -> String {
        git(&self.repo(), &["show", object])
    }

    /// Everything in the repository's git directory but objects and references of ours.
    fn settled(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let all = crate::files(&self.repo().join(".git")).into_iter();
        let is_ours = |path: &Path| {
            let text = path.to_str().unwrap();
            text.contains("/.git/objects/") || text.contains("/spinney/")
        };
        all.filter(|(path, _)| !is_ours(path)).collect()
    }
}

/// G27: an agent works in a clone with its own git directory. What it committed and what it did not become a branch; the
/// repository has nothing else of it, and doing it again changes nothing.
#[tokio::test]
async fn g27_what_an_agent_changed_becomes_a_branch_of_the_repository() {
    for scene in Scene::each().await {
        let before = scene.settled();
        let first = scene.done("pwd; cat src/add.sh; git log --format=%s; git status --short").await;
        let base = git(&scene.repo(), &["rev-parse", "HEAD"]).trim().to_owned();
        let note = format!("`copy/` is your working copy, at commit {}\nexit code 0", &base[..12]);
        assert!(first.starts_with(&note), "{first}");
        let copy = scene.copy().canonicalize().unwrap();
        assert!(
            first.ends_with(&format!("[stdout]\n{}\necho $(($1 - $2))\nbase", copy.display())),
            "{first}"
        );
        let again = scene
            .done("echo 'echo $(($1 + $2))' > src/add.sh && git commit -qam 'Add, not subtract' && sh src/add.sh 2 3")
            .await;
        assert_eq!(again, "exit code 0\n[stdout]\n5");
        scene.done("echo new > 'a file' && rm link && mkdir build && echo x > build/out && echo y > run.log && chmod +x src/add.sh || true").await;
        let taken = scene.take().await;
        assert_eq!(taken.branches, [Scene::branch()]);
        assert_eq!(taken.left_out.ignored.names, ["build/", "run.log"]);
        assert_eq!(scene.shown(&format!("{}:a file", Scene::branch())), "new\n");
        assert_eq!(scene.shown(&format!("{}:src/add.sh", Scene::branch())), "echo $(($1 + $2))\n");
        let log = git(&scene.repo(), &["log", "--format=%an|%ae|%cn|%s", &Scene::branch()]);
        let name = "coder|coder@spinney.invalid";
        assert_eq!(
            log,
            format!(
                "{name}|Spinney|Uncommitted changes of coder\n{name}|coder|Add, not subtract\nUser|user@example.com|User|base\n"
            )
        );
        let files = git(&scene.repo(), &["ls-tree", "-r", "--name-only", &Scene::branch()]);
        assert_eq!(files, ".gitignore\na file\nsrc/add.sh\n");
        assert_eq!(scene.take().await, taken);
        assert_eq!(scene.settled(), before);
        assert_eq!(git(&scene.repo(), &["status", "--short"]), "");
        git(&scene.repo(), &["merge", "-q", &Scene::branch()]);
        assert_eq!(git(&scene.repo(), &["fsck", "--strict"]), "");
        // The copy is still there, with what was left out.
        assert!(scene.copy().join("build/out").exists());
    }
}

#[tokio::test]
async fn an_agent_that_changed_nothing_has_no_branch() {
    for scene in Scene::each().await {
        scene.done("true").await;
        let taken = scene.take().await;
        assert_eq!(taken.branches, Vec::<String>::new());
        assert_eq!(git(&scene.repo(), &["branch", "--list"]).trim(), "* main");
        assert_eq!(scene.diff().await.text, "");
    }
}

/// G27: the original is out of reach: of its git directory only the objects can be read, and nothing of it can be written.
#[tokio::test]
async fn g27_commands_reach_neither_the_repository_nor_its_git_directory() {
    for scene in Scene::each().await {
        let repo = scene.repo();
        write(repo.join("secret"), "not committed");
        for line in [
            "cat REPO/secret",
            "cat REPO/.git/config",
            "ls REPO/.git",
            "echo x > REPO/.git/objects/planted",
            "echo x > REPO/.git/hooks/pre-commit",
            "rm -r REPO/.git/objects",
            "git -C REPO status",
            "git push REPO HEAD:main",
            "echo '{}' > ../copy.json",
            "rm ../copy.lock",
        ] {
            let answer = scene.run(&line.replace("REPO", repo.to_str().unwrap())).await;
            assert!(answer.is_error && !answer.text.contains("not committed"), "{line}: {}", answer.text);
        }
        scene.done(&format!("ls {}/.git/objects", repo.display())).await;
        assert_eq!(git(&repo, &["fsck"]), "");
    }
}

/// Git sets configuration by changing modes, which tier 1 refuses.
const SET_CONFIG: &str = r#"set_config() { printf '[%s]\n\t%s = "%s"\n' "$1" "$2" "$3" >> .git/config; }"#;

/// G27: whatever an agent puts into its git directory, none of it runs, nothing else is read, and its files are taken over
/// as they are.
#[tokio::test]
async fn g27_a_hostile_git_directory_runs_nothing_and_leaks_nothing() {
    const TABLE: [(&str, &str); 16] = [
        (
            "hooks",
            "mkdir -p .git/hooks; for h in pre-commit post-commit reference-transaction post-index-change post-checkout; do printf '#!/bin/sh\\ntouch MARK\\n' > .git/hooks/$h; chmod 755 .git/hooks/$h; done",
        ),
        (
            "hooks by configuration",
            "set_config core hooksPath .evil; mkdir .evil; printf '#!/bin/sh\\ntouch MARK\\n' > .evil/pre-commit",
        ),
        ("a monitor", "set_config core fsmonitor 'touch MARK; false'"),
        (
            "a filter",
            "set_config 'filter \"f\"' clean 'sed s/kept/FILTERED/; touch MARK'; set_config 'filter \"f\"' required true; echo '* filter=f' > .gitattributes",
        ),
        ("an encoding", "echo '* working-tree-encoding=UTF-16 text eol=crlf ident' > .gitattributes"),
        (
            "a text conversion",
            "set_config 'diff \"d\"' textconv 'touch MARK; cat'; set_config 'diff \"d\"' command 'touch MARK'; echo '* diff=d' > .gitattributes",
        ),
        ("an include", "set_config include path SECRET"),
        ("a git file", "mv .git ../scratch/moved || mv .git $HOME/moved; echo 'gitdir: REPO/.git' > .git"),
        ("a linked git directory", "mv .git $HOME/moved; ln -s REPO/.git .git"),
        ("alternates that lead elsewhere", "echo SECRETS/.git/objects >> .git/objects/info/alternates"),
        ("a linked store", "mv .git/objects $HOME/objects; ln -s SECRETS/.git/objects .git/objects"),
        (
            "a linked reference",
            "rm -rf .git/refs/heads/spinney; ln -s SECRETS/.git/HEAD .git/HEAD2; mv -f .git/HEAD2 .git/HEAD",
        ),
        (
            "a submodule",
            "mkdir sub; git init -q sub; echo s > sub/f; printf '[submodule \"s\"]\\n\\tpath = sub\\n\\turl = SECRETS\\n' > .gitmodules",
        ),
        (
            "a commit graph and an index that lie",
            "mkdir -p .git/objects/info/commit-graphs; head -c 2000 /dev/urandom > .git/objects/info/commit-graph; head -c 500 /dev/urandom > .git/index",
        ),
        (
            "replaced objects",
            "git commit -q --allow-empty -m r; git replace HEAD HEAD~1 || true; echo x > .git/shallow",
        ),
        (
            "names",
            "mkdir 'a\nb'; echo n > 'a\nb/-rf'; echo o > ':(exclude)kept'; echo p > '*'; ln -s SECRETS/secret out",
        ),
    ];
    // Each row in one of the tiers.
    let tiers = tiers(&launcher().await);
    for ((what, line), tier) in TABLE.into_iter().zip(tiers.into_iter().cycle()) {
        let scene = Scene::new(tier).await;
        let secrets = scene.place.path().join("secrets");
        fs::create_dir(&secrets).unwrap();
        git(&secrets, &["init", "-q"]);
        write(secrets.join("secret"), "a secret of the user");
        git(&secrets, &["add", "-A"]);
        git(&secrets, &["commit", "-q", "-m", "secret"]);
        let mark = scene.place.path().join("mark");
        let before = scene.settled();
        let line = line
            .replace("MARK", mark.to_str().unwrap())
            .replace("SECRETS", secrets.to_str().unwrap())
            .replace("SECRET", secrets.join("secret").to_str().unwrap())
            .replace("REPO", scene.repo().to_str().unwrap());
        scene.done(&format!("{SET_CONFIG}\n{line}\necho kept > kept")).await;
        let diff = scene.diff().await.text;
        let taken = scene.take().await;
        let shown = scene.shown(&format!("{}:kept", Scene::branch()));
        assert_eq!((shown.as_str(), mark.exists()), ("kept\n", false), "{what}");
        assert_eq!(scene.settled(), before, "{what}");
        let all = git(&scene.repo(), &["log", "-p", "--all", "--text"]);
        assert!(!all.contains("secret of the user") && !diff.contains("secret of the user"), "{what}");
        assert_eq!(taken.branches.len(), 1, "{what}: {taken:?}");
        assert_eq!(git(&scene.repo(), &["fsck", "--strict"]), "", "{what}");
    }
}

/// G27: files that are too large, that cannot be read, and repositories in the copy stay where they are and are named.
#[tokio::test]
async fn g27_what_is_not_committed_stays_and_is_named() {
    for scene in Scene::each().await {
        scene.done("head -c 10000001 /dev/zero > large; head -c 10000000 /dev/zero > fits; mkdir -p inner/.git/objects inner/.git/refs; echo 'ref: refs/heads/main' > inner/.git/HEAD; echo x > inner/f; mkfifo pipe; true").await;
        let taken = scene.take().await;
        assert_eq!(taken.left_out.large.names, ["large"]);
        assert_eq!(taken.left_out.other.names, ["inner/"]);
        let files = git(&scene.repo(), &["ls-tree", "-r", "--name-only", &Scene::branch()]);
        assert_eq!(files, ".gitignore\nfits\nlink\nsrc/add.sh\n");
    }
}

/// What `info/exclude` names is ignored as well: that of the user's repository, and that of the copy. A link in its place is
/// not followed.
#[tokio::test]
async fn g27_what_exclude_files_name_is_not_committed() {
    for scene in Scene::each().await {
        write(scene.repo().join(".git/info/exclude"), "*.private\n");
        let said = scene
            .done("cat .git/info/exclude; echo x > a.private; echo x > a.own; echo x > a; echo '*.own' >> .git/info/exclude; git status --short")
            .await;
        assert!(said.ends_with("*.private\n?? a"), "{said}");
        let taken = scene.take().await;
        assert_eq!(taken.left_out.ignored.names, ["a.own", "a.private"]);
        let names = git(&scene.repo(), &["ls-tree", "--name-only", &taken.branches[0]]);
        assert_eq!(names, ".gitignore\na\nlink\nsrc\n");
        // Without the copy's, the user's still counts.
        scene.done("rm .git/info/exclude; ln -s ../../a .git/info/exclude").await;
        let taken = scene.take().await;
        assert_eq!(taken.left_out.ignored.names, ["a.private"]);
    }
}

/// G27: other branches, detached commits and stashes of an agent are not lost either.
#[tokio::test]
async fn g27_other_branches_of_an_agent_are_taken_over_as_well() {
    for scene in Scene::each().await {
        scene.done("git checkout -q -b idea && echo idea > idea && git add -A && git commit -qm idea && git checkout -q - && echo main > main.txt && git add -A && git commit -qm main && git pack-refs --all").await;
        let taken = scene.take().await;
        let second = format!("{}+2", Scene::branch());
        assert_eq!(taken.branches, [Scene::branch(), second.clone()]);
        assert_eq!(scene.shown(&format!("{second}:idea")), "idea\n");
        assert_eq!(scene.shown(&format!("{}:main.txt", Scene::branch())), "main\n");
        assert_eq!(scene.take().await, taken);
    }
}

/// The base is kept while a copy borrows from it, whatever becomes of the branches of the repository.
#[tokio::test]
async fn git_gc_in_the_repository_does_not_break_a_copy() {
    for scene in Scene::each().await {
        scene.done("true").await;
        let repo = scene.repo();
        git(&repo, &["checkout", "-q", "--orphan", "other"]);
        git(&repo, &["commit", "-q", "-m", "nothing in common"]);
        git(&repo, &["branch", "-D", "-q", "main"]);
        git(&repo, &["reflog", "expire", "--expire=now", "--all"]);
        git(&repo, &["gc", "-q", "--prune=now"]);
        scene.done("git fsck && git log && echo more >> src/add.sh && git commit -qam more").await;
        assert_eq!(scene.take().await.branches, [Scene::branch()]);
        scene.found().release().await.unwrap();
        assert_eq!(git(&repo, &["for-each-ref", "refs/spinney"]), "");
    }
}

#[tokio::test]
async fn a_copy_says_that_uncommitted_changes_are_not_in_it() {
    let scene = Scene::new(BoxTierChoice::Best).await;
    write(scene.repo().join("src/add.sh"), "changed\n");
    write(scene.repo().join(".git/hooks/post-checkout"), "#!/bin/sh\ntouch ../ran\n");
    git(&scene.repo(), &["config", "filter.f.clean", "touch ../../ran; cat"]);
    write(scene.repo().join(".git/info/attributes"), "* filter=f\n");
    let first = scene.done("cat src/add.sh").await;
    assert!(first.contains("; the user's uncommitted changes are not in it\n"), "{first}");
    assert!(first.ends_with("echo $(($1 - $2))"), "{first}");
    assert!(scene.found().is_without_changes());
    assert!(!scene.place.path().join("ran").exists());
}

/// A branch that the user has already is not touched.
#[tokio::test]
async fn a_branch_with_other_commits_is_left_alone() {
    let scene = Scene::new(BoxTierChoice::Best).await;
    git(&scene.repo(), &["checkout", "-q", "-b", &Scene::branch()]);
    write(scene.repo().join("mine"), "mine\n");
    git(&scene.repo(), &["add", "-A"]);
    git(&scene.repo(), &["commit", "-q", "-m", "mine"]);
    git(&scene.repo(), &["checkout", "-q", "main"]);
    scene.done("echo agent > agent").await;
    let taken = scene.take().await;
    assert_eq!(taken.branches, [format!("{}+2", Scene::branch())]);
    assert_eq!(scene.shown(&format!("{}:mine", Scene::branch())), "mine\n");
}

/// An agent that continues after it was taken over has one branch, with what it did last.
#[tokio::test]
async fn a_copy_that_is_taken_over_again_later_moves_its_branch() {
    let scene = Scene::new(BoxTierChoice::Best).await;
    scene.done("echo one > one").await;
    let first = scene.take().await;
    scene.done("echo two > two && git add two && git commit -qm two").await;
    let second = scene.take().await;
    assert_eq!(second.branches, [Scene::branch()]);
    assert_ne!(first.commit, second.commit);
    assert_eq!(scene.shown(&format!("{}:two", Scene::branch())), "two\n");
    assert_eq!(scene.shown(&format!("{}:one", Scene::branch())), "one\n");
}

/// G27: killed at any point of making it, the copy is made again; killed at any point of taking it over, that is done again
/// and gives the same branch.
#[tokio::test]
async fn g27_what_was_killed_in_the_middle_is_done_again() {
    let scene = Scene::new(BoxTierChoice::Best).await;
    write(scene.agent().join(".unfinished-copy/.git/HEAD"), "half");
    write(scene.agent().join(".unfinished-look/HEAD"), "half");
    scene.done("echo changed > changed").await;
    assert!(!scene.agent().join(".unfinished-copy").exists());
    // Before it was renamed: the record is there, the copy is not.
    let kept = scene.copy();
    fs::rename(&kept, scene.agent().join(".unfinished-copy")).unwrap();
    scene.done("echo changed > changed").await;
    assert!(kept.join("src/add.sh").exists());
    // After the branch was made and before that was recorded.
    write(scene.agent().join(".unfinished-takeover/git/HEAD"), "half");
    let first = scene.take().await;
    let record = scene.agent().join("copy.json");
    let mut text: Value = serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
    text.as_object_mut().unwrap().remove("taken").unwrap();
    fs::write(&record, text.to_string()).unwrap();
    let later = scene.found().take_over(&scene.launcher, NOW + 60_000).await.unwrap();
    assert_eq!(later, first);
    assert_eq!(later.branches, [Scene::branch()]);
    // After the pack was added and before the branch was made.
    git(&scene.repo(), &["update-ref", "-d", &format!("refs/heads/{}", Scene::branch())]);
    assert_eq!(scene.take().await, first);
}

/// G27: a command that is given up is over before its copy is taken over.
#[tokio::test]
async fn g27_a_cancelled_command_has_ended_before_its_copy_is_taken_over() {
    for scene in Scene::each().await {
        scene.done("true").await;
        let line = "i=0; while :; do i=$((i+1)); echo $i > count; echo $i > started; done";
        let call = scene.commands.tool().call(scene.attempt(&json!({ "command": line })));
        let running = tokio::spawn(call);
        while !scene.copy().join("started").exists() {
            tokio::task::yield_now().await;
        }
        running.abort();
        assert!(running.await.unwrap_err().is_cancelled());
        scene.take().await;
        let taken = scene.shown(&format!("{}:count", Scene::branch()));
        assert_eq!(taken, fs::read_to_string(scene.copy().join("count")).unwrap());
    }
}

/// G27: what cannot be taken over is an error, and stays.
#[tokio::test]
async fn g27_a_copy_that_cannot_be_taken_over_stays() {
    let scene = Scene::new(BoxTierChoice::Best).await;
    scene.done("echo mine > mine && git add -A && git commit -qm mine && rm -rf .git/objects/??").await;
    let broken = scene.try_take().await.unwrap_err();
    assert!(matches!(broken, TakeoverError::Boxed(_)), "{broken}");
    assert!(scene.copy().join("mine").exists());
    git(&scene.repo(), &["update-ref", "-d", &format!("refs/spinney/base/{TREE}/coder")]);
    let unknown = scene.try_take().await.unwrap_err();
    assert!(matches!(unknown, TakeoverError::Unknown { .. }), "{unknown}");
    fs::rename(scene.repo(), scene.place.path().join("gone")).unwrap();
    assert!(scene.try_take().await.is_err());
    assert!(scene.copy().join("mine").exists());
}

/// Only whole repositories whose git directory is theirs are copied.
#[tokio::test]
async fn a_folder_that_cannot_be_copied_is_refused_with_the_reason() {
    let scene = Scene::new(BoxTierChoice::Best).await;
    let (repo, place) = (scene.repo(), scene.repo().parent().unwrap().to_owned());
    let url = format!("file://{}", repo.display());
    git(&repo, &["commit", "-q", "--allow-empty", "-m", "two"]);
    git(&place, &["clone", "-q", "--depth", "1", &url, "shallow"]);
    git(&place, &["clone", "-q", "--shared", "repo", "borrowing"]);
    git(&place, &["clone", "-q", "--bare", "repo", "bare"]);
    git(&repo, &["config", "uploadpack.allowFilter", "true"]);
    git(&place, &["clone", "-q", "--filter=blob:none", &url, "partial"]);
    git(&repo, &["worktree", "add", "-q", "../tree"]);
    git(&place, &["init", "-q", "empty"]);
    write(place.join("stranger/.git"), &format!("gitdir: {}/.git\n", repo.display()));
    fs::create_dir(place.join("linked")).unwrap();
    symlink(repo.join(".git"), place.join("linked/.git")).unwrap();
    git(&place, &["init", "-q", "hollow"]);
    git(&place.join("hollow"), &["commit", "-q", "--allow-empty", "-m", "x"]);
    fs::rename(place.join("hollow/.git/objects"), place.join("objects")).unwrap();
    symlink(place.join("objects"), place.join("hollow/.git/objects")).unwrap();
    let open = async |name: &str| Repository::open(&place.join(name)).await;
    assert!(open("bare").await.is_ok());
    assert!(open("tree").await.is_ok());
    use RepositoryError as E;
    assert!(matches!(open("shallow").await, Err(E::Shallow { .. })));
    assert!(matches!(open("borrowing").await, Err(E::Borrows { .. })));
    assert!(matches!(open("partial").await, Err(E::Partial { .. })));
    assert!(matches!(open("empty").await, Err(E::NoCommit { .. })));
    assert!(matches!(open("stranger").await, Err(E::Elsewhere { .. })));
    assert!(matches!(open("linked").await, Err(E::Elsewhere { .. })));
    assert!(matches!(open("hollow").await, Err(E::Elsewhere { .. })));
    assert!(matches!(open("repo/src").await, Err(E::Inside { .. })));
    assert!(matches!(open("nothing").await, Err(E::Unread { .. })));
    assert!(matches!(open("home").await, Err(E::NotOne { .. })));
}

#[tokio::test]
async fn a_tree_whose_working_copy_cannot_be_made_does_not_start() {
    let scene = Scene::new(BoxTierChoice::Best).await;
    let model: ModelName = "fast".parse().unwrap();
    let definition = |path: &Path| {
        let mut role = Role::new(model.clone());
        role.turns.as_mut().unwrap().working_copy = Some(path.to_str().unwrap().parse().unwrap());
        let mut definition = Definition::new("tree", "Work.", "lead".parse().unwrap());
        definition.roles.insert("lead".parse().unwrap(), role);
        definition
    };
    let gate = WorkingCopyGate::new(Some(ATTEMPTS.into()));
    assert_eq!(gate.check(&definition(&scene.repo())).await, Ok(()));
    let refused = gate.check(&definition(&scene.repo().join("src"))).await.unwrap_err();
    assert!(refused.starts_with("`lead` cannot have a working copy: "), "{refused}");
    let unguarded = WorkingCopyGate::new(None).check(&definition(&scene.repo())).await.unwrap_err();
    assert!(unguarded.contains("guard_a_box"), "{unguarded}");
    // A bare repository has no work tree to differ from.
    let bare = scene.repo().with_file_name("bare");
    git(&scene.repo(), &["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    fs::set_permissions(bare.join("hooks"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut attempt = scene.attempt(&json!({ "command": "echo x > x" }));
    attempt.working_copy = Some(bare.to_str().unwrap().parse().unwrap());
    assert!(!scene.commands.tool().call(attempt).await.unwrap().is_error);
    scene.take().await;
    assert_eq!(git(&bare, &["show", &format!("{}:x", Scene::branch())]), "x\n");
}

/// File tools reach the copy, and neither its git directory nor the journal.
#[tokio::test]
async fn file_tools_work_in_the_copy_and_not_in_its_git_directory() {
    let scene = Scene::new(BoxTierChoice::Best).await;
    let read = scene.file(FileTool::Read, json!({ "path": "copy/src/add.sh" })).await;
    assert!(read.starts_with("`copy/` is your working copy, at commit "), "{read}");
    assert!(read.ends_with("\necho $(($1 - $2))\n"), "{read}");
    scene.done("mkdir .github && echo on > .github/ci.yml && git update-index --chmod=+x src/add.sh").await;
    fs::set_permissions(scene.copy().join("src/add.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    let edit = json!({ "path": "copy/src/add.sh", "old_text": "-", "new_text": "+" });
    assert!(scene.file(FileTool::Edit, edit).await.starts_with("replaced once\n"));
    assert_eq!(fs::metadata(scene.copy().join("src/add.sh")).unwrap().permissions().mode() & 0o777, 0o755);
    let new = json!({ "path": "copy/docs/.notes", "text": "new" });
    assert_eq!(scene.file(FileTool::Write, new).await, "wrote 3 bytes to copy/docs/.notes");
    let listed = scene.file(FileTool::List, json!({ "path": "copy" })).await;
    assert_eq!(
        listed,
        "copy/.git/\ncopy/.github/\ncopy/.github/ci.yml  3 bytes\ncopy/.gitignore  14 bytes\ncopy/docs/\ncopy/docs/.notes  3 bytes\ncopy/src/\ncopy/src/add.sh  18 bytes"
    );
    let found = scene.file(FileTool::Search, json!({ "path": "copy", "pattern": "echo" })).await;
    assert!(found.starts_with("copy/src/add.sh:1: echo $(($1 + $2))\n"), "{found}");
    assert_eq!(
        scene.file(FileTool::Delete, json!({ "path": "copy/docs/.notes" })).await,
        "deleted copy/docs/.notes"
    );
    symlink(scene.repo(), scene.copy().join("out")).unwrap();
    for (tool, args) in [
        (FileTool::Read, json!({ "path": "copy/.git/config" })),
        (FileTool::Write, json!({ "path": "copy/.git/hooks/pre-commit", "text": "x" })),
        (FileTool::Write, json!({ "path": "copy/.GIT/config", "text": "x" })),
        (FileTool::Write, json!({ "path": "copy/src/.git", "text": "x" })),
        (FileTool::Write, json!({ "path": "copy/../copy.json", "text": "x" })),
        (FileTool::Write, json!({ "path": "copy/out/planted", "text": "x" })),
        (FileTool::Write, json!({ "path": "copy", "text": "x" })),
        (FileTool::Read, json!({ "path": "copy/out/src/add.sh" })),
        (FileTool::Read, json!({ "path": "copy/link" })),
        (FileTool::Delete, json!({ "path": "copy/src" })),
        (FileTool::Delete, json!({ "path": "copy/.git/HEAD" })),
    ] {
        let said = scene.file(tool, args.clone()).await;
        assert!(said.starts_with('!'), "{args}: {said}");
    }
    let taken = scene.take().await;
    let files = git(&scene.repo(), &["ls-tree", "-r", &taken.branches[0]]);
    assert!(files.contains("100755 blob") && files.contains(".github/ci.yml"), "{files}");
}

/// G27: objects that git itself would refuse from a stranger do not get into the repository.
#[tokio::test]
async fn g27_hostile_objects_are_refused_and_the_copy_stays() {
    let scene = Scene::new(BoxTierChoice::Best).await;
    let before = scene.settled();
    let modules =
        "printf '[submodule \"s\"]\\n\\tpath = s\\n\\turl = a\\n\\tupdate = !touch /tmp/x\\n' > .gitmodules";
    scene.done(modules).await;
    let refused = scene.try_take().await.unwrap_err();
    assert!(
        matches!(refused, TakeoverError::Git(_)) && refused.to_string().contains("index-pack"),
        "{refused}"
    );
    assert_eq!(git(&scene.repo(), &["branch", "--list"]).trim(), "* main");
    assert_eq!(scene.settled(), before);
    scene.done("rm .gitmodules; echo fine > fine").await;
    assert_eq!(scene.take().await.branches, [Scene::branch()]);
}
