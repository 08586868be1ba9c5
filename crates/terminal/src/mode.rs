//! The mode of the terminal: unbuffered keys, or no echo. It is restored however the process ends, except by a kill.

use std::io::{self, stdin};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::getpgrp;
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr,
};

/// How long the end of the process waits for a thread that is changing the mode.
const LAST_TRIES: u32 = 20;
const LAST_TRY_EVERY: Duration = Duration::from_millis(5);

/// There is one terminal for the whole process. Its mode changes only while this is locked.
static MODE: Mutex<Mode> = Mutex::new(Mode { before: None, is_raw: false, is_final: false });

struct Mode {
    /// The mode to restore.
    before: Option<Termios>,
    /// Nothing is done with what is written.
    is_raw: bool,
    /// The process is about to end, so the mode stays.
    is_final: bool,
}

impl Mode {
    fn put_back(&mut self) {
        // In the background the terminal belongs to a shell, which has set its own mode.
        if let Some(before) = self.before.take()
            && is_foreground()
        {
            // A terminal that is gone has no mode.
            let _ = tcsetattr(stdin(), OptionalActions::Now, &before);
        }
    }
}

/// Whether the keyboard is ours. It is not while we are in the background, or if this is not our controlling terminal.
pub(super) fn is_foreground() -> bool {
    tcgetpgrp(stdin()).is_ok_and(|group| group == getpgrp())
}

fn mode() -> MutexGuard<'static, Mode> {
    MODE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Restores the terminal's mode for good, just before the process ends. Waits only briefly for another thread.
#[expect(clippy::disallowed_methods, reason = "the process ends, and nothing tells when the lock is free")]
pub fn restore_at_once() {
    for _ in 0..LAST_TRIES {
        if let Ok(mut mode) = MODE.try_lock() {
            mode.is_final = true;
            return mode.put_back();
        }
        thread::sleep(LAST_TRY_EVERY);
    }
}

/// Turns the terminal's echo off, which would disturb a view that is redrawn in place. What is typed stays in the input
/// queue for the next reader.
pub struct EchoOff(());

impl EchoOff {
    /// Does nothing without a keyboard.
    pub fn begin() -> Self {
        let echo_off = Self(());
        echo_off.keep();
        echo_off
    }

    /// Turns it off again if it was changed: by a question that was answered here, or by a shell that continues a job.
    pub fn keep(&self) {
        let mut changing = mode();
        let Ok(before) = tcgetattr(stdin()) else { return };
        if changing.is_final || !before.local_modes.contains(LocalModes::ECHO) || !is_foreground() {
            return;
        }
        let mut silent = before.clone();
        silent.local_modes -= LocalModes::ECHO;
        changing.before.get_or_insert(before);
        // A terminal that is gone is noticed by the next drawing.
        let _ = tcsetattr(stdin(), OptionalActions::Now, &silent);
    }
}

impl Drop for EchoOff {
    fn drop(&mut self) {
        mode().put_back();
    }
}

/// Keys are delivered one by one while this exists. What was typed before is dropped.
pub(super) struct KeyByKey;

impl KeyByKey {
    /// `None` if the process is about to end.
    pub(super) fn begin() -> io::Result<Option<Self>> {
        let mut mode = mode();
        if mode.is_final {
            return Ok(None);
        }
        let before = tcgetattr(stdin())?;
        mode.before.get_or_insert_with(|| before.clone());
        tcsetattr(stdin(), OptionalActions::Flush, &key_by_key(before))?;
        Ok(Some(Self))
    }

    /// Sets the mode again if it was changed: a shell does that when it continues a job.
    pub(super) fn keep(&self) -> io::Result<()> {
        let changing = mode();
        if changing.is_final {
            return Ok(());
        }
        let mode = tcgetattr(stdin())?;
        if mode.local_modes.contains(LocalModes::ICANON) && is_foreground() {
            tcsetattr(stdin(), OptionalActions::Now, &key_by_key(mode))?;
        }
        Ok(())
    }
}

impl Drop for KeyByKey {
    fn drop(&mut self) {
        mode().put_back();
    }
}

/// Everything that is typed arrives as it is, keys that send signals included, and everything is written as it is: another
/// terminal, which a program has, does the rest.
pub struct RawMode(());

impl RawMode {
    /// `None` without a keyboard that is ours.
    pub fn begin() -> io::Result<Option<Self>> {
        let mut mode = mode();
        if mode.is_final || !is_foreground() {
            return Ok(None);
        }
        let before = tcgetattr(stdin())?;
        mode.before.get_or_insert_with(|| before.clone());
        mode.is_raw = true;
        tcsetattr(stdin(), OptionalActions::Now, &raw(before))?;
        Ok(Some(Self(())))
    }

    /// Sets the mode again if a shell changed it while we were stopped.
    pub fn keep(&self) {
        let changing = mode();
        if let Ok(mode) = tcgetattr(stdin())
            && !changing.is_final
            && is_foreground()
        {
            // A terminal that is gone ends the run by its own signal.
            let _ = tcsetattr(stdin(), OptionalActions::Now, &raw(mode));
        }
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        let mut mode = mode();
        mode.is_raw = false;
        mode.put_back();
    }
}

/// Whether the end of a line needs a carriage return of ours.
pub fn is_raw() -> bool {
    mode().is_raw
}

fn raw(mut mode: Termios) -> Termios {
    mode.make_raw();
    mode
}

/// Keys one by one, without echo. Keys that send signals keep working, except for the one that sends SIGQUIT.
fn key_by_key(mut mode: Termios) -> Termios {
    mode.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
    mode.input_modes |= InputModes::ICRNL;
    mode.special_codes[SpecialCodeIndex::VMIN] = 0;
    mode.special_codes[SpecialCodeIndex::VTIME] = 0;
    mode.special_codes[SpecialCodeIndex::VQUIT] = 0;
    mode
}
