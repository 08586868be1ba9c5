//! `cargo bench -p spinney-drivers --bench boxes`: what `run_command true` costs, in a box of each tier and without the
//! journal, against a bare fork and exec in the same run, and against bubblewrap where it is installed. Times alone say
//! little on a machine that does other things too, so nothing here fails on a time.
#![expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a bench prints and reads the clock")]
#![expect(clippy::float_arithmetic, reason = "ratios are for people; no money is counted here")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot run has nothing else to say")]

use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Instant;

use spinney_drivers::commands::{BoxPermissions, Commands};
use spinney_drivers::sandbox::{BoxTierChoice, guard_a_box};
use spinney_drivers::workspace::Workspaces;
use spinney_kernel::context::Origin;
use spinney_kernel::port::AgentFolder;
use spinney_kernel::port::tool::ToolAttempt;
use spinney_kernel::primitives::{CallId, CommandExit, TreeId};
use tempfile::TempDir;

const ROUNDS: usize = 201;
/// How many times a bare fork and exec a command in a box may take.
const BOUNDS: [(BoxTierChoice, &str, f64); 2] = [
    (BoxTierChoice::WithoutNamespaces, "in a box, tier 1", 6.0),
    (BoxTierChoice::Namespaces, "in a box, tier 2", 10.0),
];

fn main() -> ExitCode {
    if let Some(exit) = guard_a_box() {
        return exit;
    }
    // `cargo test --benches` only wants to know that it starts.
    if std::env::args().any(|word| word == "--test") {
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let shops = BOUNDS.map(|(tier, _, _)| Shop::new(tier));
    let mut times: [Vec<f64>; 4] = Default::default();
    for _ in 0..ROUNDS {
        times[0].push(timed(|| spawned(&mut Command::new("true"))));
        for (shop, times) in shops.iter().zip(&mut times[1..]) {
            times.push(timed(|| runtime.block_on(shop.run())));
        }
        times[3].push(timed(|| spawned(&mut bubblewrap())));
    }
    let [bare, tier_1, tier_2, peer] = times.map(median);
    println!("{:<28} {bare:>7.2} ms", "true, fork and exec");
    for ((_, what, bound), took) in BOUNDS.into_iter().zip([tier_1, tier_2]) {
        let ratio = took / bare;
        let verdict = if ratio <= bound { "" } else { " MISSED" };
        println!("run_command true {what:<17} {took:>5.2} ms {ratio:>6.2}x (at most {bound}x){verdict}");
    }
    if Command::new("bwrap").arg("--version").output().is_ok() {
        println!("{:<28} {peer:>7.2} ms {:>6.2}x", "true, in bubblewrap", peer / bare);
    }
    ExitCode::SUCCESS
}

struct Shop {
    home: TempDir,
    commands: Commands,
}

impl Shop {
    fn new(tier: BoxTierChoice) -> Self {
        let commands = Commands::with_tier("/proc/self/exe".into(), tier);
        commands.prepare(BoxPermissions::default(), Vec::new());
        Self { home: TempDir::new().unwrap(), commands }
    }

    async fn run(&self) {
        let path = vec!["lead".parse().unwrap()].into();
        let (tree, role) = (TreeId::new([7; 16]), "lead".parse().unwrap());
        let origin = Arc::new(Origin { tree, path, role, goal: "Nothing.".into() });
        let (name, args) = (Commands::tool_name(), r#"{"command": ["true"]}"#.to_owned());
        let mut attempt = ToolAttempt::new(Arc::clone(&origin), CallId(1), String::new(), name, args);
        attempt.workspace = Some(AgentFolder::new(Workspaces::root(self.home.path()).into(), origin));
        let answer = self.commands.tool().call(attempt).await.unwrap();
        assert_eq!(answer.exit, Some(CommandExit::Code(0)), "{}", answer.text);
    }
}

fn bubblewrap() -> Command {
    let mut command = Command::new("bwrap");
    command.args([
        "--ro-bind",
        "/usr",
        "/usr",
        "--symlink",
        "usr/bin",
        "/bin",
        "--symlink",
        "usr/lib",
        "/lib",
    ]);
    command.args(["--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--unshare-all"]);
    command.args(["--die-with-parent", "true"]);
    command
}

fn spawned(command: &mut Command) {
    let _ = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
}

fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1e3
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
