//! What we ask of a guard, and a guard of the first process of its box, as one byte.

use rustix::process::Signal;

/// A message to a guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GuardRequest {
    /// Ends everything in the box.
    End,
    Interrupt,
    Terminate,
}

impl GuardRequest {
    pub(super) const fn byte(self) -> u8 {
        match self {
            Self::End => 0,
            Self::Interrupt => 1,
            Self::Terminate => 2,
        }
    }

    /// What cannot be read ends the box.
    pub(super) const fn from_byte(byte: u8) -> Self {
        match byte {
            1 => Self::Interrupt,
            2 => Self::Terminate,
            _ => Self::End,
        }
    }

    /// What every process of the box gets, if it does not just end.
    pub(super) const fn signal(self) -> Option<Signal> {
        match self {
            Self::End => None,
            Self::Interrupt => Some(Signal::INT),
            Self::Terminate => Some(Signal::TERM),
        }
    }
}
