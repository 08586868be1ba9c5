//! Everything that listens: the socket by which other processes steer the trees of a home, and the gateway through which
//! other people's agent programs call models under a budget. Nothing in here decides what may be spent; that is the kernel's
//! work.

pub mod control;
pub mod exec;
pub mod gateway;
pub mod login_redirect;
pub mod programs;
