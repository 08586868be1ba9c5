//! What `spinney exec` needs around its gateway: the program and its environment, a home for each run, and what a person
//! is shown.

pub(crate) mod allowed_fields;
pub(crate) mod ended_run;
pub(crate) mod guard;
pub(crate) mod notices;
pub(crate) mod report;
pub(crate) mod signals;
pub(crate) mod view;
