//! Break the seal of a tree: it arrived where it continues, or is taken back.

use serde::{Deserialize, Serialize};

use super::{Accepted, Outside, Verb, person};
use crate::definition::Refusal;
use crate::primitives::{Actor, SealKind};
use crate::record::Event;
use crate::rules::{Draft, clock};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unseal {}

impl Verb for Unseal {
    type Reply = Accepted;

    fn outside(&self) -> Outside {
        Outside::Open
    }
}

impl Unseal {
    pub(in crate::rules) fn decide(&self, draft: &mut Draft<'_>, by: &Actor) -> Result<Accepted, Refusal> {
        person(by, "unseal a tree")?;
        draft.check_running()?;
        match draft.sealed() {
            None => Err(Refusal::NotSealed),
            // Its budget is spent where it continues.
            Some(kind @ SealKind::Copy) => Err(Refusal::Sealed { kind: kind.clone() }),
            Some(SealKind::Moved { .. }) => {
                let since = draft.sealed_at();
                draft.record(Event::TreeUnsealed);
                // Nothing ran meanwhile, so no time passed.
                since.into_iter().for_each(|since| clock::recount(draft, since));
                Ok(Accepted {})
            }
        }
    }
}
