//! A tree file on disk: the file and its scripts, the models that it names, and what is wrong with it.

pub mod boxed_tools;
mod command_tools;
pub mod folders;
pub mod low_prices;
pub mod masked;
pub mod overrides;
pub mod problems;
mod programs;
pub mod providers;
mod servers;
pub mod source;
