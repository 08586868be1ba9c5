//! A turn in which an agent writes a file of 4 KB, compared with the least that it must do: two rows, a blob and a file.

use std::time::Instant;

use spinney_kernel::primitives::Durability;
use spinney_testkit::spinney_drivers::files::{FileTool, Files};
use spinney_testkit::spinney_drivers::workspace::Workspaces;

use crate::measure::{at_most, median, paired, row, time};
use crate::raw::Raw;
use crate::tree::{self, FILE_BYTES, Plan};

const ROUNDS: usize = 21;
const TURNS: u32 = 200;
/// Provisional, until it has been measured on a quiet machine: then twice that.
const BOUND: f64 = 12.0;

/// Prints the table.
pub(crate) fn run() {
    let (runtime, folder) = (tree::runtime(), tree::folder());
    let (tool, model) = (FileTool::Write, tree::Scripted::new(Plan::Files(TURNS)));
    let drivers = tree::drivers(&model)
        .with_workspaces(Workspaces::root(folder.path()))
        .with_tool(tool.name(), Files::default().tool(tool));
    let home = tree::home_of(tree::sqlite(folder.path()), drivers);
    let mut raw = Raw::new(Durability::Normal);
    let (mut ours, mut other) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let ended = runtime.block_on(tree::run(&home, Durability::Normal));
        ours.push(start.elapsed().as_nanos() as f64 / f64::from(TURNS));
        let written =
            folder.path().join("workspace").join(ended.id().to_string()).join("root/outputs/file.md");
        assert_eq!(written.metadata().map(|about| about.len()).ok(), Some(FILE_BYTES as u64));
        let start = Instant::now();
        (0..TURNS).for_each(|_| raw.write_file(FILE_BYTES));
        other.push(start.elapsed().as_nanos() as f64 / f64::from(TURNS));
    }
    let relation = at_most(paired(&ours, &other), BOUND);
    let reference = format!("{} (2 rows, blob, file)", time(median(other)));
    row("a turn with write_file of 4 KB, normal", &time(median(ours)), &reference, &relation);
}
