//! Add a model to a running tree: an outside program may call any model, and which one is not known before it does.

use serde::{Deserialize, Serialize};

use super::{Accepted, Verb, person};
use crate::definition::{ModelSpec, Refusal};
use crate::primitives::{Actor, ModelName};
use crate::record::Event;
use crate::rules::Draft;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddModel {
    pub model: ModelName,
    pub spec: Box<ModelSpec>,
}

impl Verb for AddModel {
    type Reply = Accepted;
}

impl AddModel {
    pub(in crate::rules) fn decide(&self, draft: &mut Draft<'_>, by: &Actor) -> Result<Accepted, Refusal> {
        person(by, "add a model")?;
        draft.check_running()?;
        draft.definition().check_added(&self.model, &self.spec)?;
        draft.record(Event::ModelAdded { model: self.model.clone(), spec: self.spec.clone() });
        Ok(Accepted {})
    }
}
