//! Runs attempts in boxes, from outside.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use spinney_drivers::sandbox::{
    BoxLauncher, BoxLimits, BoxRefusal, BoxTier, BoxTierChoice, BoxWeakness, BoxedCommand, BoxedEnd,
    BoxedExit, Confinement, OutputStream,
};

use crate::folder_rows::{self, Folders};
use crate::rows::{Row, STOPPED, Stop, all};
use crate::scene::{Outside, SECRET};

fn on_tokio<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

async fn launcher() -> BoxLauncher {
    BoxLauncher::new("/proc/self/exe".into()).await.unwrap()
}

/// What boxes of these tests may read beside the system: this program.
fn confinement(tier: BoxTierChoice, workspace: &Path) -> Confinement {
    let own = std::env::current_exe().unwrap();
    Confinement { tier, read: vec![own], ..Confinement::new(workspace.to_owned()) }
}

/// Runs one program and prints what it wrote and how it ended.
pub(crate) fn run(tier: BoxTierChoice, workspace: &Path, command: &[OsString]) -> ExitCode {
    on_tokio(async {
        let launcher = launcher().await;
        println!("{:?}", launcher.machine());
        let command =
            BoxedCommand { timeout: Duration::from_secs(20), ..BoxedCommand::new(command.iter().cloned()) };
        let mut run = launcher.start(&confinement(tier, workspace), &command).unwrap();
        let mut print = |stream, bytes: &[u8]| {
            let text = String::from_utf8_lossy(bytes);
            if stream == OutputStream::Stdout { print!("{text}") } else { eprint!("{text}") }
        };
        let end = run.finish(&mut print).await.unwrap();
        println!("{:?} {:?} {:?}", end.exit, end.tier, end.peak);
    });
    ExitCode::SUCCESS
}

/// Makes attempts, each in its own box, and prints what stopped each. Fails if one was not stopped as its row says.
pub(crate) fn table(tier: BoxTierChoice, scene: &Path, step: usize, landlock_abi_max: u32) -> ExitCode {
    let folders = scene.join("folders");
    let mut tally = Tally::default();
    on_tokio(async {
        // First: the other scene knows every name in its folder.
        let launcher = launcher().await.as_with_landlock(landlock_abi_max);
        let has_signals = is_open_to_signals(&launcher, tier);
        if !has_signals {
            let folders = Folders::new(&folders, launcher, tier);
            for row in folder_rows::all(tier).iter().step_by(step) {
                let tried = folders.try_row(row).await;
                let expected = row.stop(tier == BoxTierChoice::Namespaces);
                let is_stopped = tried.as_ref().is_ok_and(|said| expected.explains(said));
                let name = format!("{:?}: {}", row.about, row.name);
                tally.count(&name, expected, is_stopped, &format!("{tried:?}"));
            }
        }
    });
    if folders.exists() {
        std::fs::remove_dir_all(&folders).unwrap();
    }
    let mut outside = Outside::new(scene);
    on_tokio(async {
        let launcher = launcher().await.as_with_landlock(landlock_abi_max);
        let workspace = outside.scene.path("workspace");
        let mut confinement = confinement(tier, &workspace);
        confinement.read.push(outside.scene.path("readable"));
        confinement.limits = BoxLimits { processes: 32, memory_bytes: 256 << 20, disk_bytes: 64 << 20 };
        let has_signals = is_open_to_signals(&launcher, tier);
        if has_signals {
            confinement.weaknesses.push(BoxWeakness::Signals);
        }
        for row in all().iter().step_by(step).filter(|row| !(has_signals && row.is_signal())) {
            let end = attempt(&launcher, &confinement, row, &outside).await;
            let damage = outside.damage();
            let said = String::from_utf8_lossy(end.stdout.head()).trim().to_owned();
            let expected = row.stop(end.tier == BoxTier::Namespaces);
            let is_stopped =
                end.exit == BoxedExit::Exited(STOPPED) && expected.explains(&said) && damage.is_empty();
            let complained = String::from_utf8_lossy(end.stderr.head()).trim().to_owned();
            let said = format!("{said} {:?} {damage:?} {complained}", end.exit);
            tally.count(&row.name, expected, is_stopped, said.trim_end());
        }
    });
    println!("{} attempts, {} not stopped as expected", tally.made, tally.wrong);
    ExitCode::from(u8::from(tally.wrong > 0))
}

/// Whether commands of this tier can signal others: the kernel does not know how to keep that inside.
fn is_open_to_signals(launcher: &BoxLauncher, tier: BoxTierChoice) -> bool {
    matches!(launcher.tier(&confinement(tier, Path::new("/nonexistent"))), Err(BoxRefusal::Signals { .. }))
}

/// What became of the attempts.
#[derive(Default)]
struct Tally {
    made: u32,
    wrong: u32,
}

impl Tally {
    fn count(&mut self, name: &str, expected: Stop, is_stopped: bool, said: &str) {
        self.made += 1;
        self.wrong += u32::from(!is_stopped);
        let mark = if is_stopped { "stopped" } else { "NOT STOPPED AS EXPECTED" };
        println!("{mark}: {name} by {expected:?}: {said}");
    }
}

/// Makes the attempts without a box, but for those that would end this program, take long or leave something on the
/// machine, and prints how many get out: what stops them elsewhere is the box. For ordinary users only.
pub(crate) fn unboxed(scene: &Path) -> ExitCode {
    let outside = Outside::new(scene);
    let mut out = 0;
    on_tokio(async {
        let launcher = launcher().await;
        let mut confinement = confinement(BoxTierChoice::Best, &outside.scene.path("workspace"));
        confinement.weaknesses.push(BoxWeakness::Unboxed);
        let left_out = [
            "create /var/tmp/new",
            "read /dev/ptmx",
            "act a name from dns",
            "act udp to the world",
            "act tcp to the world",
            "act stop the parent",
            "act end the parent",
            "act signal everything",
        ];
        for row in all().iter().filter(|row| !left_out.contains(&row.name.as_str())) {
            let end = attempt(&launcher, &confinement, row, &outside).await;
            out += usize::from(end.stdout.head().starts_with(b"OUT: "));
        }
    });
    println!("{out}");
    ExitCode::SUCCESS
}

async fn attempt(
    launcher: &BoxLauncher,
    confinement: &Confinement,
    row: &Row,
    outside: &Outside,
) -> BoxedEnd {
    let own = std::env::current_exe().unwrap().display().to_string();
    let words = [vec![own, "try".to_owned(), row.name.clone()], outside.scene.to_words()].concat();
    let command = BoxedCommand { timeout: Duration::from_secs(20), ..BoxedCommand::new(words) };
    let mut run = launcher.start(confinement, &command).unwrap();
    let end = run.finish(&mut |_, _| ()).await.unwrap();
    assert!(!String::from_utf8_lossy(end.stdout.head()).contains(SECRET), "{} shows the secret", row.name);
    end
}

/// Starts boxes whose commands never end, prints a line for each that runs, and waits to be killed.
pub(crate) fn hold(count: usize, tier: BoxTierChoice, workspace: &Path) -> ExitCode {
    // A child, a daemon that has forked twice, and one in its own session.
    let script = "sleep 86400 & ( ( sleep 86400 & ) ); setsid sleep 86400 & echo ready; wait";
    on_tokio(async {
        let launcher = launcher().await;
        let mut runs = Vec::new();
        for _ in 0..count {
            let command = BoxedCommand::new(["sh", "-c", script]);
            runs.push(launcher.start(&confinement(tier, workspace), &command).unwrap());
        }
        let finished = runs.iter_mut().map(|run| async move {
            let guard = run.guard_pid();
            run.finish(&mut |_, bytes| {
                if bytes.starts_with(b"ready") {
                    println!("guard {guard}");
                }
            })
            .await
        });
        let mut set: Vec<_> = finished.map(Box::pin).collect();
        std::future::poll_fn(|context| {
            set.retain_mut(|run| run.as_mut().poll(context).is_pending());
            if set.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
    });
    ExitCode::SUCCESS
}
