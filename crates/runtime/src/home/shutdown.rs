//! Stops trees, one or all.

use spinney_kernel::primitives::TreeId;

use super::{Home, Running};

/// How a home is shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shutdown {
    /// Every tree continues until it has ended, is halted or waits for a person.
    Drain,
    /// Running calls may finish, nothing new starts; trees can be resumed as if nothing had happened.
    Stop,
    /// Everything is dropped at once; on resume, calls that were running are settled or repeated as their drivers
    /// say.
    Kill,
}

impl Home {
    /// Stops one tree cleanly: running calls may finish, nothing new starts, and it can be resumed. When it returns,
    /// the tree does not run here.
    pub async fn stop(&self, tree: TreeId) {
        let running = self.trees().get(&tree).cloned();
        if let Some(Running { stop, over, .. }) = running {
            stop.cancel();
            over.await;
        }
    }

    /// Shuts the home down. When it returns, none of its trees run. A caller may drop the future and shut down again,
    /// harder.
    pub async fn shutdown(&self, how: Shutdown) {
        if how == Shutdown::Drain {
            for Running { tree, .. } in self.all_running() {
                tree.settled().await;
            }
        }
        self.closing.cancel();
        let starting = self.starting.write().await;
        self.stop.cancel();
        drop(starting);
        for Running { task, over, .. } in self.all_running() {
            if how == Shutdown::Kill {
                task.abort();
            }
            over.await;
        }
        self.trees().retain(|_, running| !running.task.is_finished());
    }
}
