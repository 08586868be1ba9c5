//! Everything that listens: today the gateway through which other people's agent programs call models under a budget.
//! Nothing in here decides what may be spent; that is the kernel's work.

pub mod gateway;
