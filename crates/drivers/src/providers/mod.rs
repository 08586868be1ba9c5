//! Models of providers, behind the kernel's port: one attempt over HTTP, streamed, and what it used. Keys are handed in;
//! nothing here reads an environment, and whether to try again is for the kernel.

mod clients;
mod destination;
mod model;
mod provider;
mod settle;
mod structured;
mod trial;

pub use clients::ProviderClients;
pub use destination::Destination;
pub use model::{ProviderModel, ProviderSetup};
pub use provider::{open_ai_tokenizer, usual_key_env};
pub use settle::{answered, missed};
pub use trial::TrialFault;
