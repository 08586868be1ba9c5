//! Branching: a simulated tree is branched at a checkpoint, and both continue. Every law holds in both.

use spinney_kernel::budget::{Ceilings, Resource};
use spinney_kernel::primitives::{AgentId, TreeId};
use spinney_kernel::record::Event;
use spinney_kernel::rules::request::{Branch, Request, Unpause};

use super::{Case, moves, person};

/// The branch of a simulated tree.
const BRANCH: TreeId = TreeId::new([2; 16]);

impl Case {
    /// A branch of this tree from one of its checkpoints, if one allows it.
    pub(super) fn branch(&mut self) -> Result<Option<Box<Self>>, String> {
        let made = self.batches.iter().zip(1..).filter_map(|(batch, kept)| {
            let Some(Event::CheckpointMade { agent, .. }) = batch.events.last() else { return None };
            Some((kept, agent.clone()))
        });
        let made: Vec<(usize, AgentId)> = made.collect();
        let Some((shared, agent)) = self.dice.pick(&made) else { return Ok(None) };
        let mut branch = Self::new(self.dice.next());
        branch.batches = self.batches[..shared].to_vec();
        (branch.now, branch.orderly, branch.tally.cases) = (self.now, self.orderly, 0);
        branch.recover()?;
        let since = branch.batches.last().map_or(self.now, |batch| batch.input.now);
        let budget = Ceilings::NONE.with(Resource::Steps, self.dice.between(1, 60));
        let tree = BRANCH;
        branch.input(person(Request::Branch(Branch { tree, agent, budget, since })))?;
        if branch.world.tree() != tree {
            return Ok(None);
        }
        // A crash does not turn it back into its origin.
        branch.shared = shared + 1;
        branch.input(person(Request::Unpause(Unpause::now(moves::root(&branch.world)))))?;
        self.tally.branches += 1;
        Ok(Some(Box::new(branch)))
    }
}
