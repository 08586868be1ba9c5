//! The drivers of trees that were checked before they start or resume.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::FutureExt as _;
use futures::future::{BoxFuture, ready};
use spinney::{DriverSource, Drivers, NoDriver};
use spinney_kernel::definition::Definition;
use spinney_kernel::primitives::TreeId;

use crate::error_text::with_causes;
use crate::off_workers::off_workers;
use crate::redaction::redactor;

/// The drivers of trees that the host has checked, each until its tree has them.
#[derive(Default)]
pub(crate) struct ApprovedDrivers(Mutex<BTreeMap<TreeId, Drivers>>);

/// An approval, which ends with it: a start may be given up at any moment.
pub(crate) struct Approval<'a> {
    drivers: &'a ApprovedDrivers,
    tree: TreeId,
}

impl ApprovedDrivers {
    pub(crate) fn approve(&self, tree: TreeId, drivers: Drivers) -> Approval<'_> {
        self.all().insert(tree, drivers);
        Approval { drivers: self, tree }
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<TreeId, Drivers>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Approval<'_> {
    fn drop(&mut self) {
        self.drivers.all().remove(&self.tree);
    }
}

impl DriverSource for ApprovedDrivers {
    fn drivers<'a>(
        &'a self,
        tree: TreeId,
        definition: &'a Definition,
    ) -> BoxFuture<'a, Result<Drivers, NoDriver>> {
        let Some(approved) = self.all().remove(&tree) else {
            let message =
                "the host starts and resumes its trees, after it has checked their files".to_owned();
            return ready(Err(NoDriver::Source { message })).boxed();
        };
        let spec = definition.redact.clone();
        async move {
            match off_workers(|| async move { redactor(&spec) }).await {
                Ok(redactor) => Ok(approved.with_redactor(redactor)),
                Err(error) => Err(NoDriver::Source { message: with_causes(&error) }),
            }
        }
        .boxed()
    }
}
