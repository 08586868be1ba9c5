//! Durable trees of AI agents under budgets that hold up the whole parent chain.
//!
//! There are three ways to use it, and one dependency for all of them. [`prelude`] has the names that most programs need.
//!
//! # Only the budget
//!
//! A [`Budget`] needs no journal and no async runtime. Before a call starts, its worst case is held at its account and
//! at every account above; when it ends, the hold is settled at what it really cost. See [`budget`] for the rest.
//!
//! ```
//! use spinney::prelude::*;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let team = Budget::root(Limits::usd("1.00")?)?;
//! let researcher = team.child(Limits::usd("0.60")?)?;
//! let answer = researcher.run_blocking(spend::usd("0.25")?, |call| {
//!     call.used(spend::usd("0.12")?)?; // the rest of the $0.25 returns
//!     Ok::<_, Box<dyn std::error::Error + Send + Sync>>("Take PyTorch.")
//! })?;
//! assert_eq!(answer, "Take PyTorch.");
//! assert_eq!(team.snapshot().spent, spend::usd("0.12")?);
//! # Ok(())
//! # }
//! ```
//!
//! # A tree from a file
//!
//! A [`Home`] is opened on a journal, with the [`Drivers`] that call models and tools. It starts trees, resumes them after
//! a crash and stops them. A [`TreeFile`] is what people write to describe one. A [`SqliteJournal`] in place of the
//! [`MemoryJournal`] survives a kill.
//!
//! ```
//! use spinney::prelude::*;
//! use std::sync::Arc;
//!
//! const GREETING: &str = "
//! name: greeting
//! goal: Greet the reader.
//! budget: { tokens: 100000, steps: 5 }
//! models: { greeter: { provider: scripted, script: none } } # this program brings its own
//! agents: { lead: { model: greeter, prompt: You are polite. } }
//! ";
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! spinney::block_on(async {
//!     let model = FunctionModel::new(|_attempt| async { Ok(ModelAnswer::text("Good morning.")) });
//!     let drivers = Drivers::new().with_model("greeter".parse()?, Arc::new(model));
//!     let home = Home::open(Arc::new(MemoryJournal::new()), drivers);
//!     let tree = home.start(TreeFile::parse("greeting.yaml", GREETING)?.definition).await?;
//!     tree.ended().await;
//!     let end = tree.snapshot().await?.end.ok_or("the tree was stopped")?;
//!     assert_eq!(end.shown.text, "Good morning.");
//!     Ok(())
//! })?
//! # }
//! ```
//!
//! # A tree in code
//!
//! The same without a file, with a tool that is a closure. Tools whose arguments have their own type describe
//! themselves to the model: see [`FunctionTool`].
//!
//! ```
//! use spinney::prelude::*;
//! use std::sync::Arc;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! spinney::block_on(async {
//!     // On its first turn the model asks for the time, on the second it has it.
//!     let model = FunctionModel::new(|attempt| async move {
//!         let asks = if attempt.turn == 1 { vec![ToolAsk::new("1", "clock", "{}")] } else { Vec::new() };
//!         let heard = attempt.packet.messages.last().map(|last| last.text().into_owned());
//!         Ok(ModelAnswer::text(heard.unwrap_or_default()).with_asks(asks))
//!     });
//!     let clock = FunctionTool::sync(|_: RawCall| Ok::<_, String>("It is noon.")).described("Says the time.");
//!     let drivers = Drivers::new()
//!         .with_model("small".parse()?, Arc::new(model))
//!         .with_tool("clock".parse()?, Arc::new(clock));
//!
//!     let lead = Role::new("small".parse()?).with_prompt("You know the time.").with_tools(["clock".parse()?]);
//!     let definition = Definition::new("time", "What time is it?", "lead".parse()?)
//!         .with_budget(Limits::none().tokens(100_000).tool_calls(3).try_into()?)
//!         .with_model("small".parse()?, Default::default())
//!         .with_role("lead".parse()?, lead);
//!
//!     let home = Home::open(Arc::new(MemoryJournal::new()), drivers);
//!     let tree = home.start(definition).await?;
//!     tree.ended().await;
//!     let end = tree.snapshot().await?.end.ok_or("the tree was stopped")?;
//!     assert!(end.shown.text.contains("It is noon."), "{}", end.shown.text);
//!     Ok(())
//! })?
//! # }
//! ```
//!
//! # Features
//!
//! | feature | |
//! |---|---|
//! | `sqlite` (default) | the journals: [`MemoryJournal`] and [`SqliteJournal`]. Without it bring your own [`Journal`], or use only the budget |

#![deny(missing_docs)]

mod block_on;
mod breaker;
pub mod budget;
pub mod bus;
mod call_limits;
mod checked_arguments;
pub mod clock;
pub mod definition;
mod drivers;
mod first_call;
mod function_model;
pub mod function_tool;
mod home;
pub mod hooks;
pub mod id;
pub mod model;
mod names;
mod output_schema;
pub mod prelude;
pub mod record;
pub mod redaction;
pub mod request;
pub mod rng;
mod sync;
pub mod tool;
pub mod tree;
pub mod tree_file;

pub use block_on::{block_on, worker_threads};
pub use budget::{Budget, Limits};
pub use checked_arguments::CheckedArguments;
pub use drivers::{DriverSource, Drivers, NoDriver};
pub use first_call::{CannotStart, FirstCall};
pub use function_model::FunctionModel;
pub use function_tool::FunctionTool;
pub use home::{Home, Orphan, RemoveError, ResumeError, Shutdown, StartError, StartOptions};
pub use hooks::TreeHooks;
pub use spinney_journal::{self as journal, Journal};
#[cfg(feature = "sqlite")]
pub use spinney_store::{Access, MemoryJournal, SqliteJournal};
pub use tree::Tree;
pub use tree_file::TreeFile;

/// The README's code compiles as it is written.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;
