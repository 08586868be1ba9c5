//! Which home a command means: the one that it names, or the nearest in this folder or above.

use std::path::{Path, PathBuf};

use crate::system::files;

/// The name of a home that nothing names.
pub const HOME: &str = ".spinney";
/// Folders above this one that are searched.
const ABOVE_MAX: usize = 64;

/// The home of a command that names none: the nearest `.spinney` in this folder or above that belongs to this user,
/// or else the one in this folder, which may not exist yet. A home of another user is passed by, because who can write
/// a folder above must not choose where our trees are kept.
pub fn nearest() -> PathBuf {
    let here = std::env::current_dir().map_or(0, |here| here.components().count());
    let above = (0..here.min(ABOVE_MAX)).map(|levels| {
        let mut home: PathBuf = std::iter::repeat_n("..", levels).collect();
        home.push(HOME);
        home
    });
    above.into_iter().find(|home| is_own(home)).unwrap_or_else(|| PathBuf::from(HOME))
}

fn is_own(home: &Path) -> bool {
    home.metadata().is_ok_and(|about| about.is_dir() && files::is_ours(&about))
}
