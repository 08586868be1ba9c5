//! What is given with a tree file, in place of what it says itself.

use std::sync::Arc;

use spinney::tree_file::{InputError, ModelSource};
use spinney_kernel::budget::Resource;
use spinney_kernel::definition::{Definition, Tags};

use super::folders::GivenFolder;
use super::source::TreeSource;
use crate::defaults::Defaults;
use crate::user::variables::Variables;

/// Values for one start of a tree file.
#[derive(Clone, Debug, Default)]
pub struct GivenValues {
    /// The root's goal, instead of the one in the file.
    pub goal: Option<String>,
    /// The values of inputs, by name.
    pub inputs: Vec<(String, String)>,
    /// The tree's cost ceiling in nano-dollars, instead of the one in the file.
    pub cost_nanos: Option<u64>,
    /// Folders for the root, beside those in the file.
    pub folders: Vec<GivenFolder>,
    /// Tags, beside those in the file and in place of those of the same name.
    pub tags: Tags,
}

impl GivenValues {
    /// Whether the value of an input is given.
    #[must_use]
    pub fn has_input(&self, name: &str) -> bool {
        self.inputs.iter().any(|(given, _)| given == name)
    }

    /// The definition of a file with these values. Defaults fill in the rest.
    pub fn adjusted(
        &self,
        source: &TreeSource,
        defaults: &Defaults,
        user: &Variables,
    ) -> Result<Definition, Vec<InputError>> {
        let mut definition = self.with_inputs(source, user)?;
        self.complete(&mut definition, source, defaults);
        Ok(definition)
    }

    /// The same for a definition whose inputs may be missing.
    pub fn complete(&self, definition: &mut Definition, source: &TreeSource, defaults: &Defaults) {
        self.override_in(definition);
        fill(definition, source, defaults);
    }

    /// The definition of a file with the values of its inputs alone.
    pub fn with_inputs(&self, source: &TreeSource, user: &Variables) -> Result<Definition, Vec<InputError>> {
        Ok(source.file.clone().with_inputs(&self.inputs, &|variable| user.get(variable))?.definition)
    }

    /// Puts these values in place of the file's.
    pub fn override_in(&self, definition: &mut Definition) {
        if let Some(goal) = &self.goal {
            definition.goal.clone_from(goal);
        }
        if let Some(most) = self.cost_nanos {
            definition.budget.limit = definition.budget.limit.with(Resource::Cost, most);
        }
        if !self.tags.is_empty() {
            Arc::make_mut(&mut definition.tags).extend(self.tags.clone());
        }
    }
}

/// Fills in what the file leaves to the user's configuration and the project.
pub fn fill(definition: &mut Definition, source: &TreeSource, defaults: &Defaults) {
    defaults.fill(definition);
    for (name, model) in &mut definition.models {
        if let (None, Some(ModelSource::Provider(source))) = (&model.price, source.file.models.get(name)) {
            model.price = defaults.configuration.price(&source.model);
        }
    }
}
