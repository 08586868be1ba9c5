//! A tree file on disk: the file and its scripts, the models that it names, and what is wrong with it.

pub(crate) mod problems;
pub(crate) mod providers;
pub(crate) mod source;
