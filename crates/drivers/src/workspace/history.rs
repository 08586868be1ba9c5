//! The history of an agent: its steps as files, and nothing else.

use std::io;

use cap_std::fs::Dir;

use super::atomic::{self, Sync};
use super::folder;
use super::name::{step_file, step_number};
use super::step::Step;

pub(super) const HISTORY: &str = "history";

/// Opens the history in an agent's folder and makes it if it is not there.
pub(super) fn open(agent: &Dir) -> io::Result<Dir> {
    folder::ours(agent, HISTORY)
}

/// Writes a step, unless it is there.
pub(super) fn write(history: &Dir, number: u32, step: &Step, sync: Sync) -> io::Result<()> {
    atomic::write(history, &step_file(number), &step.bytes(), sync)
}

/// Removes everything but the first `steps` steps: what a process left that died while it wrote, and what does not
/// belong here.
pub(super) fn sweep(history: &Dir, steps: u32) -> io::Result<()> {
    for entry in history.entries()? {
        let name = entry?.file_name();
        let belongs = name.to_str().and_then(step_number).is_some_and(|number| (1..=steps).contains(&number));
        if !belongs {
            atomic::remove(history, &name)?;
        }
    }
    Ok(())
}
