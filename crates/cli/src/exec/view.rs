//! The live view of a run, beside the output of its program. Both are written by threads of their own: a terminal that
//! is stopped holds up neither the gateway nor a signal.

use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read as _};
use std::path::{Path, PathBuf};
use std::thread;

use spinney::Tree;
use spinney::bus::Watch;
use spinney_terminal::out;
use spinney_terminal::{Colours, Stream, Terminal};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::display::Display;
use crate::events::screen::Style;
use crate::live::LiveScreen;

/// How much of a program's output is taken at once.
const READ_BYTES: usize = 64 * 1024;
/// A longer line is shown in parts.
const LINE_BYTES_MAX: usize = 256 * 1024;

/// The terminal for a live view beside a program: standard error's, because standard output is the program's; or else
/// that of standard output. `None` if neither can be drawn on.
pub(crate) fn terminal(colour: Colours) -> Option<Terminal> {
    let terminals = [Stream::Errors, Stream::Output].map(|stream| Terminal::new(stream, colour));
    terminals.into_iter().find(|terminal| Display::for_terminal(*terminal, Style::Lines, false).is_live)
}

/// What draws a view until it is ended.
pub(crate) struct RunView {
    stop: oneshot::Sender<()>,
    stopped: oneshot::Receiver<()>,
}

impl RunView {
    pub(crate) fn start(tree: &Tree, home: &Path, terminal: Terminal) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (stop, mut is_stopped) = oneshot::channel();
        let (ended, stopped) = oneshot::channel();
        let (tree, home): (Tree, PathBuf) = (tree.clone(), home.to_owned());
        let draw = async move {
            let mut live = LiveScreen::new(tree.id(), &home, terminal);
            let mut events = Some(tree.watch(Watch { deltas: true, ..Watch::default() }));
            loop {
                tokio::select! {
                    _ = &mut is_stopped => break,
                    next = async { events.as_mut()?.next().await }, if events.is_some() => match next {
                        Some(Ok(seen)) => live.see(&seen),
                        // The tree has ended, or its journal failed: the follower of the run reports that.
                        Some(Err(_)) | None => events = None,
                    },
                    // A terminal that is gone ends the run by its own signal.
                    () = live.tick() => if live.draw().is_err() { break },
                }
            }
            let _ = live.erase();
        };
        thread::Builder::new().name("view".to_owned()).spawn(move || {
            runtime.block_on(draw);
            let _ = ended.send(());
        })?;
        Ok(Self { stop, stopped })
    }

    /// Takes the view away.
    pub(crate) async fn end(self) {
        drop(self.stop);
        let _ = self.stopped.await;
    }
}

/// What a program writes, on its way to the terminal.
pub(crate) struct ProgramOutput {
    ended: oneshot::Receiver<()>,
}

impl ProgramOutput {
    /// The other end is for the program, as its standard output, its standard error, or both: one pipe keeps the order.
    pub(crate) fn start(stream: Stream) -> io::Result<(Self, PipeWriter)> {
        let (from, to) = io::pipe()?;
        let (tell, ended) = oneshot::channel();
        thread::Builder::new().name("output".to_owned()).spawn(move || {
            // A terminal that is gone ends the run by its own signal; the program finds its output closed.
            let _ = copy(from, stream);
            let _ = tell.send(());
        })?;
        Ok((Self { ended }, to))
    }

    /// Waits until everything is written.
    pub(crate) async fn end(self) {
        let _ = self.ended.await;
    }
}

/// Writes whole lines above the view, inert: they share the screen with it.
fn copy(mut from: PipeReader, stream: Stream) -> Result<(), out::Unwritten> {
    let (mut pending, mut bytes) = (Vec::new(), vec![0; READ_BYTES]);
    loop {
        let count = match from.read(&mut bytes) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error.into()),
        };
        pending.extend(bytes.iter().take(count));
        let lines = match pending.iter().rposition(|byte| *byte == b'\n') {
            Some(last) => last + 1,
            None if count == 0 || pending.len() > LINE_BYTES_MAX => pending.len(),
            None => 0,
        };
        if lines > 0 {
            let lines: Vec<u8> = pending.drain(..lines).collect();
            out::lines_above(&String::from_utf8_lossy(&lines), stream)?;
        }
        if count == 0 && pending.is_empty() {
            return Ok(());
        }
    }
}
