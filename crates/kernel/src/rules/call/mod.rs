//! Calls: everything an agent has requested and not received yet. Model and tool calls hold budget while they run;
//! waits and questions hold nothing, so a waiting parent never takes a slot from its children.

mod admit;
mod cache;
mod choose;
mod cost;
mod end;
mod fitted_cap;
mod for_tool;
mod listen;
mod wake;

pub(crate) use admit::{Admitted, admit, given_up, park, reconsider_waiting, suspend};
pub(crate) use choose::{affordable_input, affordable_output, check_model, fallback, model_work, turn_work};
pub(crate) use cost::{first_attempt, used, used_in_vain};
pub(crate) use end::{attempt_failed, end, end_asked_by, end_questions, end_running};
pub(crate) use listen::{all_wait, end_idle_waits};
pub(crate) use wake::{ended_of, wake_spawner, wake_waits};
