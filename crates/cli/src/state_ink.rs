//! The colour of a tree's state in lists.

use spinney_host::tree_list::ListedState;
use spinney_kernel::record::ExitKind;
use spinney_kernel::world::TreeState;
use spinney_terminal::paint::Ink;

pub(crate) const fn state_ink(state: ListedState) -> Ink {
    match state {
        ListedState::Interrupted | ListedState::Stored(TreeState::Halted) => Ink::Bad,
        ListedState::Stored(TreeState::New | TreeState::Running) => Ink::Good,
        ListedState::Stored(TreeState::Waiting | TreeState::Paused | TreeState::Suspended) => Ink::Warn,
        ListedState::Stored(TreeState::Ended(ExitKind::Failed | ExitKind::Exhausted)) => Ink::Bad,
        ListedState::Stored(
            TreeState::Moved
            | TreeState::Copied
            | TreeState::Ended(ExitKind::Completed | ExitKind::Cancelled),
        ) => Ink::Dim,
    }
}
