//! Readers of what trees under older rules accept. A tree keeps the rules that it started with, so none of them is ever
//! removed; each names the rules that it belongs to.

mod ask_arguments;
mod budget_arguments;
mod spawn_arguments;

pub(crate) use self::ask_arguments::read_ask;
pub(crate) use self::budget_arguments::{check_timeout, read_with_budget};
pub(crate) use self::spawn_arguments::read_spawn;
