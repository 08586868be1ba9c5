//! The binary as people use it: files in, words and exit codes out. Tests wait for output and never for time.

mod bad_input;
mod example;
mod interrupting;
mod looking;
mod replaying;
mod result;
mod resuming;
mod stage;
mod steering;
