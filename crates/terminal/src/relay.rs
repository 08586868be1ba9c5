//! The person's terminal and that of a program in a box. What is typed goes to the one in the box, whose keys send signals to
//! the program; what the program writes there is shown. So the program has a terminal, and never the person's.

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal as _, PipeWriter, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Signal as ProcessSignal, getpid, kill_process};
use rustix::termios::{LocalModes, SpecialCodeIndex, Winsize, tcgetattr, tcgetwinsize, tcsetwinsize};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::continued;
use crate::mode::RawMode;

/// What a program may have changed of the person's terminal and not put back: the other screen, colours, a hidden cursor, and
/// reports of the mouse and of pastes.
const PUT_BACK: &[u8] =
    b"\x1b[?1047l\x1b[!p\x1b[0m\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l";
const READ_BYTES: usize = 64 * 1024;
/// A terminal that does not tell its size.
const ASSUMED_SIZE: (u16, u16) = (80, 24);

/// Columns and rows of the person's terminal.
pub fn size() -> (u16, u16) {
    let size = terminal().and_then(|terminal| Ok(tcgetwinsize(terminal)?));
    let size = size.ok().map(|size| (size.ws_col, size.ws_row));
    size.filter(|(columns, rows)| *columns > 0 && *rows > 0).unwrap_or(ASSUMED_SIZE)
}

/// The first standard stream that is a terminal: the output before the input.
fn terminal() -> io::Result<File> {
    let (stdout, stderr, stdin) = (io::stdout(), io::stderr(), io::stdin());
    let found = if stdout.is_terminal() {
        stdout.as_fd()
    } else if stderr.is_terminal() {
        stderr.as_fd()
    } else {
        stdin.as_fd()
    };
    Ok(found.try_clone_to_owned()?.into())
}

/// Connects both terminals until it is ended.
pub struct TerminalRelay {
    shown: oneshot::Receiver<()>,
    /// Its end stops what reads keys.
    _stop: PipeWriter,
    sizes: JoinHandle<()>,
    /// Put back after everything else.
    _raw: Option<Arc<RawMode>>,
}

impl TerminalRelay {
    /// Between the person's terminal and this one, that of the box.
    pub fn start(boxes: OwnedFd) -> io::Result<Self> {
        let raw = if io::stdin().is_terminal() { RawMode::begin()? } else { None }.map(Arc::new);
        let (stopped, stop) = io::pipe()?;
        if raw.is_some() {
            let to = File::from(boxes.try_clone()?);
            thread::Builder::new().name("keys".to_owned()).spawn(move || {
                // A terminal that is gone ends the run by its own signal.
                let _ = pass_keys(to, &stopped);
            })?;
        }
        let (tell, shown) = oneshot::channel();
        let (from, to) = (File::from(boxes.try_clone()?), terminal()?);
        thread::Builder::new().name("output".to_owned()).spawn(move || {
            let _ = show(from, to);
            let _ = tell.send(());
        })?;
        let sizes = tokio::spawn(follow_size(boxes, raw.clone()));
        Ok(Self { shown, _stop: stop, sizes, _raw: raw })
    }

    /// Waits until everything is shown that was written in the box, which has ended.
    pub async fn end(&mut self) {
        let _ = (&mut self.shown).await;
        // One that is gone shows nothing.
        let _ = terminal().and_then(|mut terminal| terminal.write_all(PUT_BACK));
    }
}

impl Drop for TerminalRelay {
    fn drop(&mut self) {
        self.sizes.abort();
    }
}

/// The terminal in the box gets the size of the person's.
async fn follow_size(boxes: OwnedFd, raw: Option<Arc<RawMode>>) {
    let (Ok(mut changes), Ok(mut continues)) = (signal(SignalKind::window_change()), continued()) else {
        return;
    };
    loop {
        tokio::select! {
            _ = changes.recv() => {}
            _ = continues.recv() => {
                if let Some(raw) = &raw {
                    raw.keep();
                }
            }
        }
        let (columns, rows) = size();
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let _ = tcsetwinsize(&boxes, size);
    }
}

/// What is typed, until the end. A key that interrupts the program is an interrupt of the run as well.
fn pass_keys(mut to: File, stopped: &impl AsFd) -> io::Result<()> {
    let stdin = io::stdin();
    let mut bytes = vec![0; READ_BYTES];
    loop {
        let mut polled = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
        match poll(&mut polled, None) {
            Err(Errno::INTR) => continue,
            polled => polled?,
        };
        if !polled[1].revents().is_empty() {
            return Ok(());
        }
        let count = match rustix::io::read(stdin.as_fd(), &mut bytes) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(Errno::INTR | Errno::AGAIN) => continue,
            Err(error) => return Err(error.into()),
        };
        let signal = bytes[..count].iter().find_map(|byte| signal_of(&to, *byte));
        to.write_all(&bytes[..count])?;
        if let Some(signal) = signal {
            kill_process(getpid(), signal)?;
        }
    }
}

/// What a key sends to the program in the box, as its terminal is now.
fn signal_of(boxes: &File, byte: u8) -> Option<ProcessSignal> {
    let mode = tcgetattr(boxes).ok().filter(|mode| mode.local_modes.contains(LocalModes::ISIG))?;
    let is = |code| mode.special_codes[code] == byte && byte != 0;
    if is(SpecialCodeIndex::VINTR) {
        Some(ProcessSignal::INT)
    } else {
        is(SpecialCodeIndex::VQUIT).then_some(ProcessSignal::QUIT)
    }
}

/// What is written in the box, until nothing in there has its terminal.
fn show(mut from: File, mut to: File) -> io::Result<()> {
    let mut bytes = vec![0; READ_BYTES];
    loop {
        match from.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(count) => to.write_all(&bytes[..count])?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // The terminal has no other end any more.
            Err(_) => return Ok(()),
        }
    }
}
