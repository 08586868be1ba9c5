//! The server from outside: what reaches a provider and a program, byte for byte.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod bytes;
