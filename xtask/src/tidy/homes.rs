//! What has one home: the clock, randomness, tasks, the environment, printing; what the kernel never does.
//!
//! A new home is a line in the table below, and a question in the review.

use super::Finding;
use crate::workspace::{Source, Workspace};

/// Something that only its homes may mention.
struct Taboo {
    /// Patterns as [`Mention::is`](crate::workspace::Mention::is) takes them.
    marks: &'static [&'static str],
    /// Completes the sentence "`mark` …".
    does: &'static str,
    /// Where the taboo holds: the start of a path.
    within: &'static str,
    homes: &'static [Home],
    remedy: &'static str,
}

enum Home {
    /// A file, or everything below a folder.
    Path(&'static str),
    Tests,
    Benches,
}

const EVERYWHERE: &str = "";
const KERNEL: &str = "crates/kernel/";

const TABOOS: [Taboo; 15] = [
    Taboo {
        marks: &["rustix", "nix", "libc", "std::os"],
        does: "works on one system only, and has one place in each crate",
        within: EVERYWHERE,
        homes: &[
            Home::Path("crates/cli/src/huge_pages.rs"),
            Home::Path("crates/terminal/"),
            Home::Path("crates/drivers/"),
            Home::Path("crates/host/src/system/"),
            Home::Path("crates/server/src/exec/open_files.rs"),
            Home::Path("crates/store/src/system.rs"),
            Home::Path("crates/testkit/"),
            Home::Path("xtask/"),
            Home::Tests,
            Home::Benches,
        ],
        remedy: "ask `system` of the host or the store, the drivers, or the terminal",
    },
    Taboo {
        marks: &["spinney_journal::Blocking", ".blocking"],
        does: "blocks its thread until a journal answers",
        within: EVERYWHERE,
        homes: &[
            Home::Path("crates/store/src/sqlite/poll.rs"),
            Home::Path("crates/testkit/"),
            Home::Path("fuzz/"),
            Home::Tests,
            Home::Benches,
        ],
        remedy: "make the function async and await the journal: on one thread, a store that needs it would never answer",
    },
    Taboo {
        marks: &["SystemTime::now", "Instant::now", "Timestamp::now", "Zoned::now"],
        does: "reads the clock",
        within: EVERYWHERE,
        homes: &[
            Home::Path("crates/runtime/src/clock.rs"),
            // The time of a call, without that of its questions.
            Home::Path("crates/drivers/src/mcp/open_calls.rs"),
            Home::Benches,
        ],
        remedy: "take the time as an argument: only crates/runtime/src/clock.rs reads it",
    },
    Taboo {
        marks: &["rand::*", "getrandom", "thread_rng", "Uuid::now_v7", "Uuid::new_v4"],
        does: "draws randomness",
        within: EVERYWHERE,
        homes: &[Home::Path("crates/runtime/src/rng.rs"), Home::Path("crates/testkit/")],
        remedy: "take the id or the seed as an argument: only crates/runtime/src/rng.rs draws",
    },
    Taboo {
        marks: &["tokio::spawn", "task::spawn", "spawn_blocking", ".spawn_blocking", "thread::spawn"],
        does: "starts a task",
        within: EVERYWHERE,
        homes: &[
            Home::Path("crates/runtime/"),
            Home::Path("crates/cli/"),
            Home::Path("crates/host/"),
            Home::Path("crates/server/"),
            // The size of a box's terminal follows that of the person's.
            Home::Path("crates/terminal/src/relay.rs"),
            Home::Path("crates/store/src/sqlite/poll.rs"),
            Home::Path("crates/store/src/sqlite/readers.rs"),
            Home::Path("crates/store/src/sqlite/writer.rs"),
            Home::Path("crates/drivers/src/off_worker.rs"),
            // The system resolves a name by blocking a thread, which a wait that is given up leaves behind.
            Home::Path("crates/drivers/src/network/outbound.rs"),
            // The SDK asks, and hears what is answered later.
            Home::Path("crates/drivers/src/mcp/http_session.rs"),
            Home::Path("crates/drivers/attempts/"),
            Home::Path("crates/testkit/src/http_tool_server.rs"),
            Home::Tests,
            Home::Benches,
        ],
        remedy: "return a future and let the runtime start it",
    },
    Taboo {
        marks: &[
            "unbounded_channel",
            "std::sync::mpsc::channel",
            "mpsc::unbounded",
            "channel::unbounded",
            "async_channel::unbounded",
            "crossbeam_channel::unbounded",
            "flume::unbounded",
        ],
        does: "makes a queue without a bound",
        within: EVERYWHERE,
        homes: &[],
        remedy: "use a bounded channel whose bound has a name",
    },
    Taboo {
        marks: &["std::env::*"],
        does: "reads what surrounds the process",
        within: EVERYWHERE,
        homes: &[
            Home::Path("crates/cli/"),
            Home::Path("crates/host/"),
            // What people set for the terminals of all programs.
            Home::Path("crates/terminal/src/lib.rs"),
            Home::Path("crates/testkit/src/bin/"),
            Home::Path("crates/store/tests/it/process.rs"),
            Home::Path("crates/drivers/attempts/"),
            // Splits and joins lists of folders that it is given.
            Home::Path("crates/drivers/src/packages/"),
            Home::Path("crates/drivers/src/sandbox/entry.rs"),
            Home::Path("crates/drivers/tests/it/killed.rs"),
            Home::Path("crates/drivers/tests/it/mcp/"),
            Home::Path("crates/drivers/tests/it/processes.rs"),
            Home::Path("xtask/"),
            Home::Benches,
        ],
        remedy: "take the value as an argument: only the host reads the environment, and the cli arguments",
    },
    Taboo {
        marks: &["print!", "println!", "eprint!", "eprintln!"],
        does: "prints",
        within: EVERYWHERE,
        homes: &[
            Home::Path("crates/cli/"),
            Home::Path("crates/drivers/attempts/"),
            Home::Path("crates/testkit/src/bin/"),
            Home::Path("crates/host/examples/"),
            Home::Path("crates/runtime/examples/"),
            Home::Path("crates/server/examples/"),
            Home::Path("xtask/src/main.rs"),
            Home::Tests,
            Home::Benches,
        ],
        remedy: "return the text and let the caller print it",
    },
    Taboo {
        marks: &["unsafe"],
        does: "steps outside what the compiler checks",
        within: EVERYWHERE,
        homes: &[
            Home::Path("crates/drivers/src/sandbox/"),
            Home::Path("crates/drivers/attempts/"),
            Home::Path("crates/cli/src/huge_pages.rs"),
            Home::Benches,
        ],
        remedy: "find the safe way: only the sandbox and the start of the program have none",
    },
    Taboo {
        marks: &["async", ".await"],
        does: "waits, and the kernel never awaits",
        within: KERNEL,
        homes: &[],
        remedy: "decide now, and let an effect and its report do the waiting",
    },
    Taboo {
        marks: &["HashMap", "HashSet"],
        does: "has a random order, and the kernel must replay alike",
        within: KERNEL,
        homes: &[],
        remedy: "use IndexMap, IndexSet, BTreeMap or BTreeSet",
    },
    Taboo {
        marks: &["f32", "f64"],
        does: "rounds, and the kernel counts exactly",
        within: KERNEL,
        homes: &[],
        remedy: "count in integers of a small unit",
    },
    Taboo {
        marks: &["std::fs::*", "std::net::*", "std::process::*"],
        does: "reaches outside, and the kernel does no IO",
        within: KERNEL,
        homes: &[],
        remedy: "make it an effect: the runtime or a driver carries it out",
    },
    Taboo {
        marks: &["tokio::*"],
        does: "belongs to the runtime, and the kernel knows no tasks",
        within: KERNEL,
        homes: &[],
        remedy: "make it an effect: the runtime carries it out",
    },
    Taboo {
        marks: &["spinney_store", "spinney_store::*"],
        does: "names a store, and the runtime knows only the journal's port",
        within: "crates/runtime/src/",
        homes: &[Home::Path("crates/runtime/src/lib.rs")],
        remedy: "take an `Arc<dyn Journal>`: only lib.rs names stores, to re-export them",
    },
];

pub(super) fn check(workspace: &Workspace) -> Vec<Finding> {
    workspace.sources.iter().flat_map(check_source).collect()
}

fn check_source(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for taboo in TABOOS.iter().filter(|taboo| source.path.starts_with(taboo.within)) {
        for mention in &source.scan.mentions {
            let is_marked = taboo.marks.iter().any(|mark| mention.is(mark));
            if is_marked && !taboo.homes.iter().any(|home| home.holds(source, mention.line)) {
                findings.push(Finding {
                    path: source.path.clone(),
                    line: mention.line,
                    rule: "homes",
                    item: mention.path.clone(),
                    what: format!("`{}` {}", mention.path, taboo.does),
                    remedy: taboo.remedy,
                });
            }
        }
    }
    findings
}

impl Home {
    fn holds(&self, source: &Source, line: usize) -> bool {
        match self {
            Home::Path(path) => source.path.starts_with(path),
            Home::Tests => source.is_test(line),
            Home::Benches => source.is_bench(),
        }
    }
}
