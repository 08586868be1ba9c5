//! Folders of the user in boxes, as real commands have them.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, symlink};

use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use spinney_drivers::commands::{BoxPermissions, Commands};
use spinney_drivers::files::{FileTool, Files};
use spinney_drivers::folders::UserGit;
use spinney_drivers::sandbox::BoxTierChoice;
use spinney_kernel::definition::{BoxSpec, Definition, FolderGrants, Role};
use spinney_kernel::port::tool::ToolAnswer;
use spinney_kernel::port::{FolderAccess, Rights};
use spinney_kernel::primitives::{CommandExit, CommandLimit};

use crate::boxes::{ATTEMPTS, launcher, tiers};
use crate::folders::Machine;

fn commands(machine: &Machine, tier: BoxTierChoice) -> Commands {
    let commands = Commands::with_tier(ATTEMPTS.into(), tier).hiding(machine.hidden());
    commands.prepare(BoxPermissions::default(), Vec::new());
    commands
}

async fn run(machine: &Machine, commands: &Commands, rights: Rights, command: &str) -> ToolAnswer {
    let attempt = machine.attempt(Commands::tool_name(), rights, &json!({ "command": command }));
    commands.tool().call(attempt).await.unwrap()
}

/// Whether boxes with namespaces can be made here.
async fn has_namespaces() -> bool {
    tiers(&launcher().await).contains(&BoxTierChoice::Namespaces)
}

/// What a command may do with the folders.
const ALLOWED: &str = "
cat $M/docs/guide.md $M/repo/.git/config $M/repo/vendor/lib.rs > /dev/null || exit 1
cd $M/repo || exit 2
echo new > new.txt && mkdir -p a/b && echo x > a/b/c && mv a/b/c a/d && rm a/d || exit 3
echo changed > src/main.rs || exit 4
find . > /dev/null || exit 5
echo scratch > $HOME/kept && cat $HOME/kept > /dev/null || exit 6
";

/// Each line is an attempt; one that succeeds says so.
const ATTEMPTED: [&str; 44] = [
    "echo x > .git/config",
    "echo x > .git/hooks/post-checkout",
    "mkdir .git/hooks/new",
    "mv .git .old",
    "rm -rf .git/config",
    "mv .git/config x",
    "ln .git/config hard && echo x > hard",
    "chmod 777 .git/config",
    "mkdir new.git && mv -T new.git .git",
    "mount -t tmpfs none .git",
    "umount .git",
    "echo x > .claude/settings.json",
    "mv .claude .old",
    "rmdir .hg",
    "mkdir .hg/store",
    "echo x > .envrc",
    "mkdir .vscode/x",
    "rmdir .vscode && mkdir -p .vscode/x",
    "mv .mcp.json x",
    "mv new.txt .mcp.json",
    "mv -T src .vscode",
    "ln -s /etc .idea",
    "mv deep deep2",
    "mv deep/er deep2",
    "mv deep/er/module deep2",
    "echo x > deep/er/module/.git/config",
    "echo x > vendor/lib.rs",
    "echo x > vendor/new.rs",
    "mv vendor vendor2",
    "rm vendor/lib.rs",
    "cat home/journal.db",
    "ls home/journal.db",
    "echo x > home/journal.db",
    "echo x > home/x",
    "mv home home2",
    "mkdir -p settings/of/ours",
    "mv src settings",
    "cat out/secret.txt",
    "cat src/secret.rs",
    "cat ../other/secret.txt",
    "echo x > ../other/x",
    "echo x > $M/docs/guide.md",
    "echo x > $M/docs/new.md",
    "cat $M/docs/out/secret.txt",
];

/// L8, G25 (granted folders): of what commands try with links, renames, mounts, hard links and names that were not there,
/// nothing gets out of a granted folder or changes what may only be read.
#[tokio::test]
async fn g25_commands_keep_to_granted_folders() {
    if !has_namespaces().await {
        return;
    }
    let machine = Machine::new();
    let commands = commands(&machine, BoxTierChoice::Namespaces);
    let set = format!("M={}\n", machine.path("").display().to_string().trim_end_matches('/'));
    let allowed = run(&machine, &commands, machine.rights(), &format!("{set}{ALLOWED}")).await;
    assert_eq!(allowed.exit, Some(CommandExit::Code(0)), "{}", allowed.text);
    assert_eq!(fs::read_to_string(machine.path("repo/new.txt")).unwrap(), "new\n");
    let tried: String = ATTEMPTED
        .iter()
        .enumerate()
        .map(|(at, line)| format!("( cd $M/repo; {line} ) 2> /dev/null > /dev/null && echo passed {at}\n"))
        .collect();
    let tried = run(&machine, &commands, machine.rights(), &format!("{set}{tried}echo all tried")).await;
    // Where `mv` cannot rename it copies, and a copy of a repository is a new one.
    let copied = machine.path("repo/deep2/module/.git").display().to_string();
    let named = format!("it made or changed what programs of the user obey, and the user is told: {copied}");
    assert_eq!(tried.text, format!("{named}\nexit code 0\n[stdout]\nall tried"));
    machine.assert_kept();
}

/// Names that are not there cannot be made while a command runs, and are free again when it has ended, also those that a
/// killed guard left. What the user made meanwhile stays.
#[tokio::test]
async fn reserved_names_go_with_the_command() {
    if !has_namespaces().await {
        return;
    }
    let machine = Machine::new();
    let commands = commands(&machine, BoxTierChoice::Namespaces);
    let left = machine.path("repo/.hg");
    fs::create_dir(&left).unwrap();
    fs::set_permissions(&left, fs::Permissions::from_mode(0o1555)).unwrap();
    fs::create_dir(machine.path("repo/.idea")).unwrap();
    let line = format!("cd {}; mkdir .hg/x; mkdir .jj/x; ls -d .*", machine.path("repo").display());
    let seen = run(&machine, &commands, machine.rights(), &line).await;
    assert!(seen.text.contains("\n.envrc\n") && seen.text.contains("\n.jj\n"), "{}", seen.text);
    let mut names: Vec<String> = fs::read_dir(machine.path("repo"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with('.'))
        .collect();
    names.sort_unstable();
    assert_eq!(names, [".claude", ".git", ".idea"]);
}

/// A name stays taken until the last of several commands has ended.
#[tokio::test]
async fn reserved_names_stay_for_commands_that_still_run() {
    if !has_namespaces().await {
        return;
    }
    let machine = Machine::new();
    let (first, second) =
        (commands(&machine, BoxTierChoice::Namespaces), commands(&machine, BoxTierChoice::Namespaces));
    let fifo = machine.path("repo/fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let repo = machine.path("repo").display().to_string();
    let waits = format!("cd {repo}; cat fifo; mkdir .hg/store .hg .vscode 2> /dev/null && echo made; exit 0");
    let waiting = run(&machine, &first, machine.rights(), &waits);
    let ended = async {
        // Opening it waits for the command that reads it.
        let path = fifo.clone();
        let opened = tokio::task::spawn_blocking(move || fs::OpenOptions::new().write(true).open(path));
        let mut opened = opened.await.unwrap().unwrap();
        let other = run(&machine, &second, machine.rights(), "true").await;
        assert_eq!(other.exit, Some(CommandExit::Code(0)), "{}", other.text);
        assert!(machine.path("repo/.hg").exists());
        opened.write_all(b"go\n").unwrap();
    };
    let (waited, ()) = tokio::join!(waiting, ended);
    assert_eq!(waited.text, "exit code 0\n[stdout]\ngo");
    machine.assert_kept();
}

/// A folder that may be read works in both tiers. What needs something kept from a command is refused without namespaces.
#[tokio::test]
async fn without_namespaces_only_plain_reading_is_granted() {
    let machine = Machine::new();
    for tier in tiers(&launcher().await) {
        let commands = commands(&machine, tier);
        let docs = Rights::none().with_folder(machine.path("docs"), FolderAccess::Read);
        let line = format!(
            "cat {0}/guide.md; cat {0}/out/secret.txt; echo x > {0}/new.md; true",
            machine.path("docs").display()
        );
        let read = run(&machine, &commands, docs, &line).await;
        assert!(read.text.starts_with("exit code 0\n[stdout]\nas it was\n[stderr]"), "{}", read.text);
        machine.assert_kept();
        if tier == BoxTierChoice::Namespaces {
            continue;
        }
        for (folder, access) in [("repo/src", FolderAccess::Write), ("repo", FolderAccess::Read)] {
            let rights = Rights::none().with_folder(machine.path(folder), access);
            let refused = run(&machine, &commands, rights, "true").await;
            assert_eq!(refused.exit, Some(CommandExit::NotStarted), "{}", refused.text);
            assert!(refused.text.contains("need namespaces"), "{}", refused.text);
        }
    }
}

fn definition(machine: &Machine, folder: &str, access: FolderAccess) -> Definition {
    let mut role = Role::new("m".parse().unwrap()).with_tools([Commands::tool_name()]);
    if let Some(turns) = role.turns.as_mut() {
        turns.sandbox = BoxSpec::default();
    }
    let path = machine.path(folder).display().to_string().parse().unwrap();
    let role = role.with_folders(FolderGrants::default().with(path, access));
    Definition::new("tree", "Work.", "lead".parse().unwrap()).with_role("lead".parse().unwrap(), role)
}

/// A tree whose folders cannot be kept on this machine does not start, and says what helps.
#[tokio::test]
async fn a_tree_whose_folders_cannot_be_kept_does_not_start() {
    let machine = Machine::new();
    for tier in tiers(&launcher().await) {
        let commands = commands(&machine, tier);
        let reading = commands.check(&definition(&machine, "docs", FolderAccess::Read)).await;
        assert_eq!(reading, Ok(()));
        for (folder, access) in [("repo/src", FolderAccess::Write), ("repo", FolderAccess::Read)] {
            let checked = commands.check(&definition(&machine, folder, access)).await;
            match tier {
                BoxTierChoice::Namespaces => assert_eq!(checked, Ok(())),
                _ => {
                    let why = checked.unwrap_err();
                    assert!(why.contains("need namespaces") && why.contains("or grant folders"), "{why}");
                }
            }
        }
    }
}

/// L8: a folder whose path goes through a link, and a link in place of what is only read, are refused.
#[tokio::test]
async fn l8_links_in_place_of_granted_folders_are_refused() {
    let machine = Machine::new();
    for tier in tiers(&launcher().await) {
        let commands = commands(&machine, tier);
        let linked = Rights::none().with_folder(machine.path("repo/out"), FolderAccess::Read);
        let refused = run(&machine, &commands, linked, "cat /dev/null").await;
        assert!(refused.text.contains("or its path contains a link"), "{}", refused.text);
    }
    if has_namespaces().await {
        symlink("../other", machine.path("repo/.idea")).unwrap();
        let commands = commands(&machine, BoxTierChoice::Namespaces);
        let refused = run(&machine, &commands, machine.rights(), "true").await;
        assert!(refused.text.contains("is a link, so it cannot be kept read-only"), "{}", refused.text);
    }
}

/// A folder that a command closes is not a way to what is only read in it.
#[tokio::test]
async fn g25_a_folder_that_was_closed_is_not_skipped() {
    if !has_namespaces().await || rustix::process::geteuid().is_root() {
        return;
    }
    let machine = Machine::new();
    let closed = machine.path("repo/closed");
    fs::DirBuilder::new().mode(0o000).create(&closed).unwrap();
    let commands = commands(&machine, BoxTierChoice::Namespaces);
    let refused = run(&machine, &commands, machine.rights(), "true").await;
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(refused.exit, Some(CommandExit::NotStarted), "{}", refused.text);
}

/// Waits until what changes now has another time than what changed before: the clock of files is coarse.
fn until_next_moment(machine: &Machine) {
    let file = machine.path("moment");
    fs::write(&file, "x").unwrap();
    let found = fs::metadata(&file).unwrap();
    let now = || {
        let now = clock_gettime(ClockId::RealtimeCoarse);
        (now.tv_sec, now.tv_nsec)
    };
    while now() <= (found.ctime(), found.ctime_nsec()) {}
}

/// A repository or settings that a command makes below the folders in which it cannot, or changes deeper than its box looks,
/// are named in its answer. What the user had before, what the box kept, and plain files are not.
#[tokio::test]
async fn what_programs_of_the_user_obey_is_named_when_a_command_makes_it() {
    if !has_namespaces().await {
        return;
    }
    let machine = Machine::new();
    let commands = commands(&machine, BoxTierChoice::Namespaces);
    let deep = machine.path("repo/1/2/3/4/5/.git");
    fs::create_dir_all(deep.join("hooks")).unwrap();
    fs::create_dir_all(deep.join("objects")).unwrap();
    fs::create_dir_all(machine.path("repo/1/2/3/4/5/kept/.vscode")).unwrap();
    let said =
        |answer: ToolAnswer| answer.text.replace(machine.path("").display().to_string().as_str(), "/m/");
    let in_repo = |line: &str| format!("cd {}; {line}", machine.path("repo").display());
    let untouched =
        "true; echo x > plain; echo x > 1/2/3/4/5/plain; echo x > 1/2/3/4/5/.git/objects/x; mkdir .hg/x";
    let plain = said(run(&machine, &commands, machine.rights(), &in_repo(untouched)).await);
    assert!(plain.starts_with("exit code 1\n"), "{plain}");
    for (line, expected) in [
        ("mkdir src/.git", "/m/repo/src/.git"),
        ("ln -s /etc 1/2/.vscode", "/m/repo/1/2/.vscode"),
        ("echo x > 1/2/3/4/5/.git/hooks/pre-commit", "/m/repo/1/2/3/4/5/.git"),
        ("touch -d 2001-01-01 1/2/3/4/.envrc", "/m/repo/1/2/3/4/.envrc"),
        ("mkdir -p new/.husky; chmod 000 new/.husky", "/m/repo/new/.husky"),
        ("sleep 86400 & touch src/.exrc; exit 3", "/m/repo/src/.exrc"),
    ] {
        until_next_moment(&machine);
        let answer = said(run(&machine, &commands, machine.rights(), &in_repo(line)).await);
        let first = answer.lines().next().unwrap();
        let named =
            format!("it made or changed what programs of the user obey, and the user is told: {expected}");
        assert_eq!(first, named, "{line}: {answer}");
    }
    // A folder that nothing can look into is said to be one.
    let closed = in_repo("mkdir -p closed/in/.git; chmod 000 closed");
    let answer = said(run(&machine, &commands, machine.rights(), &closed).await);
    let is_root = rustix::process::geteuid().is_root();
    let expected =
        if is_root { "/m/repo/closed/in/.git" } else { "it left folders that cannot all be searched" };
    assert!(answer.lines().next().unwrap().contains(expected), "{answer}");
    fs::set_permissions(machine.path("repo/closed"), fs::Permissions::from_mode(0o700)).unwrap();
}

/// Files of a repository that runs a program: the user's next `git status` around them would.
const EVIL: &str =
    "mkdir objects refs; echo ref: refs/heads/x > HEAD; printf '[core]\\nfsmonitor = ./evil\\n' > config";

/// G25: a repository that a command makes or changes so that git would run a program of it is switched off when the command
/// has ended, wherever it is and in whatever steps it was made. One that runs nothing stays, and so does what the user had.
#[tokio::test]
async fn g25_a_repository_that_would_run_programs_is_switched_off() {
    if !has_namespaces().await {
        return;
    }
    let machine = Machine::new();
    let commands = commands(&machine, BoxTierChoice::Namespaces);
    let of_user = machine.path("repo/1/2/3/4/5/.git");
    for name in ["hooks", "objects", "refs"] {
        fs::create_dir_all(of_user.join(name)).unwrap();
    }
    for name in ["HEAD", "config", "hooks/pre-push"] {
        fs::write(of_user.join(name), "of the user").unwrap();
    }
    let in_repo =
        |line: &str| format!("cd {}; {}", machine.path("repo").display(), line.replace("EVIL", EVIL));
    for (lines, off) in [
        (&["mkdir src/a; cd src/a; EVIL"][..], Some("src/a/HEAD")),
        // The folder that was granted itself is one of them.
        (&["EVIL; rm -r objects refs config HEAD; mkdir -p src/b/c; cd src/b/c; EVIL"], Some("src/b/c/HEAD")),
        (&["mkdir src/c; cd src/c; EVIL; rm HEAD", "echo x > src/c/HEAD"], Some("src/c/HEAD")),
        (
            &[
                "mkdir src/n; cd src/n; mkdir hooks; echo x > hooks/update; echo x > HEAD",
                "cd src/n; mkdir objects refs",
            ],
            Some("src/n/HEAD"),
        ),
        (&["mkdir src/d; cd src/d; EVIL; rm -r refs", "mkdir src/d/refs"], Some("src/d/HEAD")),
        (
            &["mkdir src/e; cd src/e; EVIL; rm config; mkdir hooks; cp /bin/true hooks/post-checkout"],
            Some("src/e/HEAD"),
        ),
        (&["mkdir src/f; cd src/f; echo x > HEAD; echo ../a > commondir"], Some("src/f/HEAD")),
        (&["mkdir -p src/g/.git; cd src/g/.git; EVIL"], Some("src/g/.git/HEAD")),
        (
            &["mkdir -p src/h/.git/modules/x; cd src/h/.git/modules/x; EVIL"],
            Some("src/h/.git/modules/x/HEAD"),
        ),
        (
            &[
                "mkdir -p src/i/.git; cd src/i/.git; EVIL; echo '[core] bare=false' > x; mv config y; ln -s x config",
            ],
            Some("src/i/.git/HEAD"),
        ),
        (&["mkdir src/j; echo 'gitdir: /tmp/x' > src/j/.git"], Some("src/j/.git")),
        (&["mkdir src/k; ln -s ../a src/k/.git"], Some("src/k/.git")),
        (&["echo x > 1/2/3/4/5/.git/hooks/pre-commit"], Some("1/2/3/4/5/.git/HEAD")),
        (
            &[
                "mkdir src/l; cd src/l; EVIL; printf '[core]\\n\\tbare = true\\n' > config; mkdir hooks; echo x > hooks/update.sample",
            ],
            None,
        ),
        (
            &[
                "mkdir -p src/m/.git; cd src/m/.git; EVIL; printf '[core]bare=false\\n[remote \"o\"]url=https://x\\n' > config",
            ],
            None,
        ),
        (&["echo x > 1/2/3/4/5/.git/description"], None),
    ] {
        // As if the user had looked at it and let it be.
        let _ = fs::rename(of_user.join("HEAD.disabled"), of_user.join("HEAD"));
        let mut last = String::new();
        for line in lines {
            until_next_moment(&machine);
            last += &run(&machine, &commands, machine.rights(), &in_repo(line)).await.text;
        }
        let said = &last;
        match off {
            Some(path) => {
                let path = machine.path("repo").join(path);
                assert!(path.symlink_metadata().is_err(), "{lines:?}: {last}");
                let moved = format!("{}.disabled", path.display());
                assert!(fs::symlink_metadata(moved).is_ok(), "{lines:?}: {last}");
                assert!(said.contains("with `.disabled` at their end"), "{lines:?}: {said}");
                assert!(said.contains(&path.display().to_string()), "{lines:?}: {said}");
            }
            None => assert!(!said.contains(".disabled"), "{lines:?}: {said}"),
        }
    }
    assert!(of_user.join("HEAD").exists());
    machine.assert_kept();
}

/// G25: a repository of the user without a `.git` is read-only, for commands and for file tools, and no file tool makes one.
#[tokio::test]
async fn g25_a_bare_repository_is_only_read() {
    let machine = Machine::new();
    let bare = machine.path("repo/store/bare");
    fs::create_dir_all(bare.join("refs")).unwrap();
    fs::create_dir_all(bare.join("objects")).unwrap();
    for name in ["HEAD", "config"] {
        fs::write(bare.join(name), "as it was").unwrap();
    }
    fs::create_dir_all(machine.path("repo/src/new/objects")).unwrap();
    fs::create_dir_all(machine.path("repo/src/new/refs")).unwrap();
    for (path, is_refused) in [
        ("repo/store/bare/config", true),
        ("repo/store/bare/hooks/update", true),
        ("repo/store/bare/src/x", true),
        ("repo/store/x", false),
        ("repo/src/new/config", false),
        ("repo/src/new/HEAD", true),
        ("repo/src/new/head", true),
        ("repo/src/other/HEAD", false),
        ("repo/src/other/config", true),
        ("repo/src/other/main.rs", false),
    ] {
        let args = json!({ "path": machine.path(path), "text": "x" });
        let attempt = machine.attempt(FileTool::Write.name(), machine.rights(), &args);
        let answer =
            Files::default().hiding(machine.hidden()).tool(FileTool::Write).call(attempt).await.unwrap();
        assert_eq!(answer.is_error, is_refused, "{path}: {}", answer.text);
        assert_eq!(
            is_refused,
            answer.text.contains("git takes its folder for a repository"),
            "{}",
            answer.text
        );
    }
    if has_namespaces().await {
        let commands = commands(&machine, BoxTierChoice::Namespaces);
        let line = format!(
            "cd {}; (echo x > config) 2> /dev/null && echo passed; mkdir hooks 2> /dev/null && echo passed; cd ..; mv bare b 2> /dev/null && echo passed; exit 0",
            bare.display()
        );
        let answer = run(&machine, &commands, machine.rights(), &line).await;
        assert_eq!(answer.text, "exit code 0\nit printed nothing");
    }
    assert_eq!(fs::read_to_string(bare.join("config")).unwrap(), "as it was");
}

/// G25: what the configuration of a repository and that of the user lead to in a writable folder is only read there: hooks
/// behind links, other configurations, programs. What is not there yet cannot be made.
#[tokio::test]
async fn g25_what_git_is_led_to_is_only_read() {
    let machine = Machine::new();
    let (repo, user) = (machine.path("work"), machine.path("user"));
    for folder in [".git/hooks", "tools/hooks", "of-user", "sub/.git", "sub/deep"] {
        fs::create_dir_all(repo.join(folder)).unwrap();
    }
    fs::create_dir_all(user.join("git")).unwrap();
    for (path, text) in [
        (
            repo.join(".git/config"),
            "[core] hooksPath=tools/hooks\n[include]\n\tpath = ../more.config\n[filter \"x\"] clean = sh -c 'tools/clean.sh %f'",
        ),
        (repo.join("more.config"), "[diff \"x\"]\n\ttextconv = \"tools/textconv.sh\" --all\n"),
        (repo.join("sub/.git/config"), "[alias]\n\tx = !./deep/alias.sh"),
        (user.join("git/config"), "[include] path = more"),
        (user.join("git/more"), "[core]\nhooksPath = of-user/missing\nfsmonitor = tools/monitor.sh"),
    ] {
        fs::write(path, text).unwrap();
    }
    for name in ["clean.sh", "textconv.sh", "monitor.sh", "linked.sh", "free.sh"] {
        fs::write(repo.join("tools").join(name), "as it was").unwrap();
    }
    fs::write(repo.join("sub/deep/alias.sh"), "as it was").unwrap();
    symlink("../../tools/linked.sh", repo.join(".git/hooks/pre-commit")).unwrap();
    let git =
        UserGit { home: Some(user.clone()), files: vec![user.join(".gitconfig"), user.join("git/config")] };
    let hidden = machine.hidden().with_git(git);
    let rights = Rights::none().with_folder(&repo, FolderAccess::Write);
    let kept = [
        "more.config",
        "tools/hooks/pre-push",
        "tools/clean.sh",
        "tools/textconv.sh",
        "tools/monitor.sh",
        "tools/linked.sh",
        "of-user/missing/pre-push",
        "sub/deep/alias.sh",
    ];
    for (path, is_kept) in kept.map(|path| (path, true)).into_iter().chain([("tools/free.sh", false)]) {
        let args = json!({ "path": repo.join(path), "text": "as it was" });
        let attempt = machine.attempt(FileTool::Write.name(), rights.clone(), &args);
        let answer =
            Files::default().hiding(hidden.clone()).tool(FileTool::Write).call(attempt).await.unwrap();
        assert_eq!(answer.is_error, is_kept, "{path}: {}", answer.text);
    }
    if !has_namespaces().await {
        return;
    }
    let commands = Commands::with_tier(ATTEMPTS.into(), BoxTierChoice::Namespaces).hiding(hidden.clone());
    commands.prepare(BoxPermissions::default(), Vec::new());
    let tried: String = kept
        .iter()
        .map(|path| {
            format!("( mkdir -p $(dirname {path}); echo x > {path} ) 2> /dev/null && echo passed {path}\n")
        })
        .collect();
    let line = format!(
        "cd {}\n{tried}mv tools tools2 2> /dev/null && echo passed\necho x > tools/free.sh",
        repo.display()
    );
    let answer = run(&machine, &commands, rights.clone(), &line).await;
    assert_eq!(answer.text, "exit code 0\nit printed nothing");
    assert!(!repo.join("of-user/missing").exists());
    // A folder in place of a configuration would stop git, so its name cannot be kept free.
    fs::write(repo.join(".git/config"), "[include] path = ../absent").unwrap();
    let refused = run(&machine, &commands, rights, "true").await;
    assert_eq!(refused.exit, Some(CommandExit::NotStarted), "{}", refused.text);
    assert!(refused.text.contains("a configuration of git includes it"), "{}", refused.text);
}

/// G25: a search that does not see everything says so, ends the call as such, sees the rest of the folder nevertheless, and
/// lets no command begin until it has seen all of it. What was made meanwhile is found then.
#[tokio::test]
async fn g25_an_unfinished_search_lets_nothing_begin() {
    if !has_namespaces().await {
        return;
    }
    let machine = Machine::new();
    let commands = commands(&machine, BoxTierChoice::Namespaces);
    let in_repo = |line: &str| format!("cd {}; {line}", machine.path("repo").display());
    let deep = in_repo(
        "mkdir src/.idea; cd src; for n in $(seq 70); do mkdir d; cd d; done; mkdir evil evil/.git; echo x > evil/.git/HEAD; mkdir evil/.git/hooks; echo x > evil/.git/hooks/x",
    );
    let answer = run(&machine, &commands, machine.rights(), &deep).await;
    assert_eq!(answer.exit, Some(CommandExit::PastLimit(CommandLimit::Folders)), "{}", answer.text);
    assert!(answer.is_error);
    let first = answer.text.lines().next().unwrap();
    assert!(first.contains("src/.idea; it left folders that cannot all be searched"), "{first}");
    let refused = run(&machine, &commands, machine.rights(), "true").await;
    assert_eq!(refused.exit, Some(CommandExit::NotStarted), "{}", refused.text);
    assert!(refused.text.contains("a person has to look at it"), "{}", refused.text);
    // The person makes it less deep, without looking at what is in there.
    let mut below = machine.path("repo/src");
    (0..70).for_each(|_| below.push("d"));
    fs::rename(below.join("evil"), machine.path("repo/evil")).unwrap();
    fs::remove_dir_all(machine.path("repo/src/d")).unwrap();
    until_next_moment(&machine);
    let answer = run(&machine, &commands, machine.rights(), "true").await;
    assert_eq!(answer.exit, Some(CommandExit::Code(0)), "{}", answer.text);
    assert!(machine.path("repo/evil/.git/HEAD.disabled").exists());
}
