//! Applies a branch: the world continues under another id, with reset accounts and stopped clocks.

use std::sync::Arc;

use super::World;
use crate::record::Branched;
use crate::world::AgentIx;

impl World {
    pub(super) fn branched(&mut self, branched: &Branched) {
        let Branched { tree, terms, later_ms, .. } = *branched;
        self.tree = tree;
        self.sealed = None;
        // Rate limits and breakers belong to the process that runs the tree.
        self.gates.clear();
        match (self.agents.root(), branched.continuation.as_deref()) {
            (_, Some(continuation)) => return self.continue_root(*continuation, terms),
            (Some(root), None) => self.ledger.renew(self.agent(root).account, terms),
            (None, None) => {}
        }
        for (at, _) in self.timers.pending.values_mut() {
            *at = at.after_ms(later_ms);
        }
        let living: Vec<AgentIx> = self.agents.all().filter(|ix| self.agents.living(*ix).is_some()).collect();
        for ix in living {
            let agent = self.agents.agent_mut(ix);
            for clock in agent.clocks.iter_mut().flat_map(|clocks| clocks.all_mut()) {
                if let Some(alarm) = &mut clock.alarm {
                    alarm.at = alarm.at.after_ms(later_ms);
                }
            }
            if let Some(deadline) = agent.terms.deadline {
                Arc::make_mut(&mut agent.terms).deadline = Some(deadline.after_ms(later_ms));
            }
        }
    }
}
