//! `run_command` as a model uses it: how commands end, what they print and leave, what they may not do, and that nothing
//! outlives its call. The helper of the boxes is the program of the attempts.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use spinney_drivers::commands::{BoxPermissions, Commands};
use spinney_drivers::sandbox::BoxTierChoice;
use spinney_drivers::workspace::Workspaces;
use spinney_kernel::context::Origin;
use spinney_kernel::definition::{BoxSpec, BoxWalls, Definition, OutputLimits, Role};
use spinney_kernel::port::AgentFolder;
use spinney_kernel::port::tool::{OutputWatchers, ToolAnswer, ToolAttempt};
use spinney_kernel::primitives::{CallId, CommandExit, CommandLimit, ModelName};
use spinney_testkit::processes::{HeldProcesses, processes_below};
use tempfile::TempDir;
use tokio::sync::mpsc;

use crate::boxes::{ATTEMPTS, folder, launcher, parent, tiers};
use crate::files::TREE;

/// More than a command of these tests prints.
const PIECES_MAX: usize = 64;

/// The commands of boxes of one tier, and a home.
pub(crate) struct Shop {
    home: TempDir,
    pub(crate) commands: Commands,
}

impl Shop {
    pub(crate) fn new(tier: BoxTierChoice) -> Self {
        Self::with(Commands::with_tier(ATTEMPTS.into(), tier))
    }

    pub(crate) fn with(commands: Commands) -> Self {
        commands.prepare(BoxPermissions::default(), Vec::new());
        Self { home: folder(), commands }
    }

    fn agent(&self) -> PathBuf {
        self.home.path().join("workspace").join(TREE.to_string()).join("lead")
    }

    pub(crate) fn attempt(&self, args: &Value) -> ToolAttempt {
        let path = vec!["lead".parse().unwrap()].into();
        let origin =
            Arc::new(Origin { tree: TREE, path, role: "lead".parse().unwrap(), goal: "Work.".into() });
        let name = Commands::tool_name();
        let mut attempt =
            ToolAttempt::new(Arc::clone(&origin), CallId(1), String::new(), name, args.to_string());
        attempt.workspace = Some(AgentFolder::new(Workspaces::root(self.home.path()).into(), origin));
        attempt
    }

    async fn run(&self, args: Value) -> ToolAnswer {
        self.call(self.attempt(&args)).await
    }

    pub(crate) async fn call(&self, attempt: ToolAttempt) -> ToolAnswer {
        self.commands.tool().call(attempt).await.unwrap()
    }
}

async fn shops() -> Vec<Shop> {
    tiers(&launcher().await).into_iter().map(Shop::new).collect()
}

fn kept(answer: &ToolAnswer) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    answer.files.iter().map(|file| (file.path.to_string(), text(&file.bytes))).collect()
}

#[tokio::test]
async fn a_command_says_how_it_ended_and_what_it_printed() {
    for shop in shops().await {
        let line = shop.run(json!({ "command": "cat; echo oh >&2; exit 3", "stdin": "given\n" })).await;
        assert_eq!(line.text, "exit code 3\n[stdout]\ngiven\n[stderr]\noh");
        assert_eq!((line.exit, line.is_error), (Some(CommandExit::Code(3)), true));
        let list = shop.run(json!({ "command": ["printf", "%s|", "a b", "$HOME"] })).await;
        assert_eq!((list.text.as_str(), list.is_error), ("exit code 0\n[stdout]\na b|$HOME|", false));
        let killed = shop.run(json!({ "command": "kill -SEGV $$" })).await;
        assert_eq!(killed.text, "ended by signal 11\nit printed nothing");
        assert_eq!(killed.exit, Some(CommandExit::Signal(11)));
        let missing = shop.run(json!({ "command": ["no-such-program"] })).await;
        assert_eq!(missing.exit, Some(CommandExit::NotStarted));
        assert!(missing.text.starts_with("not started: there is no such program"), "{}", missing.text);
        for (args, why) in [
            (json!({ "command": [] }), "`command` is empty"),
            (json!({ "command": "true", "timeout": "2h" }), "`timeout` is out of bounds"),
            (json!({ "command": "true", "cwd": "nowhere" }), "`cwd` cannot be used"),
            (json!({ "command": "true", "processes": 1000 }), "unknown field"),
            (json!({ "command": 7 }), "must be a list of texts"),
        ] {
            let refused = shop.run(args).await;
            assert_eq!(refused.exit, Some(CommandExit::NotStarted));
            assert!(refused.text.contains(why), "{}", refused.text);
        }
    }
}

/// Paths are the same for commands as for file tools, and only what is in `outputs/` is kept.
#[tokio::test]
async fn what_a_command_leaves_in_outputs_is_taken() {
    for shop in shops().await {
        let made = shop.run(json!({ "command": "mkdir outputs/a && echo one > outputs/a/b.txt && echo x > scratch.txt && ln -s b.txt outputs/a/link && echo y > outputs/.hidden" })).await;
        assert_eq!(kept(&made), [("a/b.txt".to_owned(), "one\n".to_owned())]);
        assert!(made.text.contains("kept: outputs/a/b.txt\n"), "{}", made.text);
        assert!(
            made.text.contains("not kept, because only plain files with plain names are: .hidden, a/link"),
            "{}",
            made.text
        );
        assert!(shop.agent().join("scratch/scratch.txt").exists());
        let again = shop
            .run(json!({ "command": "cat outputs/a/b.txt scratch.txt; rm outputs/.hidden outputs/a/link" }))
            .await;
        assert_eq!((again.text.as_str(), again.files.len()), ("exit code 0\n[stdout]\none\nx", 0));
        // The same size, and with its old time.
        let changed = shop.run(json!({ "command": "touch -r outputs/a/b.txt ref; echo two > outputs/a/b.txt; touch -r ref outputs/a/b.txt; true", "cwd": "." })).await;
        assert_eq!(kept(&changed), [("a/b.txt".to_owned(), "two\n".to_owned())]);
        let ours = shop
            .run(json!({ "command": "echo lie > history/step_001.json; echo x > ../planted; ls .." }))
            .await;
        assert!(
            !shop.agent().join("planted").exists() && !shop.agent().join("history/step_001.json").exists()
        );
        assert!(ours.is_error || ours.text.contains("[stderr]"), "{}", ours.text);
    }
}

/// L12 (with commands): what a command leaves in `outputs/` past the limits ends the call typed, and nothing of it is kept.
/// Elsewhere only `disk` bounds it.
#[tokio::test]
async fn l12_outputs_past_a_limit_are_not_taken() {
    for shop in shops().await {
        let limits = OutputLimits { files_max: 3, bytes_max: 1_000 };
        let run = async |command: &str| {
            let mut attempt = shop.attempt(&json!({ "command": command }));
            attempt.outputs = limits;
            shop.call(attempt).await
        };
        let fits = run("mkdir outputs/d; echo 1 > outputs/1; echo 2 > outputs/d/2; echo 3 > outputs/d/3; seq 9999 > long").await;
        assert_eq!((fits.files.len(), fits.exit), (3, Some(CommandExit::Code(0))), "{}", fits.text);
        for more in ["echo 4 > outputs/4", "rm outputs/4; seq 999 > outputs/1"] {
            let past = run(more).await;
            let limit = Some(CommandExit::PastLimit(CommandLimit::Outputs));
            assert_eq!((past.files.len(), past.exit, past.is_error), (0, limit, true), "{}", past.text);
            assert!(past.text.contains("nothing in outputs/ was kept: max_output_"), "{}", past.text);
        }
        // What was not taken before is taken now.
        fs::write(shop.agent().join("outputs/1"), "mended").unwrap();
        let mended = run("true").await;
        assert_eq!((mended.files.len(), mended.exit), (3, Some(CommandExit::Code(0))), "{}", mended.text);
    }
}

/// Limits come from the role. A box ends past one, and says which.
#[tokio::test]
async fn a_command_past_a_limit_of_its_role_says_which() {
    for shop in shops().await {
        let mut attempt =
            shop.attempt(&json!({ "command": "for i in 1 2 3 4 5 6 7 8; do sleep 86400 & done; wait" }));
        attempt.sandbox = BoxSpec { processes: Some(5), ..BoxSpec::default() };
        let past = shop.call(attempt).await;
        assert_eq!(past.exit, Some(CommandExit::PastLimit(CommandLimit::Processes)));
        assert!(past.text.starts_with("ended past its limit of processes, 5: use less"), "{}", past.text);
    }
}

/// What a command prints reaches watchers while it runs.
#[tokio::test]
async fn output_streams_to_watchers() {
    for shop in shops().await {
        let (send, mut printed) = mpsc::channel::<String>(PIECES_MAX);
        let mut attempt =
            shop.attempt(&json!({ "command": "echo first; read line < wait; echo last $line" }));
        attempt.watchers = OutputWatchers::new(move |text| drop(send.try_send(text.to_owned())));
        rustix::fs::mkfifoat(rustix::fs::CWD, wait_pipe(&shop), rustix::fs::Mode::RWXU).unwrap();
        let running = tokio::spawn(shop.commands.tool().call(attempt));
        assert_eq!(printed.recv().await.unwrap(), "first\n");
        let pipe = wait_pipe(&shop);
        tokio::task::spawn_blocking(move || fs::write(pipe, "so\n").unwrap()).await.unwrap();
        assert_eq!(running.await.unwrap().unwrap().text, "exit code 0\n[stdout]\nfirst\nlast so");
    }
}

/// A pipe in the folder of the command, by which the test tells it something.
fn wait_pipe(shop: &Shop) -> PathBuf {
    let scratch = shop.agent().join("scratch");
    fs::create_dir_all(&scratch).unwrap();
    scratch.join("wait")
}

/// L13 (processes): a command that hangs is reported as timed out, and no process of it is alive. X10: nor if its call is
/// given up.
#[tokio::test]
async fn l13_x10_no_process_outlives_its_call() {
    let family = "trap '' TERM; ( ( sleep 86400 & ) ); sleep 86400 & echo ready; wait";
    for shop in shops().await {
        let held = Arc::new(Mutex::new(None));
        for timeout in [Some("200ms"), None] {
            let (send, mut printed) = mpsc::channel::<()>(PIECES_MAX);
            let mut args = json!({ "command": family });
            if let Some(timeout) = timeout {
                args["timeout"] = timeout.into();
            }
            let mut attempt = shop.attempt(&args);
            let found = Arc::clone(&held);
            attempt.watchers = OutputWatchers::new(move |_| {
                // Each test of nextest is a process.
                let own = std::process::id();
                let mut commands = processes_below(own);
                // What is below it directly waits for the next command.
                commands.retain(|pid| parent(*pid) != Some(own));
                *found.lock().unwrap() = Some(HeldProcesses::new(&commands));
                let _ = send.try_send(());
            });
            let running = tokio::spawn(shop.commands.tool().call(attempt));
            printed.recv().await.unwrap();
            if timeout.is_some() {
                let ended = running.await.unwrap().unwrap();
                assert_eq!((ended.exit, ended.is_error), (Some(CommandExit::TimedOut), true));
                assert!(ended.text.starts_with("timed out"), "{}", ended.text);
            } else {
                running.abort();
                assert!(running.await.unwrap_err().is_cancelled());
            }
            let all = held.lock().unwrap().take().unwrap();
            assert!(all.count() >= 4 && all.have_ended(), "{}", all.count());
        }
    }
}

/// A file alone neither weakens a box nor takes a variable; with the user's word both work.
#[tokio::test]
async fn what_weakens_a_box_needs_the_users_word() {
    let shop = Shop::new(BoxTierChoice::Best);
    let letter = shop.home.path().join("letter.txt");
    fs::write(&letter, "Dear Mother,").unwrap();
    let spec = BoxSpec { walls: BoxWalls::None, env: ["COLOUR".to_owned()].into(), ..BoxSpec::default() };
    let run = async |spec: &BoxSpec| {
        let command = format!("cat {}; echo $COLOUR $SECRET", letter.display());
        let mut attempt = shop.attempt(&json!({ "command": command }));
        attempt.sandbox = spec.clone();
        shop.call(attempt).await
    };
    let refused = run(&spec).await;
    assert_eq!(refused.text, "not started: `box: none` needs the user's permission");
    let boxed = BoxSpec { walls: BoxWalls::Whole, ..spec.clone() };
    assert_eq!(
        run(&boxed).await.text,
        "not started: the variable COLOUR in its box needs the user's permission"
    );
    let value = |text: &str| Some(OsString::from(text));
    let environment = [("COLOUR", "green"), ("SECRET", "none of yours")];
    let environment = environment.map(|(name, text)| (name.to_owned(), value(text))).into();
    shop.commands.prepare(BoxPermissions { walls: BoxWalls::None, environment }, Vec::new());
    let allowed = run(&spec).await;
    assert_eq!(allowed.text, "exit code 0 (without a box)\n[stdout]\nDear Mother,green");
    let inside = run(&boxed).await;
    assert!(inside.text.starts_with("exit code 0\n[stdout]\ngreen\n[stderr]\n"), "{}", inside.text);
}

/// Long output is returned by its beginning and its end.
#[tokio::test]
async fn endless_output_is_bounded() {
    let shop = Shop::new(BoxTierChoice::Best);
    let long = shop.run(json!({ "command": "seq 1000000" })).await;
    assert!(long.text.starts_with("exit code 0\n[stdout]\n1\n2\n") && long.text.ends_with("\n1000000"));
    assert!(long.text.contains("bytes are left out here]\n") && long.text.len() < (2 << 20) + 100);
}

#[tokio::test]
async fn commands_need_a_folder_and_a_prepared_process() {
    let shop = Shop::new(BoxTierChoice::Best);
    let mut attempt = shop.attempt(&json!({ "command": "true" }));
    attempt.workspace = None;
    assert!(shop.call(attempt).await.text.contains("no folder to work in"));
    let unprepared = Commands::new(ATTEMPTS.into());
    let answer = unprepared.tool().call(shop.attempt(&json!({ "command": "true" }))).await.unwrap();
    assert!(answer.text.contains("not prepared for commands"), "{}", answer.text);
}

/// G25, X6 (commands): what an agent, its child and its grandchild have in `run_command` leads to nothing of each other, of
/// the home, or of the user.
#[tokio::test]
async fn g25_x6_commands_stay_with_their_agent() {
    for shop in shops().await {
        fs::write(shop.home.path().join("journal.db"), "OUT").unwrap();
        fs::write(shop.home.path().join("letter"), "OUT").unwrap();
        let tree = shop.home.path().join("workspace").join(TREE.to_string());
        for agent in ["lead", "child", "grandchild", "other"] {
            for folder in ["outputs", "history", "scratch", "offload"] {
                fs::create_dir_all(tree.join(agent).join(folder)).unwrap();
                fs::write(tree.join(agent).join(folder).join("own"), "OUT").unwrap();
            }
        }
        let (home, tree) = (shop.home.path().display().to_string(), tree.display().to_string());
        for agent in ["lead", "child", "grandchild"] {
            let others: Vec<&str> = ["lead", "child", "grandchild", "other"]
                .into_iter()
                .filter(|other| *other != agent)
                .collect();
            let mut lines = vec![
                format!("cat {home}/journal.db"),
                format!("cat {home}/letter"),
                format!("ls {home} && echo OUT"),
                format!("ls {tree} && echo OUT"),
                format!("echo x > {home}/planted && echo OUT"),
                format!("echo x > {tree}/{agent}/planted && echo OUT"),
                format!("mv {tree}/{agent}/outputs {tree}/{agent}/moved && echo OUT"),
                format!("ln -s / {tree}/{agent}/history/root && echo OUT"),
                "echo x > history/own && echo OUT".to_owned(),
                "rm -rf offload/own history/own 2>&1; ls offload/own history/own > /dev/null || echo OUT"
                    .to_owned(),
                "ln -s /etc/shadow l; cat l && echo OUT".to_owned(),
                "cat /proc/1/environ /proc/$PPID/environ | tr '\\0' '\\n' | grep -q CARGO && echo OUT"
                    .to_owned(),
                "env | grep -q CARGO && echo OUT".to_owned(),
                "kill -0 -1 2>/dev/null; ls /proc/1/root/etc/shadow 2>/dev/null && echo OUT".to_owned(),
                "bash -c 'exec 3<>/dev/tcp/1.1.1.1/80' 2>/dev/null && echo OUT".to_owned(),
                "cat < /dev/tty && echo OUT".to_owned(),
                "mount -t tmpfs x . && echo OUT".to_owned(),
                "unshare -r true && echo OUT".to_owned(),
                "chmod u+s /usr/bin/true outputs && echo OUT".to_owned(),
            ];
            for other in others {
                let folder = format!("{tree}/{other}");
                lines.push(format!("cat {folder}/outputs/own {folder}/scratch/own {folder}/history/own"));
                lines.push(format!("cp {folder}/outputs/own stolen && cat stolen"));
                lines.push(format!("echo x >> {folder}/outputs/own && echo OUT"));
                lines.push(format!("ln {folder}/outputs/own linked && cat linked"));
            }
            for line in lines {
                let mut attempt = shop.attempt(&json!({ "command": line }));
                let path = vec![agent.parse().unwrap()].into();
                let role = "coder".parse().unwrap();
                let origin = Arc::new(Origin { tree: TREE, path, role, goal: "Get out.".into() });
                let root = Workspaces::root(shop.home.path());
                attempt.workspace = Some(AgentFolder::new(root.into(), Arc::clone(&origin)));
                attempt.origin = origin;
                let answer = shop.call(attempt).await;
                let printed = answer.text.split("[stdout]").nth(1).unwrap_or_default();
                let printed = printed.split("[stderr]").next().unwrap_or_default();
                assert!(!printed.contains("OUT"), "{agent}: {line}: {}", answer.text);
            }
        }
        for agent in ["lead", "child", "grandchild", "other"] {
            let folder = format!("{tree}/{agent}");
            assert_eq!(fs::read_to_string(format!("{folder}/outputs/own")).unwrap(), "OUT");
            assert_eq!(fs::read_to_string(format!("{folder}/history/own")).unwrap(), "OUT");
            assert!(!Path::new(&format!("{folder}/planted")).exists());
        }
    }
}

pub(crate) fn definition(roles: &[(&str, BoxSpec)]) -> Definition {
    let model: ModelName = "m".parse().unwrap();
    let mut definition = Definition::new("boxes", "Work.", roles[0].0.parse().unwrap());
    for (name, spec) in roles {
        let mut role = Role::new(model.clone()).with_tools([Commands::tool_name()]);
        role.turns.get_or_insert_default().sandbox = spec.clone();
        definition.roles.insert(name.parse().unwrap(), role);
    }
    definition
}

/// X6 (boxes): before a tree starts, it is refused if the user has not allowed what its boxes lack, or if an agent could
/// start one with a weaker box.
#[tokio::test]
async fn x6_a_tree_with_weaker_boxes_does_not_start() {
    let commands = Commands::new(ATTEMPTS.into());
    let whole = BoxSpec::default();
    let open = BoxSpec { walls: BoxWalls::OpenToSignals, ..BoxSpec::default() };
    let none = BoxSpec { walls: BoxWalls::None, ..BoxSpec::default() };
    let env = BoxSpec { env: ["CI".to_owned()].into(), ..BoxSpec::default() };
    let unprepared = commands.check(&definition(&[("lead", whole.clone())])).await.unwrap_err();
    assert!(unprepared.contains("not prepared for commands"), "{unprepared}");
    commands.prepare(BoxPermissions::default(), Vec::new());
    commands.check(&definition(&[("lead", whole.clone())])).await.unwrap();
    for (spec, what) in
        [(&open, "`box: allow: [signals]`"), (&none, "`box: none`"), (&env, "the variable CI")]
    {
        let refused = commands.check(&definition(&[("lead", spec.clone())])).await.unwrap_err();
        assert!(refused.starts_with(&format!("`lead` asks for {what}")), "{refused}");
    }
    let environment = [("CI".to_owned(), None)].into();
    commands.prepare(BoxPermissions { walls: BoxWalls::None, environment }, Vec::new());
    for weaker in [&open, &none, &env] {
        commands.check(&definition(&[("lead", weaker.clone()), ("coder", whole.clone())])).await.unwrap();
        let below = commands.check(&definition(&[("lead", whole.clone()), ("coder", weaker.clone())])).await;
        let below = below.unwrap_err();
        assert!(below.starts_with("the box of `coder` is weaker than that of `lead`"), "{below}");
    }
}
