//! The kernel's rules, one module per topic: text in, snapshot out, and laws under random load.

mod sim;
