//! Runs attempts in boxes, from outside.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use spinney_drivers::sandbox::{
    BoxLauncher, BoxLimits, BoxTier, BoxTierChoice, BoxWeakness, BoxedCommand, BoxedEnd, BoxedExit,
    Confinement, OutputStream,
};

use crate::rows::{Row, STOPPED, all};
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
pub(crate) fn table(tier: BoxTierChoice, scene: &Path, step: usize) -> ExitCode {
    let mut outside = Outside::new(scene);
    let (mut made, mut wrong) = (0, 0);
    on_tokio(async {
        let launcher = launcher().await;
        let workspace = outside.scene.path("workspace");
        let mut confinement = confinement(tier, &workspace);
        confinement.read.push(outside.scene.path("readable"));
        confinement.limits = BoxLimits { processes: 32, memory_bytes: 256 << 20, disk_bytes: 64 << 20 };
        for row in all().iter().step_by(step) {
            let end = attempt(&launcher, &confinement, row, &outside).await;
            let damage = outside.damage();
            let said = String::from_utf8_lossy(end.stdout.head()).trim().to_owned();
            let expected = row.stop(end.tier == BoxTier::Namespaces);
            let is_stopped =
                end.exit == BoxedExit::Exited(STOPPED) && expected.explains(&said) && damage.is_empty();
            made += 1;
            wrong += usize::from(!is_stopped);
            let mark = if is_stopped { "stopped" } else { "NOT STOPPED AS EXPECTED" };
            println!("{mark}: {} by {expected:?}: {said} {:?} {damage:?}", row.name, end.exit);
            if !is_stopped {
                println!("    {}", String::from_utf8_lossy(end.stderr.head()).trim());
            }
        }
    });
    println!("{made} attempts, {wrong} not stopped as expected");
    ExitCode::from(u8::from(wrong > 0))
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
                    println!("guard {}", guard.unwrap_or(0));
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
