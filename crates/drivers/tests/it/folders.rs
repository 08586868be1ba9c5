//! Folders of the user, as file tools and commands have them: what is granted, what in it stays hidden or may only be read,
//! and ways out of it. Both are tried with the same folders, and agree.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use spinney_drivers::files::{FileTool, Files};
use spinney_drivers::folders::{HiddenFolders, check_folder};
use spinney_drivers::workspace::Workspaces;
use spinney_kernel::context::Origin;
use spinney_kernel::port::tool::{ToolAnswer, ToolAttempt};
use spinney_kernel::port::{AgentFolder, FolderAccess, Rights};
use spinney_kernel::primitives::{CallId, ToolName};
use tempfile::TempDir;

use crate::files::TREE;

/// A machine of a user: a repository that an agent may write with a folder in it that it may only read, documents that it
/// may read, and what is not for it.
pub(crate) struct Machine {
    folder: TempDir,
}

const AS_IT_WAS: &str = "as it was";

impl Machine {
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("spinney-folders-").tempdir_in("/var/tmp").unwrap();
        let machine = Self { folder };
        for path in [
            "repo/.git/config",
            "repo/.git/hooks/pre-commit",
            "repo/.claude/settings.json",
            "repo/src/main.rs",
            "repo/src/.hidden",
            "repo/vendor/lib.rs",
            "repo/deep/er/module/.git/config",
            "repo/home/journal.db",
            "docs/guide.md",
            "other/secret.txt",
        ] {
            let path = machine.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, AS_IT_WAS).unwrap();
        }
        symlink("../other", machine.path("repo/out")).unwrap();
        symlink("../../other/secret.txt", machine.path("repo/src/secret.rs")).unwrap();
        symlink(machine.path("other"), machine.path("docs/out")).unwrap();
        machine
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(below)
    }

    fn text(&self, below: &str) -> String {
        fs::read_to_string(self.path(below)).unwrap_or_else(|error| error.kind().to_string())
    }

    /// The home of the tree is in the folder that the agent may write.
    pub(crate) fn home(&self) -> PathBuf {
        self.path("repo/home")
    }

    pub(crate) fn hidden(&self) -> HiddenFolders {
        HiddenFolders::new([self.home(), self.path("repo/settings/of/ours")])
    }

    pub(crate) fn rights(&self) -> Rights {
        Rights::none()
            .with_folder(self.path("docs"), FolderAccess::Read)
            .with_folder(self.path("repo"), FolderAccess::Write)
            .with_folder(self.path("repo/vendor"), FolderAccess::Read)
    }

    pub(crate) fn attempt(&self, tool: ToolName, rights: Rights, args: &Value) -> ToolAttempt {
        let path = vec!["lead".parse().unwrap()].into();
        let origin =
            Arc::new(Origin { tree: TREE, path, role: "lead".parse().unwrap(), goal: "Work.".into() });
        let mut attempt =
            ToolAttempt::new(Arc::clone(&origin), CallId(1), String::new(), tool, args.to_string());
        attempt.workspace = Some(AgentFolder::new(Workspaces::root(&self.home()).into(), origin));
        attempt.rights = rights;
        attempt
    }

    async fn called(&self, tool: FileTool, args: Value) -> ToolAnswer {
        let attempt = self.attempt(tool.name(), self.rights(), &args);
        Files::default().hiding(self.hidden()).tool(tool).call(attempt).await.unwrap()
    }

    /// What a tool says, with `!` before it if it refused, and the machine's folder as `/m`.
    async fn says(&self, tool: FileTool, below: &str, more: Value) -> String {
        let mut args = more;
        args["path"] = json!(self.path(below));
        self.short(&self.called(tool, args).await)
    }

    fn short(&self, answer: &ToolAnswer) -> String {
        let text = answer.text.replace(&self.path("").display().to_string(), "/m/");
        format!("{}{text}", if answer.is_error { "!" } else { "" })
    }

    /// Nothing that must stay as it was has changed, and nothing was made that must not be.
    pub(crate) fn assert_kept(&self) {
        for path in [
            "repo/.git/config",
            "repo/.git/hooks/pre-commit",
            "repo/.claude/settings.json",
            "repo/vendor/lib.rs",
            "repo/deep/er/module/.git/config",
            "repo/home/journal.db",
            "docs/guide.md",
            "other/secret.txt",
        ] {
            assert_eq!(self.text(path), AS_IT_WAS, "{path}");
        }
        for path in [
            "repo/.hg",
            "repo/.envrc",
            "repo/.vscode",
            "repo/.mcp.json",
            "repo/src/.git",
            "repo/settings",
            "other/x",
        ] {
            assert!(!self.path(path).exists(), "{path}");
        }
        assert_eq!(fs::read_dir(self.path("repo/.git/hooks")).unwrap().count(), 1);
        assert_eq!(fs::read_dir(self.path("repo/vendor")).unwrap().count(), 1);
    }
}

/// Files of the user are read, listed, searched, written, edited and deleted by their absolute paths. They are not outputs.
#[tokio::test]
async fn file_tools_work_in_granted_folders() {
    let machine = Machine::new();
    let says = async |tool, below: &str, more| machine.says(tool, below, more).await;
    insta::assert_snapshot!(says(FileTool::Read, "docs/guide.md", json!({})).await, @"as it was");
    insta::assert_snapshot!(says(FileTool::Read, "repo/.git/config", json!({})).await, @"as it was");
    insta::assert_snapshot!(says(FileTool::List, "repo", json!({})).await, @r"
    /m/repo/.claude/
    /m/repo/.claude/settings.json  9 bytes
    /m/repo/.git/
    /m/repo/deep/
    /m/repo/deep/er/
    /m/repo/deep/er/module/
    /m/repo/deep/er/module/.git/
    /m/repo/src/
    /m/repo/src/.hidden  9 bytes
    /m/repo/src/main.rs  9 bytes
    /m/repo/vendor/
    /m/repo/vendor/lib.rs  9 bytes
    ");
    insta::assert_snapshot!(says(FileTool::Search, "repo", json!({ "pattern": "it was" })).await, @r"
    /m/repo/src/main.rs:1: as it was
    /m/repo/vendor/lib.rs:1: as it was
    [2 matching lines; 2 files searched]
    ");
    fs::set_permissions(machine.path("repo/src/main.rs"), fs::Permissions::from_mode(0o755)).unwrap();
    let edit = json!({ "old_text": "was", "new_text": "is" });
    insta::assert_snapshot!(says(FileTool::Edit, "repo/src/main.rs", edit).await, @r"
    replaced once
    --- /m/repo/src/main.rs
    +++ /m/repo/src/main.rs
    @@ -1 +1 @@
    -as it was
    \ No newline at end of file
    +as it is
    \ No newline at end of file
    ");
    assert_eq!(machine.text("repo/src/main.rs"), "as it is");
    let mode = fs::metadata(machine.path("repo/src/main.rs")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755, "an edited file keeps its mode");
    let args = json!({ "path": machine.path("repo/new/[id].tsx"), "text": "new" });
    let written = machine.called(FileTool::Write, args).await;
    assert_eq!(
        (machine.short(&written).as_str(), written.files.len()),
        ("wrote 3 bytes to /m/repo/new/[id].tsx", 0)
    );
    let deleted =
        machine.called(FileTool::Delete, json!({ "path": machine.path("repo/new/[id].tsx") })).await;
    assert_eq!(
        (machine.short(&deleted).as_str(), deleted.removed.len()),
        ("deleted /m/repo/new/[id].tsx", 0)
    );
    assert!(machine.path("repo/new").is_dir(), "folders are the user's");
    let own = machine.called(FileTool::Write, json!({ "path": "outputs/a.txt", "text": "mine" })).await;
    assert_eq!((own.text.as_str(), own.files.len()), ("wrote 4 bytes to outputs/a.txt", 1));
    assert_eq!(fs::read_dir(machine.path("repo/src")).unwrap().count(), 3, "nothing unfinished is left");
    machine.assert_kept();
}

/// L8, G25 (granted folders): no path leads out of a granted folder, into what is hidden in it, or to a change of what may
/// only be read, with any file tool.
#[tokio::test]
async fn l8_no_path_leads_out_of_a_granted_folder() {
    let machine = Machine::new();
    fs::hard_link(machine.path("other/secret.txt"), machine.path("repo/second-name.txt")).unwrap();
    let outside = [
        "other/secret.txt",
        "repo/../other/secret.txt",
        "repo/src/../../other/secret.txt",
        "repo/./src/main.rs",
        "repo//src/main.rs",
        "repo/out/secret.txt",
        "repo/out",
        "repo/src/secret.rs",
        "repo/second-name.txt",
        "docs/out/secret.txt",
        "repository/x",
        "repo/home/journal.db",
        "repo/home",
        "repo/settings/of/ours/config.toml",
        "",
    ];
    for path in outside {
        for (tool, more) in [
            (FileTool::Read, json!({})),
            (FileTool::Write, json!({ "text": "changed" })),
            (FileTool::Edit, json!({ "old_text": "as", "new_text": "changed" })),
            (FileTool::Delete, json!({})),
            (FileTool::Search, json!({ "pattern": "as it" })),
        ] {
            let mut args = more;
            args["path"] =
                json!(format!("{}/{path}", machine.path("").display().to_string().trim_end_matches('/')));
            let answer = machine.called(tool, args).await;
            let found = answer.text.contains(":1: ") || (!answer.is_error && tool != FileTool::Search);
            assert!(!found, "{tool:?} {path}: {}", answer.text);
        }
    }
    let kept = [
        "repo/.git/config",
        "repo/.git/hooks/post-checkout",
        "repo/.GIT/config",
        "repo/.claude/settings.json",
        "repo/.vscode/tasks.json",
        "repo/.mcp.json",
        "repo/.envrc",
        "repo/src/.git/config",
        "repo/deep/er/module/.git/config",
        "repo/vendor/lib.rs",
        "repo/vendor/new.rs",
        "docs/guide.md",
        "docs/new.md",
    ];
    for path in kept {
        for (tool, more) in [
            (FileTool::Write, json!({ "text": "changed" })),
            (FileTool::Edit, json!({ "old_text": "as", "new_text": "changed" })),
            (FileTool::Delete, json!({})),
        ] {
            let said = machine.says(tool, path, more).await;
            assert!(said.starts_with('!') && said.contains("may only be read"), "{tool:?} {path}: {said}");
        }
    }
    let said = machine.says(FileTool::Write, "other/x", json!({ "text": "x" })).await;
    insta::assert_snapshot!(said, @"!`/m/other/x` is outside your folders: use `/m/docs`, `/m/repo`, `/m/repo/vendor`, or `outputs/NAME` of your own");
    let said = machine.says(FileTool::Write, "repo/.git/config", json!({ "text": "x" })).await;
    insta::assert_snapshot!(said, @"!`/m/repo/.git/config` may only be read, because `.git` decides what programs of the user do: leave it as it is");
    let said = machine.says(FileTool::Read, "repo/home/journal.db", json!({})).await;
    insta::assert_snapshot!(said, @"!`/m/repo/home/journal.db` is not for agents: leave it alone");
    machine.assert_kept();
}

/// L8: a worktree's repository and hooks elsewhere in the folder are only read, as the `.git` file and its configuration say.
#[tokio::test]
async fn l8_what_git_uses_elsewhere_in_a_folder_is_only_read() {
    let machine = Machine::new();
    let base = machine.path("work");
    for folder in ["tree", "store/worktrees/tree", "hooks"] {
        fs::create_dir_all(base.join(folder)).unwrap();
    }
    fs::write(base.join(".git"), "gitdir: store/worktrees/tree\n").unwrap();
    fs::write(base.join("store/worktrees/tree/commondir"), "../..\n").unwrap();
    fs::write(base.join("store/config"), "[core]\n\thooksPath = hooks\n").unwrap();
    let rights = Rights::none().with_folder(&base, FolderAccess::Write);
    for (path, is_kept) in [("store/config", true), ("hooks/pre-push", true), ("tree/main.rs", false)] {
        let args = json!({ "path": base.join(path), "text": "changed" });
        let attempt = machine.attempt(FileTool::Write.name(), rights.clone(), &args);
        let answer = Files::default().tool(FileTool::Write).call(attempt).await.unwrap();
        assert_eq!(answer.is_error, is_kept, "{path}: {}", answer.text);
    }
}

/// L8: a granted folder that was replaced by a link is not opened.
#[tokio::test]
async fn l8_a_granted_folder_that_became_a_link_is_not_opened() {
    let machine = Machine::new();
    fs::rename(machine.path("docs"), machine.path("docs.old")).unwrap();
    symlink(machine.path("other"), machine.path("docs")).unwrap();
    for (tool, below) in
        [(FileTool::Read, "docs/secret.txt"), (FileTool::List, "docs"), (FileTool::Search, "docs")]
    {
        let more = if tool == FileTool::Search { json!({ "pattern": "as" }) } else { json!({}) };
        let said = machine.says(tool, below, more).await;
        assert!(said.starts_with('!') && !said.contains("as it"), "{tool:?}: {said}");
    }
}

/// An agent without folders is told what it always was.
#[tokio::test]
async fn an_agent_without_folders_has_no_absolute_paths() {
    let machine = Machine::new();
    let args = json!({ "path": machine.path("docs/guide.md") });
    let attempt = machine.attempt(FileTool::Read.name(), Rights::none(), &args);
    let answer = Files::default().tool(FileTool::Read).call(attempt).await.unwrap();
    assert!(answer.text.ends_with("is absolute: write it as `outputs/NAME`"), "{}", answer.text);
}

/// Which folders can be granted.
#[test]
fn folders_of_the_machine_and_of_this_program_are_not_granted() {
    let machine = Machine::new();
    let hidden = machine.hidden();
    let said = |path: &Path, access| match check_folder(path, access, &hidden) {
        Ok(()) => "yes".to_owned(),
        Err(problem) => problem.to_string(),
    };
    let (read, write) = (FolderAccess::Read, FolderAccess::Write);
    fs::create_dir_all(machine.path("bare.git/objects")).unwrap();
    fs::create_dir_all(machine.path("bare.git/refs")).unwrap();
    fs::write(machine.path("bare.git/HEAD"), "ref: refs/heads/main").unwrap();
    let all: Vec<String> = [
        (machine.path("repo"), write),
        (machine.path("repo/.git"), read),
        (machine.path("repo/.git/hooks"), write),
        (machine.path("bare.git"), write),
        (machine.path("bare.git"), read),
        (machine.path("repo/home"), read),
        (machine.path("repo/home/workspace"), read),
        (machine.path("repo/out"), read),
        (machine.path("docs/guide.md"), read),
        (machine.path("absent"), read),
        ("/".into(), read),
        ("/proc/self".into(), read),
        ("/dev/shm".into(), write),
        ("relative".into(), read),
    ]
    .iter()
    .map(|(path, access)| {
        let shown = path.display().to_string().replace(&machine.path("").display().to_string(), "/m/");
        format!("{} {shown}: {}", access.as_str(), said(path, *access))
    })
    .collect();
    insta::assert_snapshot!(all.join("\n"), @r"
    write /m/repo: yes
    read /m/repo/.git: yes
    write /m/repo/.git/hooks: is in `.git`, which agents may not write to: grant it for reading, or grant a folder above it
    write /m/bare.git: is a git directory, which agents may not write to: grant it for reading
    read /m/bare.git: yes
    read /m/repo/home: is in the home or in Spinney's settings, which agents may not see
    read /m/repo/home/workspace: is in the home or in Spinney's settings, which agents may not see
    read /m/repo/out: is not a folder, or its path contains a link
    read /m/docs/guide.md: is not a folder, or its path contains a link
    read /m/absent: does not exist
    read /: cannot be granted: name another folder
    read /proc/self: is a system folder: grant another one
    write /dev/shm: is a system folder: grant another one
    read relative: cannot be granted: name another folder
    ");
}
