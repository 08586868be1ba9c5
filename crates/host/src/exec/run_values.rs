//! Values that a person gives for a run, as text, with errors that say what to write.

use spinney::tree_file::nearest;
use spinney_drivers::prices::{NoPrice, PriceTable, PricedName, PricedNameError};
use spinney_kernel::budget::Price;
use spinney_kernel::primitives::limit;

use crate::user::configuration::read_rates;

/// The name of a model, or the beginning of names with `*` after it.
pub fn model_pattern(text: &str) -> Result<String, String> {
    let name = text.trim();
    if name.is_empty() {
        Err("write the names of models, such as claude-*".to_owned())
    } else {
        Ok(name.to_owned())
    }
}

/// A provider of the price table.
pub fn priced_provider(text: &str) -> Result<String, String> {
    let table = PriceTable::embedded().map_err(|error| error.to_string())?;
    let Err(none @ NoPrice::UnknownProvider { .. }) = table.find(text, "") else {
        return Ok(text.to_owned());
    };
    Err(format!("{none}: {}", nearest::help(text, table.providers(), "providers")))
}

/// The port of an address on this machine.
pub fn gateway_port(text: &str) -> Result<u16, String> {
    let port = match text.rsplit_once(':') {
        Some(("127.0.0.1" | "localhost", port)) => port,
        Some(_) => return Err("the gateway listens on this machine only: write 127.0.0.1:PORT".to_owned()),
        None => text,
    };
    let port = port.parse::<u16>().ok().filter(|port| *port > 0);
    port.ok_or_else(|| "write 127.0.0.1 and a port, such as 127.0.0.1:4100".to_owned())
}

/// A tag of a tree.
pub fn tag(name: &str, value: &str) -> Result<(), String> {
    if name.trim().is_empty() {
        return Err("the tag has no name: write NAME=VALUE, such as pr=123".to_owned());
    }
    let bounds = [("name", name, limit::TAG_NAME_BYTES_MAX), ("value", value, limit::TAG_BYTES_MAX)];
    match bounds.into_iter().find(|(_, text, most)| text.len() > *most) {
        Some((what, text, most)) => {
            Err(format!("the {what} of the tag has {} bytes, more than {most}", text.len()))
        }
        None => Ok(()),
    }
}

/// How many agents a run may have.
pub fn agents(text: &str) -> Result<u32, String> {
    const MOST: u32 = 10_000;
    let count = text.parse().ok().filter(|count| (1..=MOST).contains(count));
    count.ok_or_else(|| format!("write a whole number from 1 (the program itself) to {MOST}"))
}

/// How many calls may run at the same time.
pub fn parallel_calls(text: &str) -> Result<u32, String> {
    const MOST: u32 = 10_000;
    let count = text.parse().ok().filter(|count| (1..=MOST).contains(count));
    count.ok_or_else(|| format!("write a whole number from 1 to {MOST}"))
}

/// `NAME=INPUT,OUTPUT[,CACHED[,CACHE-WRITE]]`, in dollars per million tokens.
pub fn model_price(text: &str) -> Result<(PricedName, Price), String> {
    let wrong =
        || format!("`{text}` is not NAME=INPUT,OUTPUT in dollars per million tokens, such as gpt-5=1.25,10");
    let (name, rates) = text.rsplit_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(wrong)?;
    let rates = read_rates(rates)?.ok_or_else(wrong)?;
    let name: PricedName = name.parse().map_err(|error: PricedNameError| error.to_string())?;
    Ok((name, rates.price()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_listens_on_this_machine_only() {
        for right in ["127.0.0.1:4100", "localhost:4100", "4100"] {
            assert_eq!(gateway_port(right), Ok(4_100), "{right}");
        }
        for wrong in
            ["0.0.0.0:4100", "192.168.0.9:4100", "[::]:4100", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:x", ""]
        {
            assert!(gateway_port(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_price_is_a_name_and_two_to_four_rates() {
        let (name, two) = model_price("gpt-5=1.25,10").unwrap();
        assert_eq!((name.as_str(), two), ("gpt-5", Price::flat(1_250_000_000, 10_000_000_000)));
        let (_, four) = model_price("m=1,2,0.1,1.25").unwrap();
        assert_eq!(four.cached_input_per_mtok, Some(100_000_000));
        assert_eq!(four.cache_write_per_mtok, Some(1_250_000_000));
        for wrong in ["m", "m=", "=1,2", "m=1", "m=1,x", "m=1,2,3,4,5", "m=-1,2", "a*b=1,2"] {
            assert!(model_price(wrong).is_err(), "{wrong}");
        }
    }
}
