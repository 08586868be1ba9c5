//! The server from outside: what reaches a provider and a program, byte for byte.

mod bytes;
