//! `fetch`: an agent reads a web page from a host that it was granted (decision 0066). It runs in this process and sends
//! nothing of ours along: no keys, no cookies.

mod get;
mod image;
mod page;
mod readable;
mod tool;

pub use tool::Fetch;
