//! Seal a tree that no process runs: from now on it can be read and branched, and does nothing else. So a tree that moved
//! elsewhere spends no budget twice.

use serde::{Deserialize, Serialize};

use super::{Accepted, Outside, Verb, person};
use crate::definition::Refusal;
use crate::primitives::{Actor, SealKind};
use crate::record::Event;
use crate::rules::Draft;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seal {
    pub kind: SealKind,
}

impl Verb for Seal {
    type Reply = Accepted;

    fn outside(&self) -> Outside {
        Outside::Open
    }
}

impl Seal {
    pub(in crate::rules) fn decide(&self, draft: &mut Draft<'_>, by: &Actor) -> Result<Accepted, Refusal> {
        person(by, "seal a tree")?;
        draft.check_running()?;
        if !draft.is_suspended() {
            return Err(Refusal::SealRunning);
        }
        let at = draft.now();
        draft.record(Event::TreeSealed { kind: self.kind.clone(), at });
        Ok(Accepted {})
    }
}
