//! The terminal of a program in a box: it is made inside, controls the program's session there, and its other end is handed
//! out to us. So nothing in the box ever has a terminal of the machine.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{InputModes, OptionalActions, Winsize, tcgetattr, tcsetattr, tcsetwinsize};

use super::descriptors;
use super::handed_out::HandedOut;
use super::order::TerminalOrder;

/// The other end of a terminal in a box, as soon as the box is made.
#[derive(Debug)]
pub struct BoxTerminal(HandedOut);

impl BoxTerminal {
    pub(super) fn new(from: OwnedFd) -> io::Result<Self> {
        HandedOut::new(from).map(Self)
    }

    /// Waits for the box. None if it was not made. It blocks: reading from it fails once nothing in the box has the
    /// terminal any more.
    pub async fn terminal(self) -> io::Result<Option<OwnedFd>> {
        Ok(self.0.receive().await?.into_iter().next())
    }
}

/// Makes a terminal in the box of this process and hands its other end out. Returns the end of the program.
pub(super) fn make(order: &TerminalOrder, to: &OwnedFd) -> io::Result<OwnedFd> {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    unlockpt(&ours)?;
    let programs = ioctl_tiocgptpeer(&ours, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    let size = Winsize { ws_row: order.rows, ws_col: order.columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&programs, size)?;
    let mut mode = tcgetattr(&programs)?;
    mode.input_modes |= InputModes::IUTF8;
    tcsetattr(&programs, OptionalActions::Now, &mode)?;
    descriptors::send(to.as_fd(), &[0], &[ours.as_fd()])?;
    Ok(programs)
}
