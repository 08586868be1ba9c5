//! Commands in boxes, as real processes: how they end, what they leave, what they may use, and what they try to reach. The
//! helper of the boxes is the program of the attempts, which also makes those.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, geteuid, kill_process};
use spinney_drivers::commands::refusal_remedy;
use spinney_drivers::sandbox::{
    BoxLauncher, BoxLimit, BoxLimits, BoxRefusal, BoxStep, BoxTier, BoxTierChoice, BoxWeakness, BoxedCommand,
    BoxedEnd, BoxedExit, BoxedInput, Confinement, LandlockSupport, NamespaceNeed, NamespaceSupport,
    OutputStream,
};
use spinney_testkit::processes::{HeldProcesses, processes_below};
use tempfile::TempDir;

pub(crate) const ATTEMPTS: &str = env!("CARGO_BIN_EXE_attempts");
/// An ordinary user, for tests that run as root.
const NOBODY: u32 = 65_534;
/// Every so many rows of the table are tried here: at least 20. The soak tries all.
const SAMPLE_STEP: &str = "11";

/// A folder that boxes do not have on their own, as they have `/tmp`.
pub(crate) fn folder() -> TempDir {
    folder_on("/var/tmp")
}

fn folder_on(disk: &str) -> TempDir {
    tempfile::Builder::new().prefix("spinney-box-").tempdir_in(disk).unwrap()
}

pub(crate) async fn launcher() -> BoxLauncher {
    BoxLauncher::new(ATTEMPTS.into()).await.unwrap()
}

/// The tiers that this machine has.
#[expect(clippy::print_stdout, reason = "says what was not tried")]
pub(crate) fn tiers(launcher: &BoxLauncher) -> Vec<BoxTierChoice> {
    let machine = launcher.machine();
    let has_landlock = matches!(machine.landlock, LandlockSupport::Abi(abi) if abi >= 6);
    let tiers = [
        (BoxTierChoice::WithoutNamespaces, has_landlock),
        (BoxTierChoice::Namespaces, has_landlock && machine.namespaces == NamespaceSupport::Work),
    ];
    let (there, missing): (Vec<_>, Vec<_>) = tiers.into_iter().partition(|(_, is_there)| *is_there);
    missing.iter().for_each(|(tier, _)| println!("not on this machine: {tier:?} ({machine:?})"));
    there.into_iter().map(|(tier, _)| tier).collect()
}

fn shell(script: &str) -> BoxedCommand {
    BoxedCommand { timeout: Duration::from_secs(60), ..BoxedCommand::new(["sh", "-c", script]) }
}

async fn run(launcher: &BoxLauncher, confinement: &Confinement, command: &BoxedCommand) -> BoxedEnd {
    launcher.start(confinement, command).unwrap().finish(&mut |_, _| ()).await.unwrap()
}

fn confinement(tier: BoxTierChoice, workspace: &Path) -> Confinement {
    Confinement { tier, ..Confinement::new(workspace.to_owned()) }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test]
async fn a_command_has_its_input_its_folder_and_a_typed_end() {
    let (launcher, home) = (launcher().await, folder());
    for tier in tiers(&launcher) {
        let confinement = confinement(tier, home.path());
        let script = "cat; pwd >&2; echo $HOME >&2; env | wc -l >&2; exit 3";
        let command = BoxedCommand { input: BoxedInput::Bytes(b"given".to_vec()), ..shell(script) };
        let mut seen = Vec::new();
        let mut running = launcher.start(&confinement, &command).unwrap();
        let mut collect = |stream, bytes: &[u8]| seen.push((stream, bytes.to_vec()));
        let end = running.finish(&mut collect).await.unwrap();
        let path = home.path().canonicalize().unwrap().display().to_string();
        assert_eq!((end.exit, text(end.stdout.head())), (BoxedExit::Exited(3), "given".to_owned()));
        // PATH, HOME, LANG, TERM, and the shell's own PWD.
        assert_eq!(text(end.stderr.head()), format!("{path}\n{path}\n5\n"));
        assert!(seen.contains(&(OutputStream::Stdout, b"given".to_vec())));
        assert_eq!(
            run(&launcher, &confinement, &shell("kill -SEGV $$")).await.exit,
            BoxedExit::Signalled(11)
        );
        let missing = BoxedCommand::new(["no-such-program"]);
        let not_started = BoxedExit::NotStarted { step: BoxStep::Exec, errno: libc::ENOENT };
        assert_eq!(run(&launcher, &confinement, &missing).await.exit, not_started);
        let mut absent = confinement.clone();
        absent.read.push(home.path().join("absent"));
        let not_granted = BoxedExit::NotStarted { step: BoxStep::Grant { index: 1 }, errno: libc::ENOENT };
        assert_eq!(run(&launcher, &absent, &shell(":")).await.exit, not_granted);
    }
}

#[tokio::test]
async fn long_output_is_kept_by_its_head_and_tail() {
    let (launcher, home) = (launcher().await, folder());
    for tier in tiers(&launcher) {
        let command = BoxedCommand {
            kept_bytes: 100,
            ..shell("i=0; while [ $i -lt 9999 ]; do i=$((i+1)); echo $i; done")
        };
        let end = run(&launcher, &confinement(tier, home.path()), &command).await;
        assert!(
            text(end.stdout.head()).starts_with("1\n2\n") && text(&end.stdout.tail()).ends_with("\n9999\n")
        );
        assert_eq!((end.stdout.total_bytes(), end.stdout.omitted_bytes()), (48_888, 48_688));
    }
}

/// What a command leaves running ends with it, and so does everything at a timeout and when it is cancelled.
#[tokio::test]
async fn nothing_outlives_a_call() {
    let (launcher, home) = (launcher().await, folder());
    let family = "( ( sleep 86400 & ) ) ; sleep 86400 & echo ready";
    for tier in tiers(&launcher) {
        let confinement = confinement(tier, home.path());
        assert_eq!(run(&launcher, &confinement, &shell(family)).await.exit, BoxedExit::Exited(0));
        let forever = shell(&format!("trap '' TERM; {family}; wait"));
        let short = BoxedCommand { timeout: Duration::from_millis(300), ..forever.clone() };
        assert_eq!(run(&launcher, &confinement, &short).await.exit, BoxedExit::TimedOut);
        let mut cancelled = launcher.start(&confinement, &forever).unwrap();
        let all = until_ready(&mut cancelled).await;
        cancelled.cancel();
        assert_eq!(cancelled.finish(&mut |_, _| ()).await.unwrap().exit, BoxedExit::Cancelled);
        assert!(all.count() >= 5 && all.have_ended(), "{}", all.count());
        let mut dropped = launcher.start(&confinement, &forever).unwrap();
        let all = until_ready(&mut dropped).await;
        drop(dropped);
        assert!(all.have_ended());
    }
}

/// Handles of every process of a box, once its command has said that all are there.
async fn until_ready(run: &mut spinney_drivers::sandbox::BoxedRun) -> HeldProcesses {
    let guard = run.guard_pid();
    let (tell, ready) = tokio::sync::watch::channel(());
    let mut on_output = move |_: OutputStream, _: &[u8]| tell.send_replace(());
    let mut ready = ready;
    tokio::select! {
        end = run.finish(&mut on_output) => panic!("{end:?}"),
        told = ready.changed() => told.unwrap(),
    }
    HeldProcesses::new(&[&[guard], &*processes_below(guard)].concat())
}

/// X10 (processes): kill -9 of the process that runs 50 commands, and of it with all guards, leaves nothing.
#[tokio::test]
async fn x10_a_killed_process_leaves_no_command() {
    let (launcher, home) = (launcher().await, folder());
    for tier in tiers(&launcher) {
        for with_guards in [false, true] {
            let mut holder = hold(word(tier), home.path());
            let lines = BufReader::new(holder.stdout.take().unwrap()).lines().map(Result::unwrap).take(50);
            let guards: Vec<i32> =
                lines.map(|line| line.strip_prefix("guard ").unwrap().parse().unwrap()).collect();
            assert_eq!(guards.len(), 50);
            let all = HeldProcesses::new(&processes_below(holder.id()));
            assert!(all.count() >= 250, "{}", all.count());
            let killed =
                [holder.id().cast_signed()].into_iter().chain(guards.into_iter().filter(|_| with_guards));
            for pid in killed {
                match kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL) {
                    // A guard ends by itself when the holder is gone.
                    Ok(()) | Err(Errno::SRCH) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            holder.wait().unwrap();
            assert!(all.have_ended(), "{tier:?}, with guards: {with_guards}");
        }
    }
}

/// The process that guards are forks of, of a launcher that has it; a command runs and is ended meanwhile.
async fn fork_server(launcher: &BoxLauncher, home: &Path) -> u32 {
    let forever = shell("sleep 86400");
    let mut running = launcher.start(&confinement(BoxTierChoice::Best, home), &forever).unwrap();
    let server = parent(running.guard_pid()).unwrap();
    assert_ne!(server, std::process::id());
    running.cancel();
    assert_eq!(running.finish(&mut |_, _| ()).await.unwrap().exit, BoxedExit::Cancelled);
    server
}

/// Killed, it takes no command with it, and another one is started.
#[tokio::test]
async fn a_fork_server_that_is_killed_is_replaced() {
    let (launcher, home) = (launcher().await, folder());
    let forever = shell("sleep 86400");
    let mut running = launcher.start(&confinement(BoxTierChoice::Best, home.path()), &forever).unwrap();
    let server = fork_server(&launcher, home.path()).await;
    assert_eq!(Some(server), parent(running.guard_pid()));
    let held = HeldProcesses::new(&[server]);
    kill_process(Pid::from_raw(server.cast_signed()).unwrap(), Signal::KILL).unwrap();
    assert!(held.have_ended());
    assert_ne!(fork_server(&launcher, home.path()).await, server);
    running.cancel();
    assert_eq!(running.finish(&mut |_, _| ()).await.unwrap().exit, BoxedExit::Cancelled);
}

#[tokio::test]
async fn a_fork_server_ends_with_its_launcher() {
    let (launcher, home) = (launcher().await, folder());
    let held = HeldProcesses::new(&[fork_server(&launcher, home.path()).await]);
    drop(launcher);
    assert!(held.have_ended());
}

/// It waits for the commands that run: nothing else might collect their guards.
#[tokio::test]
async fn a_fork_server_that_is_not_needed_ends_after_its_guards() {
    let (launcher, home) = (launcher().await, folder());
    let forever = shell("sleep 86400");
    let mut running = launcher.start(&confinement(BoxTierChoice::Best, home.path()), &forever).unwrap();
    let server = fork_server(&launcher, home.path()).await;
    let held = HeldProcesses::new(&[server]);
    tokio::time::pause();
    tokio::time::sleep(Duration::from_secs(121)).await;
    tokio::time::resume();
    assert_ne!(fork_server(&launcher, home.path()).await, server);
    assert_eq!(Some(server), parent(running.guard_pid()));
    running.cancel();
    assert_eq!(running.finish(&mut |_, _| ()).await.unwrap().exit, BoxedExit::Cancelled);
    assert!(held.have_ended());
}

/// One that answers too late is replaced: what it starts then runs nothing, and is not taken for the guard of another call.
#[tokio::test]
async fn a_fork_server_that_does_not_answer_starts_nothing() {
    let (launcher, home) = (launcher().await, folder());
    let server = fork_server(&launcher, home.path()).await;
    let held = HeldProcesses::new(&[server]);
    let send = |signal| kill_process(Pid::from_raw(server.cast_signed()).unwrap(), signal).unwrap();
    send(Signal::STOP);
    let made = launcher.start(&confinement(BoxTierChoice::Best, home.path()), &shell("touch made"));
    assert!(matches!(made, Err(BoxRefusal::NotStarted(_))), "{made:?}");
    send(Signal::CONT);
    assert!(held.have_ended());
    assert!(!home.path().join("made").exists());
    assert_ne!(fork_server(&launcher, home.path()).await, server);
}

/// A command finds nothing of the one before: each guard begins as the fork server was at its start.
#[tokio::test]
async fn nothing_of_a_command_reaches_the_next() {
    let (launcher, home) = (launcher().await, folder());
    for tier in tiers(&launcher) {
        let first = Confinement {
            environment: vec![("OF_THE_FIRST".into(), "secret".into())],
            ..confinement(tier, home.path())
        };
        let mut held = launcher.start(&first, &shell("umask 0; cd /; sleep 86400")).unwrap();
        // Without a pipeline: a signal of one part can make the start of another fail.
        let show = "umask; pwd; env; ls /proc/self/fd 2> /dev/null; true";
        let second = run(&launcher, &confinement(tier, home.path()), &shell(show)).await;
        held.cancel();
        held.finish(&mut |_, _| ()).await.unwrap();
        let alone = run(&self::launcher().await, &confinement(tier, home.path()), &shell(show)).await;
        assert_eq!(text(second.stdout.head()), text(alone.stdout.head()), "{tier:?}");
        assert!(!text(second.stdout.head()).contains("secret"));
    }
}

/// The parent of a process; none if it has ended.
pub(crate) fn parent(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// A process that runs 50 commands.
fn hold(tier: &str, workspace: &Path) -> Child {
    let mut command = Command::new(ATTEMPTS);
    command.args(["hold", "50", tier]).arg(workspace).stdout(Stdio::piped()).spawn().unwrap()
}

fn word(tier: BoxTierChoice) -> &'static str {
    match tier {
        BoxTierChoice::WithoutNamespaces => "1",
        BoxTierChoice::Namespaces | BoxTierChoice::Best => "2",
    }
}

/// The program of the attempts with a scene that belongs to the user as whom it runs.
pub(crate) fn in_scene(user: Option<u32>, words: &[&str], last: &[&str]) -> String {
    let home = folder();
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (program, scene) = (home.path().join("attempts"), home.path().join("scene"));
    fs::copy(ATTEMPTS, &program).unwrap();
    fs::create_dir(&scene).unwrap();
    let mut command = Command::new(program);
    if let Some(user) = user {
        chown(&scene, Some(user), Some(user)).unwrap();
        command.uid(user).gid(user);
    }
    command.args(words).arg(scene).args(last).env("VICTIMS_SECRET", "the-secret-of-this-scene");
    let output = command.output().unwrap();
    let (said, complained) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{said}{complained}");
    said
}

/// Makes a sample of all attempts.
async fn table(user: Option<u32>, tier: BoxTierChoice) {
    if tiers(&launcher().await).contains(&tier) {
        let said = in_scene(user, &["table", word(tier)], &[SAMPLE_STEP]);
        assert!(said.lines().filter(|line| line.starts_with("stopped: ")).count() >= 20, "{said}");
    }
}

/// Landlock of older kernels: with versions 3 to 5 a box has the rules of that version, and what it refuses is refused.
/// Without namespaces such a box is open to signals, and refused unless that was allowed.
#[tokio::test]
async fn a_box_has_the_rules_of_an_older_landlock() {
    for tier in tiers(&launcher().await) {
        for abi in ["3", "4", "5"] {
            let said = in_scene(ordinary(), &["table", word(tier)], &["29", abi]);
            assert!(said.lines().filter(|line| line.starts_with("stopped: ")).count() >= 7, "{said}");
        }
        let home = folder();
        for abi in 0..=7 {
            let old = launcher().await.as_with_landlock(abi);
            let mut confinement = confinement(tier, home.path());
            let refused = old.tier(&confinement);
            let remedy = refused.as_ref().err().and_then(refusal_remedy);
            match (abi, tier) {
                (0..=2, _) => {
                    let found = LandlockSupport::Abi(abi);
                    let is_meant =
                        matches!(refused, Err(BoxRefusal::Landlock { found: is, needed: 3 }) if is == found);
                    assert!(is_meant, "{abi}: {refused:?}");
                    assert_eq!(remedy, Some("use Linux 6.2 or newer"));
                }
                (3..=5, BoxTierChoice::WithoutNamespaces) => {
                    let is_meant = matches!(refused, Err(BoxRefusal::Signals { landlock_abi, needed: 6, .. }) if landlock_abi == abi);
                    assert!(is_meant, "{abi}: {refused:?}");
                    assert_eq!(
                        remedy,
                        Some("use Linux 6.12 or newer, or allow namespaces for ordinary users")
                    );
                    confinement.weaknesses.push(BoxWeakness::Signals);
                    let end = run(&old, &confinement, &shell("echo ran; : > /etc/new")).await;
                    assert_eq!((end.exit, end.tier), (BoxedExit::Exited(2), BoxTier::Landlock));
                    assert_eq!(text(end.stdout.head()), "ran\n");
                }
                _ => assert!(refused.is_ok(), "{abi}: {refused:?}"),
            }
            if abi < 3 {
                confinement.weaknesses.push(BoxWeakness::Signals);
                assert!(matches!(old.start(&confinement, &shell(":")), Err(BoxRefusal::Landlock { .. })));
            }
        }
    }
}

/// The box stops the attempts, and not the machine: without one many get out. The rest needs rights that an ordinary user
/// does not have, or something that an earlier one has removed.
#[test]
fn attempts_get_out_where_there_is_no_box() {
    let out: usize = in_scene(ordinary(), &["unboxed"], &[]).trim().parse().unwrap();
    assert!(out >= 50, "{out}");
}

/// Whom attempts are made as: root if we are, or an ordinary user.
pub(crate) fn ordinary() -> Option<u32> {
    geteuid().is_root().then_some(NOBODY)
}

/// G25: no attempt gets out of a box without namespaces.
#[tokio::test]
async fn g25_nothing_gets_out_of_a_box_of_an_ordinary_user() {
    table(ordinary(), BoxTierChoice::WithoutNamespaces).await;
}

/// G25: no attempt gets out of a box with namespaces.
#[tokio::test]
async fn g25_nothing_gets_out_of_namespaces_of_an_ordinary_user() {
    table(ordinary(), BoxTierChoice::Namespaces).await;
}

/// G25: nor as root.
#[tokio::test]
async fn g25_nothing_gets_out_of_a_box_of_root() {
    if geteuid().is_root() {
        table(None, BoxTierChoice::WithoutNamespaces).await;
    }
}

/// G25: nor as root in namespaces.
#[tokio::test]
async fn g25_nothing_gets_out_of_namespaces_of_root() {
    if geteuid().is_root() {
        table(None, BoxTierChoice::Namespaces).await;
    }
}

/// What is in a folder, with a kibibyte for each file, as limits count it.
fn bytes_in(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries
        .map(|entry| {
            let found = entry.metadata().unwrap();
            let inside = if found.is_dir() { bytes_in(&entry.path()) } else { 0 };
            found.blocks() * 512 + 1_024 + inside
        })
        .sum()
}

async fn bomb(kind: &str, limits: BoxLimits, past: BoxLimit) {
    bomb_beside(kind, limits, past, Beside { on: "/var/tmp", others: 0 }).await;
}

/// What is on the same disk as a box.
#[derive(Clone, Copy)]
struct Beside {
    on: &'static str,
    /// How many files others remove there: one after each hundred names in the box, and larger than those.
    others: usize,
}

async fn bomb_beside(kind: &str, limits: BoxLimits, past: BoxLimit, Beside { on, others }: Beside) {
    let launcher = launcher().await;
    for tier in tiers(&launcher) {
        let (beside, home) = (folder_on(on), folder_on(on));
        let removed: Vec<PathBuf> = (0..others).map(|at| beside.path().join(at.to_string())).collect();
        for path in &removed {
            fallocate(fs::File::create(path).unwrap(), FallocateFlags::empty(), 0, 256 << 10).unwrap();
        }
        let read = vec![PathBuf::from(ATTEMPTS)];
        let confinement = Confinement { limits, read, ..confinement(tier, home.path()) };
        let words: Vec<OsString> = [ATTEMPTS, "bomb", kind].map(OsString::from).to_vec();
        let mut running = launcher.start(&confinement, &BoxedCommand::new(words)).unwrap();
        let guard = HeldProcesses::new(&[running.guard_pid()]);
        let (is_over, names) = (Arc::new(AtomicBool::new(false)), home.path().to_owned());
        let over = Arc::clone(&is_over);
        let removing = std::thread::spawn(move || {
            for (at, path) in removed.into_iter().enumerate() {
                while !names.join(format!("name-{}", at * 100)).exists() && !over.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
                fs::remove_file(path).unwrap();
            }
        });
        let end = running.finish(&mut |_, _| ()).await.unwrap();
        is_over.store(true, Ordering::Relaxed);
        removing.join().unwrap();
        assert_eq!(end.exit, BoxedExit::PastLimit(past), "{kind} {tier:?} {end:?}");
        let peak = end.peak;
        let is_below = peak.processes <= limits.processes
            && peak.memory_bytes < 2 * limits.memory_bytes
            && peak.disk_bytes < 2 * limits.disk_bytes;
        assert!(is_below, "{kind} {tier:?} {peak:?}");
        let left = bytes_in(home.path());
        assert!(left < 2 * limits.disk_bytes, "{kind} {tier:?} left {left} bytes");
        assert!(guard.have_ended());
    }
}

const LIMITS: BoxLimits = BoxLimits { processes: 256, memory_bytes: 512 << 20, disk_bytes: 256 << 20 };

/// Several at once, because a guard that only samples loses that race.
#[tokio::test]
async fn a_fork_bomb_never_passes_its_limit() {
    let bomb = |kind| bomb(kind, LIMITS, BoxLimit::Processes);
    tokio::join!(bomb("fork"), bomb("fork"), bomb("fork-sessions"));
}

#[tokio::test]
async fn a_memory_bomb_ends_before_twice_its_limit() {
    bomb("memory", LIMITS, BoxLimit::Memory).await;
    bomb("memory-forks", LIMITS, BoxLimit::Memory).await;
}

#[tokio::test]
async fn a_disk_bomb_ends_before_twice_its_limit() {
    bomb("disk", LIMITS, BoxLimit::Disk).await;
    bomb("disk-unlinked", LIMITS, BoxLimit::Disk).await;
    bomb("disk-names", BoxLimits { disk_bytes: 4 << 20, ..LIMITS }, BoxLimit::Disk).await;
}

/// A disk with no less room than before hides what a box takes. In memory, names are made fastest.
#[tokio::test]
async fn a_bomb_of_names_is_seen_while_others_remove_theirs() {
    let limits = BoxLimits { disk_bytes: 4 << 20, ..LIMITS };
    bomb_beside("disk-names", limits, BoxLimit::Disk, Beside { on: "/dev/shm", others: 200 }).await;
}

/// In namespaces a path can be hidden and another one kept as it is, in a folder that is writable.
#[tokio::test]
async fn hidden_and_read_only_paths_need_namespaces() {
    let (launcher, home) = (launcher().await, folder());
    let path = |name: &str| home.path().join(name);
    for folder in ["workspace", "repository/.git/hooks", "repository/keys"] {
        fs::create_dir_all(path(folder)).unwrap();
    }
    fs::write(path("repository/.git/config"), "as it was").unwrap();
    fs::write(path("repository/keys/key"), "hidden").unwrap();
    fs::write(path("repository/.env"), "hidden").unwrap();
    let confinement = |tier| Confinement {
        write: vec![path("repository")],
        hidden: vec![path("repository/keys"), path("repository/.env"), path("repository/absent")],
        read_only: vec![path("repository/.git")],
        ..confinement(tier, &path("workspace"))
    };
    let script = "cd ../repository; echo x > new || exit 1
        cat keys/key .env; ls keys; echo x > .git/config; echo x > .git/hooks/pre-commit; mv .git .old; rm -rf .git; cat .git/config";
    for tier in tiers(&launcher) {
        if tier == BoxTierChoice::WithoutNamespaces {
            let refused = launcher.start(&confinement(tier), &shell(":"));
            let needs = NamespaceNeed::HiddenPaths;
            assert!(
                matches!(refused, Err(BoxRefusal::NamespacesUnwanted { needs: found }) if found == needs)
            );
            continue;
        }
        let end = run(&launcher, &confinement(tier), &shell(script)).await;
        assert_eq!(
            (end.exit, text(end.stdout.head())),
            (BoxedExit::Exited(0), "as it was".to_owned()),
            "{end:?}"
        );
        assert!(path("repository/new").exists() && !path("repository/.git/hooks/pre-commit").exists());
        assert_eq!(fs::read_to_string(path("repository/keys/key")).unwrap(), "hidden");
    }
}

/// A box is never weaker than was asked for, unless that was said.
#[tokio::test]
async fn a_command_without_a_box_needs_the_word_for_it() {
    let (launcher, home) = (launcher().await, folder());
    let mut confinement = confinement(BoxTierChoice::Best, home.path());
    let boxed = launcher.tier(&confinement);
    assert!(!matches!(boxed, Ok(BoxTier::Unboxed)));
    confinement.weaknesses.push(BoxWeakness::Unboxed);
    let end =
        run(&launcher, &confinement, &shell("cat /proc/self/status | grep NoNewPrivs; ( sleep 86400 & )"))
            .await;
    assert_eq!((end.exit, end.tier), (BoxedExit::Exited(0), BoxTier::Unboxed));
    confinement.hidden.push(home.path().to_owned());
    assert!(matches!(launcher.tier(&confinement), Err(BoxRefusal::NamespacesUnwanted { .. })));
    let relative = Confinement::new("here".into());
    assert!(matches!(launcher.start(&relative, &shell(":")), Err(BoxRefusal::RelativePath { .. })));
}

/// Modes of files outside are out of Landlock's reach, so a box without namespaces changes them only if that was said.
#[tokio::test]
async fn modes_change_in_namespaces_or_if_that_was_said() {
    let (launcher, home) = (launcher().await, folder());
    for tier in tiers(&launcher) {
        let mut confinement = confinement(tier, home.path());
        let script = shell("echo x > file; chmod 700 file");
        let expected = if tier == BoxTierChoice::Namespaces { 0 } else { 1 };
        assert_eq!(run(&launcher, &confinement, &script).await.exit, BoxedExit::Exited(expected));
        confinement.weaknesses.push(BoxWeakness::FileModes);
        assert_eq!(run(&launcher, &confinement, &script).await.exit, BoxedExit::Exited(0));
    }
}
