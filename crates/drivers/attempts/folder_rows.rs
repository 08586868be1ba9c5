//! Attempts in the folders of the user that an agent was granted, and in its working copy: shell lines, as `run_command` runs
//! them. Each must fail, with a reason that its row explains, and leave everything as it was.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use serde_json::json;
use spinney_drivers::commands::{BoxPermissions, Commands};
use spinney_drivers::folders::HiddenFolders;
use spinney_drivers::sandbox::{BoxLauncher, BoxTierChoice};
use spinney_drivers::workspace::Workspaces;
use spinney_kernel::context::Origin;
use spinney_kernel::port::tool::{ToolAnswer, ToolAttempt};
use spinney_kernel::port::{AgentFolder, FolderAccess, Rights};
use spinney_kernel::primitives::{CallId, CommandExit, TreeId};

use crate::rows::Stop;
use crate::scene::SECRET;

const TREE: TreeId = TreeId::new([8; 16]);
/// Everything here stays as it is, whatever an agent tries.
const KEPT: &str = "as it was";

/// Which folder an attempt is about, and from where it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    /// A folder that may be read.
    Readable,
    /// The working copy of a repository.
    Copy,
    /// A repository that may be written; only with namespaces.
    Writable,
}

/// `$M` is the folder of everything, `$H` the home, `$S` the hash of a secret.
pub(crate) struct FolderRow {
    pub(crate) name: &'static str,
    pub(crate) about: About,
    line: &'static str,
    stops: [Stop; 2],
}

impl FolderRow {
    pub(crate) fn stop(&self, has_namespaces: bool) -> Stop {
        self.stops[usize::from(has_namespaces)]
    }
}

const PATHS: [Stop; 2] = [Stop::Landlock, Stop::Mounts];
/// What exists only with namespaces.
const MOUNTS: [Stop; 2] = [Stop::Mounts; 2];
const FILTER: [Stop; 2] = [Stop::Filter; 2];

/// The rows that a tier has: without namespaces no writable folder is granted to commands.
pub(crate) fn all(tier: BoxTierChoice) -> Vec<FolderRow> {
    let of = |about, stops, lines: &[(&'static str, &'static str)]| {
        lines.iter().map(|(name, line)| FolderRow { name, about, line, stops }).collect::<Vec<_>>()
    };
    let mut rows = of(About::Readable, PATHS, &READABLE);
    rows.extend(of(About::Readable, [Stop::Filter, Stop::Mounts], &READABLE_MODES));
    rows.extend(of(About::Copy, PATHS, &COPY));
    if tier == BoxTierChoice::Namespaces {
        rows.extend(of(About::Writable, MOUNTS, &WRITABLE));
        rows.extend(of(About::Writable, FILTER, &TRICKS));
    }
    rows
}

const READABLE: [(&str, &str); 14] = [
    ("write a file", "echo x > $M/docs/guide.md"),
    ("add to a file", "echo x >> $M/docs/guide.md"),
    ("make a file", "echo x > $M/docs/new"),
    ("make a folder", "mkdir $M/docs/new"),
    ("remove a file", "rm -f $M/docs/guide.md"),
    ("rename a file", "mv $M/docs/guide.md $M/docs/new"),
    ("take a file away", "mv $M/docs/guide.md taken"),
    ("put a file there", "touch own; mv own $M/docs/new"),
    ("hard link into it", "touch own; ln own $M/docs/new"),
    ("hard link out of it, to write", "ln $M/docs/guide.md hard && echo x > hard"),
    ("a link that leads out", "cat $M/docs/out/secret.txt"),
    ("a new link that leads out", "ln -sf $M/other/secret.txt new; cat new"),
    ("the folder above", "cat $M/docs/../other/secret.txt"),
    ("the folder itself", "mv $M/docs $M/docs2"),
];

const READABLE_MODES: [(&str, &str); 2] =
    [("mode of a file", "chmod 777 $M/docs/guide.md"), ("mode of the folder", "chmod 777 $M/docs")];

const COPY: [(&str, &str); 26] = [
    ("read the repository's configuration", "cat $M/repo/.git/config"),
    ("write the repository's configuration", "echo x >> $M/repo/.git/config"),
    ("write a hook of the repository", "echo x > $M/repo/.git/hooks/pre-commit"),
    ("make a hook of the repository", "echo x > $M/repo/.git/hooks/post-commit"),
    ("read a file of the repository", "cat $M/repo/src/main.rs"),
    ("write a file of the repository", "echo x > $M/repo/src/main.rs"),
    ("read a reference of the repository", "cat $M/repo/.git/refs/heads/main"),
    ("move a branch of the repository", "git rev-parse HEAD > $M/repo/.git/refs/heads/main"),
    ("make a branch of the repository", "echo x > $M/repo/.git/refs/heads/new"),
    ("replace HEAD of the repository", "echo x > new; mv -f new $M/repo/.git/HEAD"),
    ("write an object of the repository", "for o in $M/repo/.git/objects/??/*; do echo x > $o; done"),
    ("make an object of the repository", "mkdir $M/repo/.git/objects/zz"),
    ("remove the objects of the repository", "rm -rf $M/repo/.git/objects/??"),
    ("alternates of the repository", "echo $M/secrets/.git/objects > $M/repo/.git/objects/info/alternates"),
    ("hard link of an object, to write", "ln $M/repo/.git/objects/??/* . && echo x > ./*"),
    (
        "alternates that lead elsewhere",
        "cp .git/objects/info/alternates $HOME/a; echo $M/secrets/.git/objects >> .git/objects/info/alternates; git cat-file -p $S; e=$?; cp $HOME/a .git/objects/info/alternates; exit $e",
    ),
    (
        "a linked store",
        "mv .git/objects $HOME/o; ln -s $M/secrets/.git/objects .git/objects; git cat-file -p $S; e=$?; rm .git/objects; mv $HOME/o .git/objects; exit $e",
    ),
    (
        "a git file that leads elsewhere",
        "mv .git $HOME/g; echo gitdir: $M/secrets/.git > .git; cat $M/secrets/.git/HEAD && git cat-file -p $S; e=$?; rm .git; mv $HOME/g .git; exit $e",
    ),
    (
        "a linked reference",
        "ln -s $M/secrets/secret .git/refs/heads/linked; cat .git/refs/heads/linked; e=$?; rm .git/refs/heads/linked; exit $e",
    ),
    (
        "a submodule of the user",
        "ls $M/secrets && git -c protocol.file.allow=always submodule add $M/secrets sub",
    ),
    ("the record of the copy", "echo x > ../copy.json"),
    ("the lock of the copy", "echo x > ../copy.lock"),
    ("the copy under another name", "mv ../copy ../copy2"),
    ("the history of the agent", "echo x > ../history/new.json"),
    ("the copy of a sibling", "cat $H/workspace/*/sibling/copy/secret.txt ../../sibling/copy/secret.txt"),
    ("the journal of the home", "cat $H/journal.db"),
];

const WRITABLE: [(&str, &str); 55] = [
    ("write the configuration of git", "echo x > .git/config"),
    ("make a hook", "echo x > .git/hooks/post-checkout"),
    ("change a hook", "echo x > .git/hooks/pre-commit"),
    ("make a folder of hooks", "mkdir .git/hooks/new"),
    ("rename .git", "mv .git .old"),
    ("rename over .git", "mkdir new.git; mv -T new.git .git; e=$?; rmdir new.git; exit $e"),
    (
        "exchange .git",
        "mkdir new.git; mv --exchange -T new.git .git 2> $HOME/e || { rmdir new.git; echo Device or resource busy >&2; exit 1; }",
    ),
    ("remove what is in .git", "rm -rf .git/config"),
    ("rename over what is in .git", "touch $HOME/x; mv -f $HOME/x .git/config"),
    ("hard link of a configuration, to write", "ln .git/config hard && echo x > hard"),
    ("link in place of a hook", "ln -sf /bin/true .git/hooks/pre-commit"),
    ("alternates", "echo $M/secrets/.git/objects > .git/objects/info/alternates"),
    ("a file of git's exclusions", "echo x > .git/info/exclude"),
    ("a submodule's git directory", "echo x > .git/modules/sub/config"),
    ("a submodule's git file", "echo gitdir: /tmp > sub/.git"),
    ("another git file for a submodule", "rm -f sub/.git"),
    ("the folder of a submodule", "mv sub sub2"),
    ("a git directory in another place", "echo x > $M/elsewhere/config"),
    ("a git file of a linked work tree", "echo gitdir: /tmp > tree/.git"),
    ("a repository without a .git", "echo x > store/bare/config"),
    ("a hook of a repository without a .git", "mkdir store/bare/hooks"),
    ("a repository without a .git in another place", "mv store/bare store/other"),
    ("a hook behind a link", "echo x > tools/linked.sh"),
    ("a configuration that is included", "echo x > more.config"),
    ("a program of a filter", "echo x > tools/clean.sh"),
    ("the folder of a program that git runs", "mv tools tools2"),
    ("settings of a build tool", "echo x > .cargo/config.toml"),
    ("settings of another agent", "mkdir .opencode/plugin"),
    ("settings of an agent", "echo x > .claude/settings.json"),
    ("rename settings", "mv .claude .old"),
    ("take a name that is kept free", "rmdir .hg"),
    ("make something in a name that is kept free", "mkdir .hg/store"),
    ("write a name that is kept free", "echo x > .envrc"),
    ("remove and make a name that is kept free", "rmdir .vscode && mkdir -p .vscode/x"),
    ("rename a name that is kept free", "mv .mcp.json x"),
    ("rename a file over a name that is kept free", "mv -T src/lib.rs .mcp.json"),
    ("rename a folder over a name that is kept free", "mv -T src .vscode"),
    ("a folder above what is kept", "mv deep deep2"),
    ("remove a folder above what is kept", "rm -rf deep/er"),
    ("remove the folder of what is kept", "rm -rf deep/er/module"),
    ("a deeper configuration of git", "echo x > deep/er/module/.git/config"),
    ("write a folder that may only be read", "echo x > vendor/lib.rs"),
    ("make a file in a folder that may only be read", "echo x > vendor/new.rs"),
    ("rename a folder that may only be read", "mv vendor vendor2"),
    ("remove in a folder that may only be read", "rm -f vendor/lib.rs"),
    ("read the home", "cat home/journal.db"),
    ("write in the home", "echo x > home/x"),
    ("rename the home", "mv home home2"),
    ("the home through its process", "cat /proc/1/root$M/repo/home/journal.db"),
    ("settings of the user that are not there", "mkdir -p settings/of/ours"),
    ("rename over settings that are not there", "mv src settings"),
    ("a link that leads out", "cat out/secret.txt"),
    ("a linked file", "cat src/secret.rs"),
    ("the folder above", "cat ../other/secret.txt"),
    ("write beside the folder", "echo x > ../other/x"),
];

/// What would undo the mounts.
const TRICKS: [(&str, &str); 3] = [
    ("a mount over .git", "mount -t tmpfs none .git"),
    ("a mount from elsewhere", "mount --bind src .git/hooks"),
    ("mounts of a new namespace", "unshare -m true"),
];

/// A user with folders, a home in one of them, and an agent.
pub(crate) struct Folders {
    root: PathBuf,
    commands: Commands,
    secret_hash: String,
}

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

impl Folders {
    pub(crate) fn new(root: &Path, launcher: BoxLauncher, tier: BoxTierChoice) -> Self {
        fs::create_dir_all(root).unwrap();
        let root = root.canonicalize().unwrap();
        for repository in ["repo", "secrets", "work/repo"] {
            fs::create_dir_all(root.join(repository)).unwrap();
            git(&root.join(repository), &["init", "-q"]);
        }
        let kept = [
            "repo/src/main.rs",
            "repo/.git/hooks/pre-commit",
            "work/repo/.git/hooks/pre-commit",
            "work/repo/.git/modules/sub/HEAD",
            "work/repo/.claude/settings.json",
            "work/repo/src/lib.rs",
            "work/repo/vendor/lib.rs",
            "work/repo/store/bare/HEAD",
            "work/repo/store/bare/config",
            "work/repo/store/bare/objects/x",
            "work/repo/store/bare/refs/x",
            "work/repo/more.config",
            "work/repo/tools/linked.sh",
            "work/repo/tools/clean.sh",
            "work/repo/deep/er/module/.git/config",
            "work/repo/home/journal.db",
            "work/other/secret.txt",
            "work/secrets/.git/objects/x",
            "work/elsewhere/config",
            "docs/guide.md",
            "other/secret.txt",
        ];
        for path in kept {
            let (path, text) = (root.join(path), if path.ends_with("secret.txt") { SECRET } else { KEPT });
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::write(root.join("secrets/secret"), SECRET).unwrap();
        let work = root.join("work/repo");
        for (folder, names) in [("sub", "../.git/modules/sub"), ("tree", "../../elsewhere")] {
            fs::create_dir_all(work.join(folder)).unwrap();
            fs::write(work.join(folder).join(".git"), format!("gitdir: {names}\n")).unwrap();
        }
        let led = "[include]\n\tpath = ../more.config\n[filter \"x\"] clean = sh tools/clean.sh %f\n";
        fs::write(work.join(".git/config"), led).unwrap();
        symlink("../../tools/linked.sh", work.join(".git/hooks/post-merge")).unwrap();
        symlink("../other", root.join("docs/out")).unwrap();
        symlink("../other", work.join("out")).unwrap();
        symlink("../../other/secret.txt", work.join("src/secret.rs")).unwrap();
        for repository in ["repo", "secrets"] {
            git(&root.join(repository), &["add", "-A"]);
            git(&root.join(repository), &["commit", "-q", "-m", "base"]);
        }
        let secret_hash = git(&root.join("secrets"), &["rev-parse", "HEAD:secret"]).trim().to_owned();
        let home = work.join("home");
        let sibling = home.join("workspace").join(TREE.to_string()).join("sibling/copy");
        fs::create_dir_all(&sibling).unwrap();
        fs::write(sibling.join("secret.txt"), SECRET).unwrap();
        // Only the kernel keeps an agent from it.
        fs::set_permissions(&work, fs::Permissions::from_mode(0o755)).unwrap();
        let hidden = HiddenFolders::new([home, work.join("settings/of/ours")]);
        let commands = Commands::with_launcher(launcher, tier).hiding(hidden);
        commands.prepare(BoxPermissions::default(), Vec::new());
        Self { root, commands, secret_hash }
    }

    fn home(&self) -> PathBuf {
        self.root.join("work/repo/home")
    }

    fn attempt(&self, about: About, line: &str) -> ToolAttempt {
        let path = vec!["lead".parse().unwrap()].into();
        let origin =
            Arc::new(Origin { tree: TREE, path, role: "lead".parse().unwrap(), goal: "Work.".into() });
        let args = json!({ "command": line }).to_string();
        let name = Commands::tool_name();
        let mut attempt = ToolAttempt::new(Arc::clone(&origin), CallId(1), String::new(), name, args);
        attempt.workspace = Some(AgentFolder::new(Workspaces::root(&self.home()).into(), origin));
        attempt.rights = match about {
            About::Readable => Rights::none().with_folder(self.root.join("docs"), FolderAccess::Read),
            About::Copy => Rights::none(),
            About::Writable => Rights::none()
                .with_folder(self.root.join("work/repo"), FolderAccess::Write)
                .with_folder(self.root.join("work/repo/vendor"), FolderAccess::Read),
        };
        if about == About::Copy {
            attempt.working_copy = Some(self.root.join("repo").to_str().unwrap().parse().unwrap());
        }
        attempt
    }

    /// Makes an attempt, and says what stopped it; an error is what it did.
    pub(crate) async fn try_row(&self, row: &FolderRow) -> Result<String, String> {
        let before = self.kept();
        // The variables mean the folders as the row has them; the user's repository is in another one if it may be written.
        let (top, folder) = match row.about {
            About::Readable => (self.root.clone(), "$HOME"),
            About::Copy => (self.root.clone(), "."),
            About::Writable => (self.root.join("work"), "$M/repo"),
        };
        let (top, home) = (top.display(), self.home());
        let line = format!(
            "export M={top} H={} S={}; cd {folder} || exit 99; ( {} ); e=$?; [ $e != 0 ] || echo OUT; exit $e",
            home.display(),
            self.secret_hash,
            row.line
        );
        let answer = self.commands.tool().call(self.attempt(row.about, &line)).await.unwrap();
        let after = self.kept();
        let changed: Vec<&PathBuf> = before
            .iter()
            .chain(&after)
            .filter(|(path, _)| before.get(*path) != after.get(*path))
            .map(|(path, _)| path)
            .collect();
        if !changed.is_empty() {
            return Err(format!("changed {changed:?}: {}", answer.text));
        }
        if answer.text.contains(SECRET) {
            return Err("the secret was read".to_owned());
        }
        match answer.exit {
            Some(CommandExit::Code(code)) if code != 0 && code != 99 => reason(&answer),
            _ => Err(answer.text),
        }
    }

    /// Everything that no attempt may change, with its bytes, links and modes.
    fn kept(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        let ours = self.home().join("workspace").join(TREE.to_string()).join("lead");
        let mut open = vec![self.root.clone()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let about = path.symlink_metadata().unwrap();
                if path == ours || path.ends_with("refs/spinney") {
                    continue;
                }
                let mut bytes = about.permissions().mode().to_be_bytes().to_vec();
                if about.is_symlink() {
                    bytes.extend(fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes());
                } else if about.is_dir() {
                    open.push(path.clone());
                } else {
                    bytes.extend(fs::read(&path).unwrap());
                }
                found.insert(path, bytes);
            }
        }
        found
    }
}

/// The name of the error that a program printed last.
fn reason(answer: &ToolAnswer) -> Result<String, String> {
    let names = [
        ("Permission denied", "EACCES"),
        ("Operation not permitted", "EPERM"),
        ("must be superuser", "EPERM"),
        ("Read-only file system", "EROFS"),
        ("No such file or directory", "ENOENT"),
        ("nonexistent", "ENOENT"),
        // Git, of objects that it cannot find.
        ("Not a valid object name", "ENOENT"),
        ("not a git repository", "ENOENT"),
        ("cannot overwrite", "EISDIR"),
        ("Device or resource busy", "EBUSY"),
        ("cross-device link", "EXDEV"),
        ("Not a directory", "ENOTDIR"),
        ("Directory not empty", "ENOTEMPTY"),
        ("File exists", "EEXIST"),
        ("Is a directory", "EISDIR"),
    ];
    let last = answer.text.lines().rev().find_map(|line| {
        // What mount says of EPERM.
        if line.starts_with("mount: ") && line.contains("permission denied") {
            return Some("EPERM".to_owned());
        }
        names.iter().find(|(words, _)| line.contains(words)).map(|(_, name)| (*name).to_owned())
    });
    last.ok_or_else(|| format!("failed for no known reason: {}", answer.text))
}
