//! Events for people and programs: each as text, and the screen that writes them.

pub(crate) mod screen;
