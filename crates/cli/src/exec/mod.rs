//! What `spinney exec` needs around its gateway: the program and its environment, a home for each run, and what a person
//! is told.

pub(crate) mod claude;
pub(crate) mod ending;
pub(crate) mod environment;
pub(crate) mod guard;
pub(crate) mod homes;
pub(crate) mod notices;
pub(crate) mod options;
pub(crate) mod program;
pub(crate) mod report;
pub(crate) mod signals;
pub(crate) mod view;
