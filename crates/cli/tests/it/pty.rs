//! A terminal for a command: a pseudoterminal, and just enough of an emulator to know what a person sees. Anything
//! that a live view has no reason to send is a failure.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::test_folder::Ended;

pub(crate) struct Pty {
    child: Child,
    master: File,
    screen: EmulatedScreen,
    pending: Vec<u8>,
    /// Everything that came.
    raw: String,
}

impl Pty {
    /// Starts a command on a terminal of this size. It is the leader of a session there, so Ctrl-C reaches it.
    pub(crate) fn start(command: &Command, columns: u16, lines: u16) -> Self {
        Self::start_in(command, columns, lines, &[])
    }

    /// The same with more environment variables.
    pub(crate) fn start_in(
        command: &Command,
        columns: u16,
        lines: u16,
        environment: &[(&str, &str)],
    ) -> Self {
        Self::start_as(command, &["--ctty", "--wait"], columns, lines, environment)
    }

    /// Starts a command whose input and output are a terminal that does not control it.
    pub(crate) fn start_apart(command: &Command, columns: u16, lines: u16) -> Self {
        Self::start_as(command, &["--wait"], columns, lines, &[])
    }

    fn start_as(
        command: &Command,
        session: &[&str],
        columns: u16,
        lines: u16,
        environment: &[(&str, &str)],
    ) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let size = Winsize { ws_row: lines, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&master, size).unwrap();
        let slave = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let open = || File::options().read(true).write(true).open(&slave).unwrap();
        let mut leader = Command::new("setsid");
        leader.args(session).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => leader.env(name, value),
                None => leader.env_remove(name),
            };
        }
        leader.current_dir(command.get_current_dir().unwrap()).env("TERM", "xterm-256color");
        leader.env_remove("NO_COLOR").env_remove("COLUMNS").envs(environment.iter().copied());
        leader.stdin(Stdio::from(open())).stdout(Stdio::from(open())).stderr(Stdio::from(open()));
        let child = leader.spawn().unwrap();
        let screen = EmulatedScreen::new(columns.into(), lines.into());
        Self { child, master: File::from(master), screen, pending: Vec::new(), raw: String::new() }
    }

    /// Waits until the screen shows this, and returns the screen.
    pub(crate) fn until(&mut self, part: &str) -> String {
        self.wait(EmulatedScreen::text, |shown| shown.contains(part), part)
    }

    /// Waits until the screen shows this so many times, and returns the screen.
    pub(crate) fn until_times(&mut self, part: &str, times: usize) -> String {
        self.wait(EmulatedScreen::text, |shown| shown.matches(part).count() == times, part)
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits until the screen shows this, what scrolled away left aside, and returns the screen.
    pub(crate) fn until_visible(&mut self, part: &str) -> String {
        self.wait(EmulatedScreen::visible, |shown| shown.contains(part), part)
    }

    /// Waits until the screen does not show this any more, what scrolled away left aside, and returns the screen.
    pub(crate) fn until_hidden(&mut self, part: &str) -> String {
        self.wait(EmulatedScreen::visible, |shown| !shown.contains(part), part)
    }

    /// Waits for a screen like this; not in the middle of a frame.
    fn wait(
        &mut self,
        read: fn(&EmulatedScreen) -> String,
        is_wanted: impl Fn(&str) -> bool,
        part: &str,
    ) -> String {
        loop {
            let shown = read(&self.screen);
            if !self.screen.is_updating && is_wanted(&shown) {
                return shown;
            }
            assert!(self.read(), "it ended before this changed: `{part}`:\n{shown}");
        }
    }

    /// Everything that is shown, what scrolled away included.
    pub(crate) fn text(&self) -> String {
        self.screen.text()
    }

    /// Changes the size of the terminal, which wraps its lines anew, as most do.
    pub(crate) fn resize(&mut self, columns: u16, lines: u16) {
        // What was written for the old size is shown before.
        while self.has_more() {
            self.read();
        }
        let size = Winsize { ws_row: lines, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.master, size).unwrap();
        self.screen.resize(columns.into(), lines.into());
    }

    fn has_more(&self) -> bool {
        let mut ready = [PollFd::new(&self.master, PollFlags::IN)];
        retry_on_intr(|| poll(&mut ready, Some(&Timespec::default()))).unwrap() > 0
    }

    pub(crate) fn send(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until its command takes single keys.
    pub(crate) fn until_keys(&mut self) {
        while tcgetattr(&self.master).unwrap().local_modes.contains(LocalModes::ICANON) {
            assert!(!self.has_ended());
            std::thread::yield_now();
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([format!("-{name}"), id]).status().unwrap().success());
    }

    /// Closes the terminal, as people close a window, and waits for the end of its command; the exit code.
    pub(crate) fn close(self) -> Option<i32> {
        let Self { mut child, master, .. } = self;
        drop(master);
        child.wait().unwrap().code()
    }

    /// Waits for its end; everything that it wrote.
    pub(crate) fn bytes(mut self) -> String {
        while self.read() {}
        self.child.wait().unwrap();
        self.raw
    }

    /// Waits for its end; the screen and the exit code.
    pub(crate) fn end(mut self) -> Ended {
        while self.read() {}
        let code = self.child.wait().unwrap().code();
        let mode = tcgetattr(&self.master).unwrap().local_modes;
        assert!(mode.contains(LocalModes::ICANON | LocalModes::ECHO), "the terminal is as it was: {mode:?}");
        Ended { code, out: self.screen.text(), err: String::new() }
    }

    /// Plays a terminal for a program that draws as it likes, and answers what such programs ask, until this holds for
    /// everything that it wrote.
    #[cfg(feature = "peers")]
    pub(crate) fn answers_until(&mut self, holds: impl Fn(&str) -> bool) -> String {
        let (mut bytes, mut wrote, mut answered) = ([0; 16_384], Vec::new(), 0);
        loop {
            let text = String::from_utf8_lossy(&wrote).into_owned();
            if holds(&text) {
                return text;
            }
            let questions = [("\u{1b}[6n", "\u{1b}[1;1R"), ("\u{1b}[c", "\u{1b}[?1;2c")];
            for (question, answer) in questions {
                if text.get(answered..).is_some_and(|new| new.contains(question)) {
                    self.send(answer);
                }
            }
            answered = text.len();
            let count = self.master.read(&mut bytes).unwrap_or(0);
            assert!(count > 0, "it ended: {text}");
            wrote.extend(&bytes[..count]);
        }
    }

    /// Whether anything came; a terminal without a process at the other end reports an error.
    fn read(&mut self) -> bool {
        let mut bytes = [0; 4_096];
        let Ok(count @ 1..) = self.master.read(&mut bytes) else { return false };
        self.pending.extend(&bytes[..count]);
        let whole = match std::str::from_utf8(&self.pending) {
            Ok(text) => text.len(),
            Err(error) => error.valid_up_to(),
        };
        let text = String::from_utf8(self.pending.drain(..whole).collect()).unwrap();
        self.screen.take(&text);
        self.raw += &text;
        true
    }
}

/// Lines and a cursor.
struct EmulatedScreen {
    columns: usize,
    height: usize,
    lines: Vec<Vec<char>>,
    /// The first line that is on the screen; those above have scrolled away.
    top: usize,
    row: usize,
    column: usize,
    wraps: bool,
    /// Whether a frame is not complete: a terminal shows it at once.
    is_updating: bool,
    /// The lines that only continue the one above, because that was too long.
    continued: BTreeSet<usize>,
    /// An escape sequence that is not complete yet.
    escape: Option<String>,
}

impl EmulatedScreen {
    fn new(columns: usize, height: usize) -> Self {
        let lines = vec![Vec::new()];
        let continued = BTreeSet::new();
        Self {
            columns,
            height,
            lines,
            top: 0,
            row: 0,
            column: 0,
            wraps: true,
            is_updating: false,
            continued,
            escape: None,
        }
    }

    /// Everything that was shown and not drawn over, as it would be copied: what scrolled away included, and with
    /// lines whole that were too long for the terminal.
    fn text(&self) -> String {
        self.text_from(0)
    }

    /// The same without what scrolled away.
    fn visible(&self) -> String {
        self.text_from(self.top)
    }

    fn text_from(&self, first: usize) -> String {
        let mut text = String::new();
        for (at, line) in self.lines.iter().enumerate().skip(first) {
            if at > first && !self.continued.contains(&at) {
                text.truncate(text.trim_end_matches(' ').len());
                text.push('\n');
            }
            text.extend(line);
        }
        text.trim_end().to_owned() + "\n"
    }

    /// Wraps every line anew. Lines that do not fit are pushed out above, and come back when there is room.
    fn resize(&mut self, columns: usize, height: usize) {
        let mut lines: Vec<Vec<char>> = Vec::new();
        let mut continued = BTreeSet::new();
        let mut cursor = (0, 0);
        let mut at = 0;
        while at < self.lines.len() {
            let mut whole = self.lines[at].clone();
            let mut offset = (at == self.row).then_some(self.column);
            at += 1;
            while self.continued.contains(&at) {
                if at == self.row {
                    offset = Some(whole.len() + self.column);
                }
                whole.extend(&self.lines[at]);
                at += 1;
            }
            let first = lines.len();
            lines.extend(whole.chunks(columns).map(<[char]>::to_vec));
            if whole.is_empty() {
                lines.push(Vec::new());
            }
            continued.extend(first + 1..lines.len());
            if let Some(offset) = offset {
                let row = (first + offset / columns).min(lines.len() - 1);
                cursor = (row, offset - (row - first) * columns);
            }
        }
        (self.columns, self.height, self.lines, self.continued) = (columns, height, lines, continued);
        (self.row, self.column) = cursor;
        self.top = self.lines.len().saturating_sub(height);
    }

    fn take(&mut self, text: &str) {
        for c in text.chars() {
            match (&mut self.escape, c) {
                (Some(escape), c) => {
                    escape.push(c);
                    if escape.len() > 1 && c.is_ascii_alphabetic() {
                        let sequence = self.escape.take().unwrap();
                        self.act(&sequence);
                    }
                }
                (None, '\u{1b}') => self.escape = Some(String::new()),
                (None, '\r') => self.column = 0,
                (None, '\n') => {
                    self.down();
                    self.continued.remove(&self.row);
                }
                (None, c) => {
                    assert!(!c.is_control(), "a control character: {c:?}");
                    self.put(c);
                }
            }
        }
    }

    fn act(&mut self, sequence: &str) {
        match sequence.strip_prefix('[').unwrap_or_else(|| panic!("not expected: {sequence:?}")) {
            "?2026h" => self.is_updating = true,
            "?2026l" => self.is_updating = false,
            "?7l" => self.wraps = false,
            "?7h" => self.wraps = true,
            "K" => self.lines[self.row].truncate(self.column),
            "2K" => {
                self.lines[self.row].clear();
                self.continued.remove(&(self.row + 1));
            }
            // What a program in a box may have left is put back.
            "?1047l" | "!p" | "?25h" | "?1000l" | "?1002l" | "?1003l" | "?1006l" | "?2004l" => {}
            "B" => self.row = (self.row + 1).min(self.lines.len() - 1),
            "J" => {
                self.lines[self.row].truncate(self.column);
                self.lines.truncate(self.row + 1);
                self.continued.retain(|row| *row <= self.row);
            }
            other => {
                let (number, what) = other.split_at(other.len() - 1);
                match what {
                    "m" => {}
                    "A" => self.row = self.row.saturating_sub(number.parse().unwrap()).max(self.top),
                    _ => panic!("not expected: {sequence:?}"),
                }
            }
        }
    }

    fn down(&mut self) {
        self.row += 1;
        if self.row == self.lines.len() {
            self.lines.push(Vec::new());
        }
        self.top = self.top.max((self.row + 1).saturating_sub(self.height));
    }

    fn put(&mut self, c: char) {
        if self.column == self.columns {
            if !self.wraps {
                return;
            }
            self.column = 0;
            self.down();
            self.continued.insert(self.row);
        }
        let line = &mut self.lines[self.row];
        if line.len() <= self.column {
            line.resize(self.column + 1, ' ');
        }
        line[self.column] = c;
        self.column += 1;
    }
}
