//! Whether the root of a tree could make its first call: decides the start of the tree in memory, as the kernel would,
//! and throws it away.

use std::sync::Arc;

use spinney_kernel::budget::{Amounts, Shortfall};
use spinney_kernel::definition::{Definition, Refusal};
use spinney_kernel::primitives::{Actor, ModelName, Time, TreeId};
use spinney_kernel::record::Work;
use spinney_kernel::rules::request::{Request, Start};
use spinney_kernel::rules::{Input, InputKind, decide};
use spinney_kernel::world::World;

use crate::drivers::{Drivers, NoDriver};
use crate::output_schema;

/// The root's first call, if the tree started now.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FirstCall {
    /// It fits.
    Fits {
        /// The model.
        model: ModelName,
        /// The tokens of its packet.
        input_tokens: u64,
        /// The most tokens of its answer.
        output_cap: u64,
        /// What it holds.
        held: Amounts,
    },
    /// It only fits as the root's last call, without tools.
    OnlyLast,
    /// A ceiling is too low for it.
    Never(Shortfall),
    /// The root takes no turns on its own.
    None,
}

/// Why a tree could not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotStart {
    /// A model or tool is missing.
    #[error(transparent)]
    NoDriver(#[from] NoDriver),
    /// The kernel refuses the definition.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl Drivers {
    /// The first call of a tree that starts at `now`. Calls no model and writes nothing.
    ///
    /// # Errors
    /// If the tree could not start.
    pub fn first_call(&self, definition: Definition, now: Time) -> Result<FirstCall, CannotStart> {
        let definition = Arc::new(self.fit(definition)?);
        let mut start = Request::Start(Start::new(definition));
        output_schema::check_request(&start)?;
        self.count(&mut start);
        let mut world = World::new(TreeId::new([0; 16]));
        let what = InputKind::Request { by: Actor::PROGRAM, request: Box::new(start) };
        decide(&mut world, &Input { now, draw: 0, what })?;
        let first = world.calls().all().next();
        Ok(match (first, world.halted()) {
            (_, Some(halt)) => FirstCall::Never(halt.short),
            (Some((_, call)), None) => match &call.work {
                Work::Model(work) if work.wrap_up.is_some() => FirstCall::OnlyLast,
                Work::Model(work) => FirstCall::Fits {
                    model: work.model.clone(),
                    input_tokens: work.input_tokens,
                    output_cap: work.output_cap,
                    held: call.held(),
                },
                Work::Tool(_) | Work::Child(_) | Work::Wait(_) | Work::Question(_) => FirstCall::None,
            },
            (None, None) => FirstCall::None,
        })
    }
}
