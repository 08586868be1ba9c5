//! `spinney top`: all trees of a home that have not ended, live, and those that ended last. Keys choose a tree, follow it
//! and cancel it.

mod trees;

use std::io::{IsTerminal as _, stdin};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use spinney::clock::{Clock, SystemClock};
use spinney_host::followed_list::FollowedList;
use spinney_host::home::ids::TreeInHome;
use spinney_kernel::primitives::TreeId;
use spinney_terminal::keys::{Key, KeyPresses};
use spinney_terminal::paint::{Ink, Row};
use spinney_terminal::region;
use spinney_terminal::{Terminal, continued, out};
use spinney_view::wording::short_id;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::sleep;

use self::trees::TopListing;
use super::{attach, steer};
use crate::args::{self, TreeArg};
use crate::exit::Exit;

/// Pause between two looks at the home.
const REFRESH: Duration = Duration::from_millis(500);
/// Lines around the trees.
const AROUND: usize = 7;
const HELP: &str = "↑ ↓ choose   enter attach   c cancel   q quit";

pub(super) async fn top(home: &Path, args: &args::Top, terminal: Terminal) -> Result<Exit> {
    let mut trees = FollowedList::new(home);
    let now = SystemClock::new().now_ms();
    if args.json {
        for tree in TopListing::look(&mut trees, None, now).await?.trees {
            out::json(&tree.json().to_string())?;
        }
        return Ok(Exit::Completed);
    }
    if args.once || !terminal.can_draw() {
        let listing = TopListing::look(&mut trees, Some(usize::MAX), now).await?;
        out::rows(listing.lines(home, terminal.width, None), terminal)?;
        return Ok(Exit::Completed);
    }
    let mut signals = TopSignals::listen()?;
    let mut top = Top { home, trees, terminal, chosen: None, state: State::Choosing };
    let mut keys = None;
    loop {
        keys = kept(keys)?;
        // Quitting works even if a runner does not answer.
        let listing = tokio::select! {
            listing = top.draw(keys.is_some()) => listing?,
            () = signals.left() => return Ok(Exit::Interrupted),
            () = quit(&mut keys) => return Ok(Exit::Completed),
        };
        if let (State::Asking { is_shown }, Some(keys)) = (&mut top.state, &mut keys)
            && !std::mem::replace(is_shown, true)
        {
            // Keys pressed before the question was shown do not answer it.
            keys.forget();
        }
        let key = tokio::select! {
            () = sleep(REFRESH) => continue,
            left = signals.next() => if left { return Ok(Exit::Interrupted) } else { continue },
            key = next(&mut keys) => key,
        };
        let done = tokio::select! {
            done = top.press(key, &listing) => done,
            () = signals.left() => return Ok(Exit::Interrupted),
            () = quit(&mut keys) => return Ok(Exit::Completed),
        };
        match done {
            Done::Nothing => {}
            Done::Left(exit) => return Ok(exit),
            Done::Attach(place, tree) => {
                drop(keys);
                region::erase(terminal)?;
                let args = args::Attach { tree: TreeArg::named(tree), plain: false };
                return tokio::select! {
                    exit = attach::attach(&place, &args, terminal) => exit,
                    // It only looks: the tree keeps running.
                    () = signals.left() => Ok(Exit::Interrupted),
                };
            }
        }
    }
}

/// The keyboard, with its mode as we need it. A process in the background has none, and neither has one whose input is not
/// a terminal.
fn kept(keys: Option<KeyPresses>) -> Result<Option<KeyPresses>> {
    match keys {
        Some(keys) => {
            keys.keep()?;
            Ok(Some(keys))
        }
        None if stdin().is_terminal() => Ok(KeyPresses::begin()?),
        None => Ok(None),
    }
}

/// The next key; never comes without a keyboard.
async fn next(keys: &mut Option<KeyPresses>) -> Option<Key> {
    match keys {
        Some(keys) => keys.next().await,
        None => std::future::pending().await,
    }
}

/// Waits until `q` is pressed.
async fn quit(keys: &mut Option<KeyPresses>) {
    match keys {
        Some(keys) => keys.pressed(Key::Char('q')).await,
        None => std::future::pending().await,
    }
}

struct Top<'a> {
    home: &'a Path,
    trees: FollowedList,
    terminal: Terminal,
    chosen: Option<TreeId>,
    state: State,
}

/// What the last line is about.
enum State {
    Choosing,
    /// Whether to cancel the chosen tree.
    Asking {
        is_shown: bool,
    },
    /// What came of it, until the next key.
    Told(String),
}

/// What a key leads to.
enum Done {
    Nothing,
    Left(Exit),
    /// A tree and its home.
    Attach(PathBuf, TreeId),
}

impl Top<'_> {
    async fn draw(&mut self, has_keys: bool) -> Result<TopListing> {
        let (columns, height) = self.terminal.stream.size();
        let room = height.saturating_sub(AROUND).max(1);
        let now = SystemClock::new().now_ms();
        let listing = TopListing::look(&mut self.trees, Some(room), now).await?;
        // A chosen tree that is not shown any more is none, and the first one takes its place.
        let is_shown = |chosen: &TreeId| listing.trees.iter().any(|tree| tree.tree() == *chosen);
        if !self.chosen.as_ref().is_some_and(is_shown) {
            self.chosen = listing.trees.first().map(|tree| tree.tree());
            self.state = State::Choosing;
        }
        let width = columns.saturating_sub(1);
        let mut lines = listing.lines(self.home, Some(width), self.chosen.filter(|_| has_keys));
        if has_keys && self.chosen.is_some() {
            lines.extend([Row::new(), self.last_line(&listing).cut(width)]);
        }
        region::draw(&lines, self.terminal)?;
        Ok(listing)
    }

    fn last_line(&self, listing: &TopListing) -> Row {
        match &self.state {
            State::Choosing => Row::inked(Ink::Dim, HELP),
            State::Told(what) => Row::inked(Ink::Warn, what),
            State::Asking { .. } => {
                let chosen = listing.trees.iter().find(|tree| Some(tree.tree()) == self.chosen);
                let name = chosen.map(|tree| format!("{} {}", short_id(tree.tree()), tree.listed.name));
                Row::inked(
                    Ink::Warn,
                    &format!("cancel {}, with all its agents? [y/N]", name.unwrap_or_default()),
                )
            }
        }
    }

    async fn press(&mut self, key: Option<Key>, listing: &TopListing) -> Done {
        let state = std::mem::replace(&mut self.state, State::Choosing);
        let at = listing.trees.iter().position(|tree| Some(tree.tree()) == self.chosen);
        let chosen = at.and_then(|at| listing.trees.get(at));
        match (state, key) {
            (State::Asking { .. }, Some(Key::Char('y' | 'Y'))) => {
                if let Some(tree) = chosen {
                    let place = TreeInHome { home: &tree.listed.home, tree: tree.tree() };
                    let done = steer::cancel_tree(place).await;
                    self.state = State::Told(done.unwrap_or_else(|error| format!("{error:#}")));
                }
            }
            // Anything else is a no.
            (State::Asking { .. }, Some(_)) => {}
            // The terminal is gone.
            (_, None) => return Done::Left(Exit::Closed),
            (_, Some(Key::Char('q'))) => return Done::Left(Exit::Completed),
            (_, Some(Key::Char('c'))) if chosen.is_some() => self.state = State::Asking { is_shown: false },
            (_, Some(Key::Enter)) => {
                if let Some(tree) = chosen {
                    return Done::Attach(tree.listed.home.to_path_buf(), tree.tree());
                }
            }
            (_, Some(Key::Up)) => self.choose(listing, at.and_then(|at| at.checked_sub(1))),
            (_, Some(Key::Down)) => self.choose(listing, at.map(|at| at + 1)),
            (_, Some(Key::Char(_) | Key::Other)) => {}
        }
        Done::Nothing
    }

    fn choose(&mut self, listing: &TopListing, at: Option<usize>) {
        let tree = at.and_then(|at| listing.trees.get(at));
        self.chosen = tree.map(|tree| tree.tree()).or(self.chosen);
    }
}

/// Ctrl-C and SIGTERM leave; the terminal's mode is put back then. A stopped process that continues draws below what its
/// shell wrote.
struct TopSignals {
    interrupt: Signal,
    terminate: Signal,
    continued: Signal,
}

impl TopSignals {
    fn listen() -> Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            continued: continued()?,
        })
    }

    /// Whether to leave.
    async fn next(&mut self) -> bool {
        tokio::select! {
            _ = self.interrupt.recv() => true,
            _ = self.terminate.recv() => true,
            _ = self.continued.recv() => {
                region::abandon();
                false
            }
        }
    }

    async fn left(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
