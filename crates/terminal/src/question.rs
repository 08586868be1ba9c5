//! A yes or no of the person at the terminal, before something starts.

use std::io::{self, BufRead as _, IsTerminal as _};

use rustix::termios::{QueueSelector, tcflush};

use super::out;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum YesOrNo {
    Yes,
    No,
    /// There is no terminal to ask at.
    NotAsked,
}

/// Anything typed before a question is not an answer to it.
pub fn discard_typed() {
    // Without a terminal nothing was typed.
    let _ = tcflush(io::stdin(), QueueSelector::IFlush);
}

/// Asks, and takes anything but a yes for a no. Indented lines are shown as they are.
pub fn ask(question: &str) -> YesOrNo {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return YesOrNo::NotAsked;
    }
    discard_typed();
    out::prompt(&format!("{question} [y/N]"));
    let mut answer = String::new();
    // A terminal limits the length of a line.
    let read = io::stdin().lock().read_line(&mut answer);
    let is_yes = read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes");
    if is_yes { YesOrNo::Yes } else { YesOrNo::No }
}
